"""Run folders that somebody made to harm: told in words and bounded time, with nothing written outside."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.__main__ import main
from voicebench.audio.recorder import Recording, write
from voicebench.errors import RunProblem
from voicebench.turns.journal import journal_line
from voicebench.turns.run_folder import RunFolder

FORMATS = "html,json,csv,markdown,parquet,trace,otel"
DEEP = "[" * 100_000 + "]" * 100_000
SECRET = "what is none of its business"
Harm = Callable[[Path], None]


def folder_of_a_run(place: Path) -> Path:
    """A run of two turns with a recording each."""
    records = [made(turn, audio="audio/x.flac") for turn in range(2)]
    run = place / "run"
    (run / "audio").mkdir(parents=True)
    (run / "audio" / "x.flac").write_bytes(b"fLaC")
    (run / "run.json").write_text(json.dumps(run_info(records)), "utf-8")
    (run / "turns.jsonl").write_bytes(b"".join(journal_line(one) + b"\n" for one in records))
    return run


def pipe(name: str) -> Harm:
    """A pipe in place of this file."""

    def harm(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return harm


def link(name: str, target: str) -> Harm:
    """A link in place of this file."""

    def harm(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(target)

    return harm


def info(**fields: Any) -> Harm:
    """`run.json` with other values."""

    def harm(run: Path) -> None:
        told = json.loads((run / "run.json").read_text("utf-8"))
        (run / "run.json").write_text(json.dumps(told | fields), "utf-8")

    return harm


def deep(name: str) -> Harm:
    """A file whose last line holds values nested without end."""

    def harm(run: Path) -> None:
        text = (run / name).read_text("utf-8").rstrip()
        (run / name).write_text(f'{text[:-1]}, "more": {DEEP}, "note": "NaN"}}\n', "utf-8")

    return harm


def turn(**fields: Any) -> Harm:
    """A third turn with these values."""

    def harm(run: Path) -> None:
        told = json.loads(journal_line(made(2)))
        with (run / "turns.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(told | fields) + "\n")

    return harm


def vast(name: str) -> Harm:
    """A file that is 40 GB of nothing, none of it on the disk."""

    def harm(run: Path) -> None:
        os.truncate(run / name, 40 << 30)

    return harm


REFUSED: dict[str, Harm] = {
    "journal is a pipe": pipe("turns.jsonl"),
    "warm-up is a pipe": pipe("warmup.jsonl"),
    "run.json is a pipe": pipe("run.json"),
    "a draft is a pipe": pipe(".report.html.draft"),
    "a draft is a link": link(".report.html.draft", "../outside"),
    "journal is endless": link("turns.jsonl", "/dev/zero"),
    "run.json is endless": link("run.json", "/dev/zero"),
    "run.json is no run": link("run.json", "../secret"),
    "vast journal": vast("turns.jsonl"),
    "vast run.json": vast("run.json"),
    "deep run.json": deep("run.json"),
    "slots": info(slots_ms=[400, 1e308]),
    "budget": info(budget_ms=-1),
    "budget of the config": info(config={"budget_ms": "800"}),
    "slots of the config": info(config={"slots_ms": ["x"]}),
    "load": info(load={"sessions": "many", "rate_per_s": []}),
    "usd": turn(usd=1e308),
    "marks": turn(marks_ns={"llm_request": 10**30}),
    "repeat": turn(repeat=10**30),
}
TOLD: dict[str, Harm] = {
    "deep turn": deep("turns.jsonl"),
    "instants": info(started_at="0001-01-01T00:00:00+14:00"),
    "lone surrogates": info(config={"\ud800": "\ud800"}, started_at="\ud800"),
    "a recording is a pipe": pipe("audio/x.flac"),
    "a recording is endless": link("audio/x.flac", "/dev/zero"),
    "a recording is vast": vast("audio/x.flac"),
    "a recording is elsewhere": link("audio/x.flac", "../../secret.flac"),
    "a report is a link": link("report.json", "../outside"),
    "a turn of another version": turn(outcome="vanished"),
}


@pytest.mark.parametrize("name", [*REFUSED, *TOLD])
def test_a_hostile_run_is_told_or_refused_in_words(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What no run writes is refused with status 2, or passed over; nothing is waited for, and no file outside
    of the run is read into a report or written."""
    run = folder_of_a_run(tmp_path)
    for elsewhere in ("secret", "secret.flac"):
        (tmp_path / elsewhere).write_text(SECRET, "utf-8")
    (REFUSED | TOLD)[name](run)
    status = main(["report", str(run), "--format", FORMATS, "--embed-audio"])
    told = capsys.readouterr()
    assert status == (2 if name in REFUSED else 0), told.err
    assert len(told.err) < 1500
    assert SECRET not in told.err + told.out
    assert not (tmp_path / "outside").exists()
    calm = folder_of_a_run(tmp_path / "calm")
    assert main(["compare", str(calm), str(run)]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
    if name in TOLD:
        for suffix in ("html", "json", "csv", "md", "parquet", "trace.json", "otlp.json"):
            file = run / f"report.{suffix}"
            assert not file.is_symlink()
            assert file.stat().st_mode & 0o777 == 0o600
            content = file.read_bytes()
            assert SECRET.encode() not in content
            assert base64.b64encode(SECRET.encode()) not in content


def test_no_recording_is_written_through_a_link(tmp_path: Path) -> None:
    """A link in place of the audio folder, or of a recording that is being written, is not followed."""
    import numpy as np

    run = folder_of_a_run(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (run / "audio" / "x.flac").unlink()
    (run / "audio").rmdir()
    (run / "audio").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunProblem, match="is a link"):
        RunFolder.open(run).audio_folder()
    (tmp_path / ".a.flac.part").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        write(Recording(np.zeros((8, 2), dtype=np.float32), 0, (0, 8)), tmp_path / "a.flac")
    assert not (tmp_path / "victim").exists()
