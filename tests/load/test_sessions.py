"""Conversations at the same time: each has its own pipeline, and nothing of one is in another's record."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.running import SCRIPTED, voicebench
from tests.pipeline.driven import clip, scripted
from tests.recorded import write_wav
from tests.test_runner import Listener, spoken
from voicebench.audio.manifest import Sample
from voicebench.load import LoadPlan
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome
from voicebench.turns.run_folder import RunFolder

SESSIONS = 6


def lengths(folder: Path, count: int) -> list[Sample]:
    """Recordings of different lengths, so that a turn that heard another's sound would show."""
    samples = []
    for number in range(count):
        seconds = 0.2 + 0.1 * (number % 4)
        path = write_wav(folder / f"s{number}.wav", clip(seconds))
        samples.append(Sample(id=f"s{number}", path=path, transcript="x", segments=((0.0, seconds),)))
    return samples


def descriptors() -> int:
    """So many are open in this process; 0 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except FileNotFoundError:
        return 0


async def test_six_conversations_at_once_do_not_meet(tmp_path: Path) -> None:
    """Twenty-four turns in six sessions: every one completed with its own latency, each session has had its
    own warm-up, most ran at once, and no task, descriptor or collector setting is left behind."""
    open_before = descriptors()
    samples = lengths(tmp_path, 12)
    config = scripted(repeats=2, warmup_turns=1, turn_timeout_s=10)
    listener = Listener()
    options = RunOptions(out=tmp_path / "run", load=LoadPlan(SESSIONS), keep_audio=True)
    folder = await run(make_plan(config, samples), options, listener)
    records = folder.turns().records
    assert folder.info().complete
    assert len(records) == 24
    assert {(one.mode, one.sample, one.repeat) for one in records} == {
        (one.mode, one.sample, one.repeat) for one in folder.info().planned
    }
    assert {one.outcome for one in records} == {Outcome.COMPLETED}
    assert {one.session for one in records} == set(range(SESSIONS))
    assert len(folder.warmup().records) == SESSIONS
    assert folder.info().load is not None
    assert folder.info().load["most_at_once"] == SESSIONS  # type: ignore[index]
    assert len({one.audio for one in records}) == 24
    for one in records:
        # The voice waits for the person of its own session: a stray sound would be a cutoff or come early.
        assert one.voice_to_voice_ms is not None
        assert one.voice_to_voice_ms > 200
        assert one.cutoffs == 0
        assert one.queue_ms is None
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()]
    assert left == []
    assert gc.isenabled()
    assert descriptors() <= open_before + 2


async def test_turns_on_a_schedule_wait_for_a_session(tmp_path: Path) -> None:
    """More turns are due than one session can hold: each later one waits longer, and its latency from the
    schedule is the wait and V2V."""
    samples = [spoken(tmp_path, f"s{n}") for n in range(3)]
    options = RunOptions(out=tmp_path / "run", load=LoadPlan(1, 4.0))
    folder = await run(make_plan(scripted(turn_timeout_s=10), samples), options, Listener())
    records = sorted(folder.turns().records, key=lambda one: one.turn)
    waits = [one.queue_ms or 0.0 for one in records]
    assert waits == sorted(waits)
    assert waits[2] > waits[1] > 250
    for one in records:
        assert one.service_ms == one.voice_to_voice_ms
        assert one.from_schedule_ms == pytest.approx((one.queue_ms or 0.0) + (one.service_ms or 0.0))


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
