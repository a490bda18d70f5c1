"""`voicebench check`: a run is held against limits, and says what was asked, found, and would prove it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.made_pairs import turns
from tests.cli.made_runs import call, folder
from tests.cli.running import voicebench
from tests.turns.made import made
from voicebench.errors import BadRequest
from voicebench.turns.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """60 turns from 700 to 759 ms."""
    return folder(tmp_path / "run", turns([700.0 + n for n in range(60)]))


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (["--p50-ms", "745"], 0),
        (["--p50-ms", "715"], 1),
        (["--p50-ms", "730"], 3),
        (["--p95-ms", "759"], 0),
        (["--p95-ms", "745"], 1),
        (["--p95-ms", "757"], 3),
        (["--hit-rate", "0.9"], 0),
        (["--hit-rate", "0.95"], 3),
        (["--cutoff-rate", "0.1"], 0),
        (["--cutoff-rate", "0.01"], 3),
        (["--p95-ms", "745", "--hit-rate", "0.95"], 1),
        (["--p50-ms", "745", "--hit-rate", "0.95"], 3),
    ],
)
def test_the_status_separates_pass_breach_and_not_proven(run: Path, limits: list[str], status: int) -> None:
    """0 where every limit is proven, 1 where one is breached, else 3; the object says the same."""
    result = call("check", run, "--json", *limits)
    assert result.exit_code == json.loads(result.stdout)["exit_status"] == status


def test_what_was_asked_found_and_would_prove_it(run: Path, tmp_path: Path) -> None:
    """The table names the limit, the figure, n, and how many turns it takes; with so many it is proven."""
    result = call("check", run, "--hit-rate", "0.95")
    assert "not proven" in result.stdout
    assert "at least 95.0 %" in result.stdout
    assert "about 73 turns like these" in " ".join(result.stdout.split())
    for n, status in ((72, 3), (73, 0)):
        more = folder(tmp_path / f"more-{n}", turns([700.0] * n))
        assert call("check", more, "--hit-rate", "0.95").exit_code == status


def test_a_p95_needs_59_turns(tmp_path: Path) -> None:
    """58 turns far within a limit on p95 prove nothing, 59 do; one turn far beyond it is a breach."""
    for n, status in ((58, 3), (59, 0)):
        few = folder(tmp_path / f"run-{n}", turns([500.0] * n))
        assert call("check", few, "--p95-ms", "800").exit_code == status
    result = call("check", tmp_path / "run-58", "--p95-ms", "800")
    assert "at least 59 turns that count" in result.stdout
    assert call("check", tmp_path / "run-58", "--p95-ms", "400").exit_code == 1


def test_failed_turns_outrank_a_breach_and_only_those_of_the_modes_held(tmp_path: Path) -> None:
    """A failed turn gives status 4 even where a limit is breached; another mode's failure does not."""
    good = turns([700.0] * 60, mode="x/good")
    bad = [*turns([900.0] * 60, mode="x/bad"), made(60, mode="x/bad", outcome="timed_out", reason="late")]
    run = folder(tmp_path / "run", [*good, *bad])
    assert call("check", run, "--p50-ms", "800").exit_code == 4
    assert call("check", run, "--p50-ms", "800", "--mode", "x/good").exit_code == 0
    result = call("check", run, "--p50-ms", "800", "--mode", "x/bad", "--json")
    told = json.loads(result.stdout)
    assert (told["failed_turns"], told["status"]) == (1, "some turns failed")
    assert told["checks"][0]["finding"] == "breach"


def test_every_mode_is_held(tmp_path: Path) -> None:
    """Without --mode one mode beyond the limit is a breach, though the other is within."""
    records = [*turns([700.0] * 60, mode="x/good"), *turns([900.0] * 60, mode="x/bad")]
    run = folder(tmp_path / "run", records)
    result = call("check", run, "--p50-ms", "800", "--json")
    findings = {check["mode"]: check["finding"] for check in json.loads(result.stdout)["checks"]}
    assert findings == {"x/good": "pass", "x/bad": "breach"}
    assert result.exit_code == 1


def test_a_run_without_a_turn_that_counts_proves_nothing(tmp_path: Path) -> None:
    """Where no turn gave a latency, limits are not proven and figures are empty."""
    run = folder(tmp_path / "run", [made(n, outcome="interrupted", reason="spoke again") for n in range(3)])
    result = call("check", run, "--p50-ms", "800", "--p95-ms", "800", "--hit-rate", "0.5", "--json")
    assert result.exit_code == 3
    assert [check["found"] for check in json.loads(result.stdout)["checks"]] == [None, None, None]


def test_a_partial_run_and_repeats_are_noted(tmp_path: Path) -> None:
    """A run that was not finished, and repeats that pass for independent, are told beside the findings."""
    run = folder(tmp_path / "run", turns([700.0] * 60, repeats=5))
    RunFolder.open(run).update(complete=False)
    notes = json.loads(call("check", run, "--p50-ms", "800", "--json").stdout)["notes"]
    assert any("not finished" in note for note in notes)
    assert any("60 turns of 12 samples" in note for note in notes)


def test_wrong_requests_are_told(run: Path) -> None:
    """No limit, an unknown mode, a share above 1, a negative duration: each refused with a remedy."""
    with pytest.raises(BadRequest, match="no limit"):
        call("check", run)
    with pytest.raises(BadRequest, match="no mode 'x/gone'"):
        call("check", run, "--p50-ms", "1", "--mode", "x/gone")
    with pytest.raises(BadRequest, match="no share"):
        call("check", run, "--hit-rate", "95")
    with pytest.raises(BadRequest, match="no duration"):
        call("check", run, "--p50-ms", "-1")


def test_the_process_ends_with_the_status(run: Path, tmp_path: Path) -> None:
    """From a shell: 0, 1, 2 and 3 as documented, and never a traceback."""
    statuses = [
        voicebench("check", run, *limits, cwd=tmp_path)
        for limits in (["--p50-ms", "800"], ["--p50-ms", "600"], [], ["--hit-rate", "0.99"])
    ]
    assert [done.returncode for done in statuses] == [0, 1, 2, 3]
    assert not any("Traceback" in done.stderr for done in statuses)


def test_loading_the_commands_loads_no_library() -> None:
    """The modules of check and compare bring in typer alone until they run."""
    code = (
        "import sys, typer; before = set(sys.modules); import voicebench.cli.check, voicebench.cli.compare;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new & {'rich', 'numpy', 'pydantic', 'pipecat'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
