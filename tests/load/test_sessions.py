"""Conversations at the same time: each has its own pipeline, and nothing of one is in another's record."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from tests.pipeline.driven import clip, scripted
from tests.recorded import write_wav
from tests.test_runner import Listener, spoken
from voicebench.audio.manifest import Sample
from voicebench.load import LoadPlan
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome

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
