"""Drive the paced source alone and see when its frames come."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from pipecat.frames.frames import InputAudioRawFrame

from voicebench.audio.file_source import RATE, FileSource
from voicebench.clock import ms, now_ns


async def last_frame_late_ms(seconds: float) -> float:
    """How late the last frame of a clip of so many seconds enters the pipeline."""
    source = FileSource()
    arrivals: list[int] = []
    done = asyncio.Event()
    frames = round(seconds * 50)

    async def take(frame: InputAudioRawFrame) -> None:
        arrivals.append(now_ns())
        if len(arrivals) == frames:
            done.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "push_audio_frame", take)
        patch.setattr(source, "create_task", lambda work, name: asyncio.ensure_future(work))
        playback = source.play(np.zeros(round(seconds * RATE), dtype=np.int16), lead_in_ms=0)
        await asyncio.wait_for(done.wait(), seconds + 5.0)
        assert source._pump is not None
        source._pump.cancel()
        await asyncio.gather(source._pump, return_exceptions=True)
    return ms(arrivals[-1] - playback.end_ns)
