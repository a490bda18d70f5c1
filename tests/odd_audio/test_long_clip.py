"""A clip of ten minutes is spoken at its own pace from the first frame to the last, on a made-up clock."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest
from pipecat.frames.frames import InputAudioRawFrame

from voicebench.audio import file_source
from voicebench.audio.file_source import FRAME_MS, RATE, FileSource
from voicebench.clock import NS_PER_MS, NS_PER_S

MINUTES = 10
FRAMES = MINUTES * 60 * 1000 // FRAME_MS
STALLED = range(15_000, 30_000, 5_000)
"""After these frames everything stands still for 0.3 s."""


class Done(Exception):
    """The last frame has come."""


@pytest.mark.parametrize("seed", [1, 2])
async def test_ten_minutes_do_not_drift(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Though every sleep oversleeps, every frame takes time to hand on and the loop stalls, no frame comes
    before its instant, none but those of a stall 20 ms after it, and the last one least of all."""
    chance = random.Random(seed)
    clock = [7 * NS_PER_S + 123]
    late: list[float] = []

    async def sleep(seconds: float) -> None:
        clock[0] += round(seconds * NS_PER_S) + chance.randrange(3 * NS_PER_MS)

    async def take(frame: InputAudioRawFrame) -> None:
        due = start + (len(late) + 1) * FRAME_MS * NS_PER_MS
        late.append((clock[0] - due) / NS_PER_MS)
        clock[0] += chance.randrange(NS_PER_MS)
        if len(late) in STALLED:
            clock[0] += 300 * NS_PER_MS
        if len(late) == FRAMES:
            raise Done

    source = FileSource()
    monkeypatch.setattr(file_source, "now_ns", lambda: clock[0])
    monkeypatch.setattr(source, "push_audio_frame", take)
    monkeypatch.setattr(source, "create_task", lambda work, name: asyncio.ensure_future(work))
    playback = source.play(np.zeros(MINUTES * 60 * RATE, dtype=np.int16), lead_in_ms=0)
    start = playback.start_ns
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert source._pump is not None
    with pytest.raises(Done):
        await source._pump
    assert min(late) >= 0.0
    stalled = {frame + more for frame in STALLED for more in range(20)}
    assert max(value for frame, value in enumerate(late) if frame not in stalled) <= 20.0
    assert late[-1] <= 4.0
    assert playback.worst_late_ns >= 270 * NS_PER_MS, "a stall is told"
