"""`voicebench compare`: the comparison is told, alone as JSON, and as a gate by its status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.made_pairs import latencies, turns
from tests.cli.made_runs import call, folder
from tests.turns.made import made
from voicebench.errors import BadRequest, RunProblem


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    """A run, one like it, one 80 ms slower, and one of six turns."""
    a, b = latencies(np.random.default_rng(5), 60, 1, 0, 0)
    return {
        "a": folder(tmp_path / "a", turns(a)),
        "same": folder(tmp_path / "same", turns(b)),
        "slow": folder(tmp_path / "slow", turns([value + 80 for value in b])),
        "few": folder(tmp_path / "few", turns(b[:6])),
    }


def test_a_comparison_is_told_in_words_and_figures(runs: dict[str, Path]) -> None:
    """The verdict stands in a sentence with its interval and n, and every figure in a table; status 0."""
    result = call("compare", runs["a"], runs["slow"])
    assert result.exit_code == 0
    assert "local/made (annotated): B is slower (+" in result.stdout
    assert "n = 60 pairs of 60 samples" in result.stdout
    for row in ("V2V, paired", "V2V p95", "within 800 ms", "llm_ttfat", "playout"):
        assert row in result.stdout


def test_json_is_alone_on_standard_output(runs: dict[str, Path]) -> None:
    """With --json, standard output is one object, and the table is on standard error."""
    result = call("compare", runs["a"], runs["slow"], "--json")
    told = json.loads(result.stdout)
    assert told["modes"][0]["verdict"] == "slower"
    assert told["gate"] is None
    assert "V2V, paired" in result.stderr


@pytest.mark.parametrize(
    ("other", "limits", "status", "told"),
    [
        ("a", [], 0, "pass"),
        ("same", [], 0, "pass"),
        ("slow", [], 1, "breach"),
        ("few", [], 3, "not proven"),
        ("slow", ["--p50-ms", "20"], 1, "breach"),
        ("slow", ["--p50-ms", "200", "--p95-ms", "300"], 0, "pass"),
        ("same", ["--p50-ms", "1"], 3, "not proven"),
        ("few", ["--p95-ms", "50"], 3, "not proven"),
        ("same", ["--hit-rate", "0.3", "--cutoff-rate", "0.1"], 0, "pass"),
        ("slow", ["--hit-rate", "0.02"], 1, "breach"),
    ],
)
def test_a_gate_separates_pass_breach_and_not_proven(
    runs: dict[str, Path], other: str, limits: list[str], status: int, told: str
) -> None:
    """The exit status and the object agree, with what would prove it where it is not proven."""
    result = call("compare", runs["a"], runs[other], "--gate", "--json", *limits)
    gate = json.loads(result.stdout)["gate"]
    assert result.exit_code == gate["exit_status"] == status
    assert gate["status"] == told
    for check in gate["checks"]:
        assert (check["needs"] is not None) == (check["finding"] == "not proven")


def test_turns_of_b_that_failed_outrank_a_breach(runs: dict[str, Path], tmp_path: Path) -> None:
    """A slower run in which a turn failed ends with status 4; failed turns of A alone do not."""
    slow = turns([900.0] * 59)
    failed = [*slow, made(59, sample="sample-059", outcome="failed", reason="gone")]
    broken = folder(tmp_path / "broken", failed)
    assert call("compare", runs["a"], broken, "--gate").exit_code == 4
    assert call("compare", broken, runs["a"], "--gate").exit_code == 0


def test_two_modes_of_one_run(tmp_path: Path) -> None:
    """--mode against --against within one run: the first is A, the second B."""
    a, b = latencies(np.random.default_rng(5), 60, 1, 80, 0)
    run = folder(tmp_path / "run", [*turns(a, mode="x/one"), *turns(b, mode="x/two")])
    result = call("compare", run, "--mode", "x/one", "--against", "x/two")
    assert "A x/one, B x/two (annotated): B is slower" in result.stdout


def test_wrong_requests_are_told(runs: dict[str, Path], tmp_path: Path) -> None:
    """One run without a mode against, three runs, a folder that is no run, a limit that is none: refused."""
    with pytest.raises(BadRequest, match="takes two runs, and one is named"):
        call("compare", runs["a"])
    with pytest.raises(BadRequest, match="3 are named"):
        call("compare", runs["a"], runs["a"], runs["a"])
    with pytest.raises(RunProblem, match="no run folder"):
        call("compare", runs["a"], tmp_path / "gone")
    with pytest.raises(BadRequest, match="hit-rate 2 is no share"):
        call("compare", runs["a"], runs["same"], "--hit-rate", "2")


def test_hostile_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """A mode and a sample with escapes in their names print as plain text."""
    records = [made(n, mode="x/\x1b[2Jone", sample=f"\x1b]0;t\x07{n}") for n in range(8)]
    run = folder(tmp_path / "run", records)
    result = call("compare", run, run)
    assert result.exit_code == 0
    assert "\x1b[2J" not in result.stdout
