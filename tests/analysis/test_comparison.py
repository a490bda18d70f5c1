"""A difference is claimed only where the pairs support it, and what is not comparable is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.analysis.made_pairs import latencies, side, turns
from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.comparison import Verdict, compare
from voicebench.analysis.report import build_report
from voicebench.errors import BadRequest
from voicebench.turns.durable import parse_strict_json, strict_json
from voicebench.turns.run_folder import RunInfo


def shifted(shift_ms: float, samples: int = 60, repeats: int = 1) -> tuple[list[float], list[float]]:
    """V2V of A and of B, seeded, with samples that differ by 100 ms."""
    return latencies(np.random.default_rng(5), samples, repeats, shift_ms, 100)


def test_a_slower_run_is_called_slower_and_a_faster_one_faster() -> None:
    """A shift of 80 ms is found in V2V and in its stage, with the sign of B less A, and in no other stage."""
    a, b = shifted(80)
    for first, second, word, sign in ((a, b, Verdict.SLOWER, 1), (b, a, Verdict.FASTER, -1)):
        (entry,) = compare(side(turns(first)), side(turns(second), "run-b")).modes
        assert entry.verdict is word
        paired = entry.voice_to_voice.paired
        assert paired.difference is not None
        assert 40 < sign * paired.difference < 120
        assert paired.interval is not None
        assert paired.interval[0] < paired.difference < paired.interval[1]
        found = {name: part.paired.verdict for name, part in entry.parts.items()}
        assert {name for name, verdict in found.items() if verdict is word} == {"llm_ttfat", "ttft", "ttfat"}


def test_the_figures_are_those_of_the_pairs() -> None:
    """Medians, p95 and shares of both sides, and their differences, equal numpy's over the paired turns."""
    a, b = shifted(80)
    (entry,) = compare(side(turns(a)), side(turns(b), "run-b")).modes
    for percent, figure in ((50, entry.voice_to_voice.p50), (95, entry.voice_to_voice.p95)):
        assert figure.a == pytest.approx(np.percentile(a, percent), abs=1e-5)
        assert figure.b == pytest.approx(np.percentile(b, percent), abs=1e-5)
        change = np.percentile(b, percent) - np.percentile(a, percent)
        assert figure.difference == pytest.approx(change, abs=1e-5)
        assert figure.n == 60
    assert entry.budget.a == pytest.approx(np.mean(np.array(a) <= 800))
    assert entry.budget.b == pytest.approx(np.mean(np.array(b) <= 800))
    assert entry.budget.difference == pytest.approx((entry.budget.b or 0) - (entry.budget.a or 0))


def test_the_order_of_the_turns_and_the_call_change_nothing() -> None:
    """Turns run in another order, and a second call, give the same intervals to the last digit."""
    a, b = (turns(values) for values in shifted(20))
    first = compare(side(a), side(b, "run-b")).to_dict()["modes"]
    assert first == compare(side(a[::-1]), side(b[::-1], "run-b")).to_dict()["modes"]


def test_p95_is_told_from_twenty_pairs_on() -> None:
    """With 19 pairs p95 is empty with its reason, with 20 it is there."""
    a, b = shifted(0)
    (few,) = compare(side(turns(a[:19])), side(turns(b[:19]), "run-b")).modes
    (enough,) = compare(side(turns(a[:20])), side(turns(b[:20]), "run-b")).modes
    assert few.voice_to_voice.p95.difference is None
    assert "shown from 20" in str(few.voice_to_voice.p95.reason)
    assert enough.voice_to_voice.p95.interval is not None


def test_too_few_pairs_tell_nothing() -> None:
    """Five samples of one turn each, however far apart, give no interval and no verdict, and a caveat."""
    told = compare(side(turns([700.0] * 5)), side(turns([2000.0] * 5), "run-b"))
    assert told.modes[0].verdict is Verdict.CANNOT_TELL
    assert told.modes[0].voice_to_voice.paired.interval is None
    assert "too_few_pairs" in {caveat.code for caveat in told.caveats}


def test_few_samples_speak_of_themselves() -> None:
    """Three samples repeated 20 times give an interval within the samples, with a caveat that says so."""
    a, b = shifted(80, 3, 20)
    told = compare(side(turns(a, 20)), side(turns(b, 20), "run-b"))
    assert told.modes[0].verdict is Verdict.SLOWER
    assert "few_samples_drawn" in {caveat.code for caveat in told.caveats}


def test_turns_without_a_partner_are_left_out_and_counted() -> None:
    """Turns that only one run has, and pairs of which one failed, are in no latency figure and are told."""
    a, b = (turns(values) for values in shifted(0))
    b[3] = made(3, sample="sample-003", outcome="timed_out", reason="not over")
    told = compare(side(a[:50]), side(b, "run-b"))
    (entry,) = told.modes
    assert (entry.pairs, entry.only_a, entry.only_b, entry.not_counted) == (50, 0, 10, 1)
    assert entry.voice_to_voice.p50.n == 49
    assert entry.budget.n == 50
    counts = {caveat.code: caveat.count for caveat in told.caveats}
    assert counts["unpaired_b"] == 10
    assert counts["not_counted"] == 1
    assert entry.ledger_b.outcomes["timed_out"] == 1


def test_failures_count_against_the_share_within_the_budget() -> None:
    """A run whose turns time out one in three is worse within the budget, though its medians are the same."""
    a = turns(shifted(0)[0])
    b = [made(n, sample=one.sample, outcome="timed_out") if n % 3 == 0 else one for n, one in enumerate(a)]
    (entry,) = compare(side(a), side(b, "run-b")).modes
    assert entry.budget.verdict is Verdict.SLOWER
    assert entry.verdict is Verdict.CANNOT_TELL


def test_cutoffs_are_compared_and_more_of_them_are_worse() -> None:
    """A run that cuts off every third turn has a higher share of cutoffs, which counts as worse."""
    a = turns(shifted(0)[0])
    b = [
        one.model_copy(update={"cutoffs": 1, "flags": ("cutoff",)}) if one.turn % 3 == 0 else one for one in a
    ]
    (entry,) = compare(side(a), side(b, "run-b")).modes
    assert entry.cutoffs.b == pytest.approx(1 / 3)
    assert entry.cutoffs.verdict is Verdict.SLOWER


def test_two_modes_of_one_run_are_compared() -> None:
    """With `against`, two modes of the same run are paired; B is the second."""
    a, b = shifted(80)
    run = side([*turns(a, mode="local/one"), *turns(b, mode="local/two")])
    (entry,) = compare(run, run, modes=["local/one"], against="local/two").modes
    assert (entry.mode_a, entry.mode_b, entry.verdict) == ("local/one", "local/two", Verdict.SLOWER)


def test_a_run_against_itself_shows_no_difference() -> None:
    """The same run on both sides differs by 0 in every figure, and is told to be the same run."""
    run = side(turns(shifted(0)[0]))
    told = compare(run, run)
    assert told.modes[0].voice_to_voice.p50.difference == 0
    assert told.modes[0].verdict is Verdict.CANNOT_TELL
    assert told.modes[0].voice_to_voice.paired.interval == (0, 0)
    assert told.modes[0].budget.interval == pytest.approx((-0.0596, 0.0596), abs=1e-4)
    assert [caveat.code for caveat in told.caveats] == ["same_run"]


def test_what_is_not_comparable_is_refused_with_the_reason() -> None:
    """Other anchors, other budgets, no common sample, no common mode, an unknown mode: each is refused."""
    a = side(turns([700.0] * 10))
    with pytest.raises(BadRequest, match="annotated in A and waveform in B"):
        compare(a, side(turns([700.0] * 10, anchor="waveform"), "run-b"))
    with pytest.raises(BadRequest, match="800 ms in run-a and 700 ms in run-b"):
        compare(a, side(turns([700.0] * 10), "run-b", budget_ms=700))
    others = [made(n, sample=f"other-{n}") for n in range(10)]
    with pytest.raises(BadRequest, match="no sample and repeat is in both"):
        compare(a, side(others, "run-b"))
    with pytest.raises(BadRequest, match="No mode is in both runs"):
        compare(a, side(turns([700.0] * 10, mode="local/two"), "run-b"))
    with pytest.raises(BadRequest, match="no turns of the mode 'local/gone'"):
        compare(a, a, modes=["local/gone"])
    with pytest.raises(BadRequest, match="one --mode"):
        compare(a, a, against="local/made")
    with pytest.raises(BadRequest, match="the same mode of the same run"):
        compare(a, a, modes=["local/made"], against="local/made")


def test_what_else_differs_between_the_runs_is_told() -> None:
    """Machines, versions and configurations that differ are told with both values, as is a left-out mode."""
    a, b = (turns(values) for values in shifted(0))
    extra = turns([700.0] * 3, mode="local/two")
    told = compare(
        side([*a, *extra], environment={"cores": 2}, versions={"numpy": "1"}, config={"vad": {"stop": 0.2}}),
        side(b, "run-b", environment={"cores": 8}, versions={"numpy": "2"}, config={"vad": {"stop": 0.3}}),
    )
    texts = {caveat.code: caveat.text for caveat in told.caveats}
    assert "cores 2 → 8" in texts["different_machines"]
    assert "numpy 1 → 2" in texts["different_versions"]
    assert "vad.stop 0.2 → 0.3" in texts["different_configs"]
    assert "local/two" in texts["modes_only_a"]


def test_an_anchor_of_one_side_alone_is_left_out_and_told() -> None:
    """Where a mode has a second anchor in one run, the shared one is compared and the other is told."""
    a, b = (turns(values) for values in shifted(0))
    told = compare(side([*a, made(99, sample="x", anchor="waveform")]), side(b, "run-b"))
    assert [entry.anchor.value for entry in told.modes] == ["annotated"]
    assert any("waveform" in caveat.text for caveat in told.caveats if caveat.code == "not_comparable")


def test_the_plain_form_is_strict_json() -> None:
    """`to_dict` survives strict JSON unchanged, with a verdict for every figure."""
    a, b = shifted(80)
    told = compare(side(turns(a)), side(turns(b), "run-b")).to_dict()
    assert parse_strict_json(strict_json(told)) == told
    (entry,) = told["modes"]
    assert entry["verdict"] == "slower"
    assert entry["voice_to_voice_ms"]["paired"]["confidence"] == 0.95
    assert list(entry["stages_ms"]) == [
        "endpointing", "asr", "turn", "dispatch", "llm_ttfat", "clause", "tts", "playout",
    ]  # fmt: skip


def test_runs_at_different_paces_are_not_compared() -> None:
    """A run whose recordings were sped up is compared with its like only; its report says so."""
    a, b = (turns(values) for values in shifted(0))
    sped_up: dict[str, Any] = {"config": {"pace": "tail"}}
    with pytest.raises(BadRequest, match="different paces"):
        compare(side(a), side(b, "run-b", **sped_up))
    told = compare(side(a, **sped_up), side(b, "run-b", **sped_up))
    assert told.modes
    for facts, expected in ((sped_up, True), ({}, False)):
        report = build_report(RunInfo.model_validate(run_info(a, **facts)), a)
        assert ("tail_pace" in {caveat.code for caveat in report.caveats}) is expected
