"""Ctrl-C with several sessions: a partial report in time, and a run that can be gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.running import SCRIPTED, voicebench
from tests.pipeline.driven import clip
from tests.recorded import write_wav
from voicebench.turns.run_folder import RunFolder


def config_file(folder: Path) -> Path:
    """Scripted stages and a dozen short recordings."""
    for number in range(3):
        write_wav(folder / "audio" / f"s{number}.wav", clip(0.3))
    path = folder / "scripted.yaml"
    energy = "vad: {kind: energy, start_secs: 0.1, stop_secs: 0.2}"
    path.write_text(f"{SCRIPTED}repeats: 3\n{energy}\n", "utf-8")
    return path


def test_sessions_that_are_interrupted_are_resumed_as_many(tmp_path: Path) -> None:
    """Ctrl-C leaves a partial report within two seconds; resumed, with as many sessions and at the same rate,
    the run holds each turn once."""
    (tmp_path / "audio").mkdir()
    config = config_file(tmp_path)
    command = [sys.executable, "-m", "voicebench", "batch", "audio", "--config", str(config)]
    process = subprocess.Popen(
        [*command, "--out", "run", "--sessions", "3", "--rate", "20"],
        cwd=tmp_path,
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = (line for line in process.stderr if " ms" in line)
    next(lines)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    took_s = time.monotonic() - began
    run_folder = RunFolder.open(tmp_path / "run")
    before = run_folder.turns()
    assert not run_folder.info().complete
    assert 1 <= len(before.records) < 9
    assert before.problems == ()
    assert process.returncode == 130
    partial = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert partial["run"]["complete"] is False
    assert "partial" in (tmp_path / "run" / "report.html").read_text("utf-8").lower()
    assert took_s <= 2.0, "a partial report within two seconds"
    done = voicebench("batch", "--resume", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = run_folder.turns().records
    keys = [(one.mode, one.sample, one.repeat) for one in after]
    assert len(keys) == len(set(keys)) == 9
    assert after[: len(before.records)] == before.records
    assert {one.session for one in after} == {0, 1, 2}
    assert all(one.queue_ms is not None for one in after)
