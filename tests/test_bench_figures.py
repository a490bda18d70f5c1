"""The stack benchmark's arithmetic, over made rows whose truth is known."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.arms import CONFIGS, OFF, TEN, off_arms, ours, without
from tests.benchmarks.bench_figures import Row, ablation, figures, order, summary
from tests.benchmarks.bench_stack import chosen_samples, read_rows
from voicebench.plan.config import load_config


def row(arm: str, place: int, ms: float | None, **changes: Any) -> Row:
    """A completed turn of sample place % 10."""
    values: dict[str, Any] = {
        "arm": arm,
        "sample": f"s{place % 10}",
        "repeat": place // 10,
        "outcome": "completed",
        "has_speech": True,
        "cutoffs": 0,
        "waveform_ms": ms,
        "waveform_certain": True,
        "marks_ms": ms,
        "wer_errors": 1,
        "wer_words": 10,
        "answer_correct": place % 2 == 0,
    }
    return Row(**{**values, **changes})


def rows(arm: str, middle: float, count: int = 30) -> list[Row]:
    """Turns around `middle` ms, 1 ms apart."""
    return [row(arm, place, middle + place - (count - 1) / 2) for place in range(count)]


def test_the_figures_are_those_of_the_turns_that_count() -> None:
    """Median, p95, shares and errors are those of the turns in which nobody was cut off; the rest is told."""
    made = rows("a", 700)
    left_out = [
        row("a", 30, 100.0, cutoffs=1, flags=("cutoff",)),
        row("a", 31, 90.0, flags=("retried",)),
        row("a", 32, None),
        row("a", 33, None, outcome="failed"),
    ]
    told = figures([*made, *left_out])
    values = np.asarray([one.waveform_ms for one in made], dtype=float)
    assert (told["n"], told["turns"]) == (30, 34)
    assert told["p50_ms"] == pytest.approx(np.median(values))
    assert told["p95_ms"] == pytest.approx(np.percentile(values, 95))
    assert told["p50_ci95_ms"][0] < told["p50_ms"] < told["p50_ci95_ms"][1]
    assert (told["cutoffs"]["count"], told["cutoffs"]["n"]) == (1, 34)
    assert (told["within_800"]["hit"], told["within_800"]["n"]) == (30, 34)
    assert told["wer"] == pytest.approx(0.1)
    assert told["answers"] == {"correct": 17, "n": 34}
    assert told["outcomes"] == {"completed": 33, "failed": 1}
    assert told["waveform_less_marks_ms_max"] == 0


def test_a_figure_that_the_turns_do_not_allow_is_empty() -> None:
    """Without turns nothing is claimed, and below 20 there is no p95."""
    empty, few = figures([]), figures(rows("a", 700, 19))
    assert [empty[name] for name in ("p50_ms", "p50_ci95_ms", "p95_ms", "wer")] == [None] * 4
    assert few["p50_ms"] is not None
    assert few["p95_ms"] is None
    assert few["p95_ci95_ms"] is None


def test_the_ratio_is_that_of_the_medians() -> None:
    """Ours at 600 against plain at 1800 is a third, inside its interval; arms short of turns are named."""
    made = [*rows("plain", 1800), *rows("voicebench", 600, 20)]
    told = summary(made, ("plain", "voicebench"), 24)
    assert told["ratio_p50"] == pytest.approx(1 / 3)
    assert told["ratio_p50_ci95"][0] <= told["ratio_p50"] <= told["ratio_p50_ci95"][1]
    assert told["short_of_n"] == ["voicebench"]


def test_the_ablation_shows_what_a_setting_is_worth() -> None:
    """A setting whose absence costs 150 ms is shown with +150 and an interval; the stack itself with none."""
    table = ablation([*rows("voicebench", 600), *rows("x", 750)], ["voicebench", "x"])
    head, rule, ours_line, x_line = table.splitlines()
    assert len({line.count("|") for line in (head, rule, ours_line, x_line)}) == 1
    assert "nothing" in ours_line
    assert "| – |" in ours_line
    assert "+150 ms (" in x_line


@pytest.mark.parametrize(("arms", "samples"), [(2, 10), (2, 22), (12, 10), (13, 22), (11, 10), (1, 2)])
def test_no_arm_is_asked_what_another_was_just_asked(arms: int, samples: int) -> None:
    """Each arm meets each sample once a repeat, and the same question never follows itself at once."""
    names, ids = [f"a{one}" for one in range(arms)], [f"s{one}" for one in range(samples)]
    for repeat in range(4):
        planned = order(names, ids, repeat)
        assert Counter(planned) == Counter((name, one) for name in names for one in ids)
        assert all(first[1] != second[1] for first, second in pairwise(planned))


def test_every_arm_turns_one_setting_off() -> None:
    """Each arm is a valid configuration that differs from the default stack, whose ten clips are there."""
    stack, default = ours().model_dump(), load_config(CONFIGS / "default.yaml").model_dump()
    stages = ("asr", "tts", "turn", "vad", "clause", "early", "pipecat", "conversation", "own_modes")
    assert {key: stack[key] for key in stages} == {key: default[key] for key in stages}
    assert set(OFF) <= set(off_arms())
    for name in off_arms():
        changed = without(name).model_dump()
        assert [key for key in stages if changed[key] != stack[key]] != []
        assert sum(changed[key] != stack[key] for key in stages) == 1
    assert [sample.id for sample in chosen_samples("ten")] == list(TEN)


def test_a_stop_loses_no_turn(tmp_path: Path) -> None:
    """Rows on disk are read again as they were, and a torn last line is dropped."""
    import json

    made = rows("a", 700, 3)
    path = tmp_path / "rows.jsonl"
    assert read_rows(path) == []
    path.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in made) + '{"arm": "a", "sam', "utf-8")
    assert read_rows(path) == made
    assert path.read_bytes().endswith(b"}\n")


def test_errors_and_cutoffs_are_held_against_plain_pipecat_with_their_intervals() -> None:
    """Shares of words and turns are compared over the same samples; equal ones differ by nothing."""
    ours = [*rows("voicebench", 500), row("voicebench", 40, 400.0, cutoffs=1)]
    plain = [row("plain", place, 1200.0, wer_errors=int(place % 10 == 0)) for place in range(31)]
    told = summary([*ours, *plain], ["plain", "voicebench"], 24)
    assert told["wer_less_plain"] == pytest.approx(31 / 310 - 4 / 310)
    low, high = told["wer_less_plain_ci95"]
    assert low <= told["wer_less_plain"] <= high
    assert told["cutoffs_less_plain"] == pytest.approx(1 / 31)
    assert told["cutoffs_less_plain_ci95"][0] <= 0 < told["cutoffs_less_plain_ci95"][1]
    same = summary(
        [*plain, *(row("voicebench", p, 1.0, wer_errors=int(p % 10 == 0)) for p in range(31))],
        ["plain", "voicebench"],
        24,
    )
    assert same["wer_less_plain"] == 0
    assert same["wer_less_plain_ci95"] == (0, 0)
