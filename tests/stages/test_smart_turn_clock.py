"""Smart Turn's wait for a late transcript: a wall clock that is set while it judges moves nothing."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from voicebench.clock import NS_PER_MS
from voicebench.plan.config import Vad
from voicebench.stages import turn
from voicebench.stages.shared import WorkLog
from voicebench.stages.turn import SmartTurnSettings, build_smart_turn

TRANSCRIPT_WAIT_S, STOP_S, JUDGING_MS = 1.0, 0.2, 60


class Tasks:
    """Runs what the strategy starts when the test says so."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def create_task(self, work: Any, name: str) -> None:
        """Keep it."""
        self.made.append(work)


@pytest.mark.parametrize("step_s", [0.0, 3600.0, -3600.0])
async def test_the_wait_is_the_same_whatever_becomes_of_the_wall_clock(
    step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one second after the speech 200 ms were the detector's and 60 ms Smart Turn's: 740 ms are left,
    also where the clock was set by an hour while it judged."""
    from pipecat.audio.turn.base_turn_analyzer import EndOfTurnState
    from pipecat.frames.frames import VADUserStoppedSpeakingFrame

    now = 1_000 * NS_PER_MS
    wall = time.time()
    waits: list[float] = []
    monkeypatch.setattr(turn, "now_ns", lambda: now)
    monkeypatch.setattr(time, "time", lambda: wall)
    [strategy] = build_smart_turn(SmartTurnSettings(), Vad(), WorkLog()).stop
    tasks = Tasks()
    strategy._task_manager = tasks
    strategy._stt_timeout = TRANSCRIPT_WAIT_S

    async def judged() -> tuple[EndOfTurnState, None]:
        nonlocal now, wall
        now += JUDGING_MS * NS_PER_MS
        wall += step_s
        return EndOfTurnState.COMPLETE, None

    async def slept(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(strategy._turn_analyzer, "analyze_end_of_turn", judged)
    await strategy._handle_vad_user_stopped_speaking(VADUserStoppedSpeakingFrame(stop_secs=STOP_S))
    [waiting] = tasks.made
    monkeypatch.setattr(asyncio, "sleep", slept)
    await waiting
    assert waits == pytest.approx([TRANSCRIPT_WAIT_S - STOP_S - JUDGING_MS / 1000])
    await strategy._turn_analyzer.cleanup()
