"""`voicebench report`: any run opens, what is for programs is on standard output alone."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tests.analysis.made_run import made_run
from tests.turns.made import made
from voicebench.cli.report import report
from voicebench.errors import BadRequest, RunProblem
from voicebench.turns.run_folder import RunFolder

app = typer.Typer()
app.command()(report)


def call(*arguments: str | Path) -> Result:
    """The command with these arguments; its errors come out."""
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run of 120 turns."""
    info, records = made_run()
    folder = RunFolder.create(tmp_path / "run")
    folder.start(info["planned"], modes=info["modes"], noise_floor_ms=4.2, noise_floor_reason=None)
    with folder.journal() as journal:
        for record in records:
            journal.append(record)
    folder.finish(complete=True)
    return folder


def test_a_run_is_told_and_written(run: RunFolder) -> None:
    """The table is printed and the formats asked for lie in the run's folder."""
    result = call(run.path, "--format", "json,csv,markdown")
    assert result.exit_code == 0
    assert "Voice-to-voice latency" in result.stdout
    for name in ("report.json", "report.csv", "report.md"):
        assert (run.path / name).is_file()
        assert name in result.stderr


def test_json_is_alone_on_standard_output(run: RunFolder) -> None:
    """With --json, standard output is the very object of report.json, and the table is on standard error."""
    result = call(run.path, "--json")
    told = json.loads(result.stdout)
    assert told == json.loads((run.path / "report.json").read_text(encoding="utf-8"))
    assert told["run"]["complete"] is True
    assert "Voice-to-voice latency" in result.stderr


def test_a_killed_run_opens_with_every_finished_turn(run: RunFolder) -> None:
    """A journal cut anywhere and a run never closed give a partial report of all whole lines."""
    journal = run.path / "turns.jsonl"
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2])
    whole = data[: len(data) // 2].count(b"\n")
    run.update(complete=False, ended_at=None)
    result = call(run.path, "--json")
    told = json.loads(result.stdout)
    assert told["run"]["complete"] is False
    assert sum(entry["turns"]["planned"] - entry["turns"]["not_run"] for entry in told["modes"]) == whole
    assert sum(entry["turns"]["planned"] for entry in told["modes"]) == 120
    assert {"partial_run", "torn_journal"} <= {caveat["code"] for caveat in told["caveats"]}
    assert "PARTIAL" in result.stderr


def test_every_turn_has_a_waterfall_with_verbose(tmp_path: Path) -> None:
    """--verbose shows a line and the stages of each turn."""
    folder = RunFolder.create(tmp_path / "run")
    folder.start([])
    with folder.journal() as journal:
        journal.append(made(0))
        journal.append(made(1, outcome="timed_out", reason="no reply"))
    result = call(folder.path, "--verbose")
    assert result.stdout.count("endpointing") >= 2
    assert "100 ms within the budget of 800 ms" in result.stdout
    assert "timed_out: no reply" in result.stdout


def test_several_runs_are_told_one_after_the_other(run: RunFolder) -> None:
    """Two folders give two tables; with --out only one run is allowed."""
    assert call(run.path, run.path).stdout.count("Voice-to-voice latency (ms)") == 2
    with pytest.raises(BadRequest, match="takes one run"):
        call(run.path, run.path, "--out", run.path)


def test_wrong_requests_are_told(run: RunFolder, tmp_path: Path) -> None:
    """An unknown format lists the known ones, a folder that is no run says so, and nothing is written."""
    with pytest.raises(BadRequest) as unknown:
        call(run.path, "--format", "pdf")
    assert "json, csv, markdown" in str(unknown.value)
    with pytest.raises(RunProblem, match="no run folder"):
        call(tmp_path / "gone")
    assert not (run.path / "report.json").exists()


def test_loading_the_command_loads_no_library() -> None:
    """The command's module brings in typer alone: no rich, numpy or pydantic until it runs."""
    code = (
        "import sys, typer; before = set(sys.modules); import voicebench.cli.report;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new & {'rich', 'numpy', 'pydantic', 'pipecat'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_telling_a_run_needs_no_pipeline_and_no_provider(run: RunFolder) -> None:
    """Reading, analysing and exporting import neither pipecat, nor a provider's SDK, nor an audio library."""
    code = (
        "import sys; from pathlib import Path; from voicebench.cli.report import report;"
        f"report([Path({str(run.path)!r})], formats='json,csv,markdown');"
        "print(sorted({n.split('.')[0] for n in sys.modules}"
        " & {'pipecat', 'openai', 'anthropic', 'sounddevice', 'soundfile', 'soxr'}), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.strip().splitlines()[-1] == "[]"


def test_the_verdict_is_in_json_and_markdown(run: RunFolder) -> None:
    """Both tell in the same words what is to be said first; JSON has the predictions beside it."""
    call(run.path, "--format", "json,markdown")
    verdict = json.loads((run.path / "report.json").read_text("utf-8"))["verdict"]
    told = (run.path / "report.md").read_text("utf-8").replace("\\", "")
    for words in (verdict["headline"], verdict["left"], verdict["bottleneck"], verdict["advice"] or ""):
        assert words in told
    assert {one["code"] for one in verdict["predictions"]} >= {"llm_infinite", "asr_infinite", "tts_infinite"}


def test_recordings_are_put_into_the_page_or_linked_from_where_it_lies(tmp_path: Path) -> None:
    """--embed-audio needs html and holds the bytes; without it, links lead to the run from any folder."""
    folder = RunFolder.create(tmp_path / "run")
    (folder.audio_folder() / "0.flac").write_bytes(b"fLaC-bytes")
    folder.start([])
    with folder.journal() as journal:
        journal.append(made(0, audio="audio/0.flac"))
    call(folder.path, "--format", "html")
    assert "src=audio/0.flac" in (folder.path / "report.html").read_text("utf-8")
    call(folder.path, "--format", "html", "--out", tmp_path / "elsewhere" / "my.html")
    assert "../run/audio/0.flac" in (tmp_path / "elsewhere" / "my.html").read_text("utf-8")
    call(folder.path, "--format", "html", "--embed-audio")
    assert base64.b64encode(b"fLaC-bytes").decode() in (folder.path / "report.html").read_text("utf-8")
    with pytest.raises(BadRequest, match="format html"):
        call(folder.path, "--embed-audio")
