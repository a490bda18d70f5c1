"""A clip that is sped up to its tail: the same frames in the same order, in real time where it matters."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()  # before pipecat is imported by what we test

from pipecat.frames.frames import InputAudioRawFrame  # noqa: E402

from voicebench.audio.file_source import (  # noqa: E402
    FRAME_MS,
    FRAME_SAMPLES,
    RATE,
    FileSource,
    Playback,
    Tail,
)
from voicebench.clock import NS_PER_MS, now_ns  # noqa: E402


@dataclass
class Listener:
    """Takes a source's frames and judges each as a detector does: by what stands in `states`."""

    states: dict[int, str] = field(default_factory=dict)
    """From this frame on, this state; `quiet` before the first."""
    deaf_from: int | None = None
    """From this frame on nothing is judged."""
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    samples: int = 0
    state: str = "quiet"

    async def take(self, frame: InputAudioRawFrame) -> None:
        """Judge a frame at once."""
        index = len(self.frames)
        self.frames.append((now_ns(), frame.audio))
        self.state = self.states.get(index, self.state)
        if self.deaf_from is None or index < self.deaf_from:
            self.samples += len(frame.audio) // 2

    async def reached(self, samples: int, within_s: float) -> bool:
        """Was so much judged? Nothing more comes by waiting."""
        return self.samples >= samples

    def between_ms(self, first: int, last: int) -> float:
        """From one frame's coming to another's. The first may have come late: at most half of it is lost."""
        return (self.frames[last][0] - self.frames[first][0]) / NS_PER_MS


async def played(clip: NDArray[np.int16], tail: Tail, listener: Listener) -> Playback:
    """Speak the clip to its last frame."""
    source = FileSource()
    count = -(-clip.size // FRAME_SAMPLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "push_audio_frame", listener.take)
        patch.setattr(source, "create_task", lambda work, name: asyncio.ensure_future(work))
        playback = await source.play_tail(clip, tail, listener, lead_in_ms=0)
        async with asyncio.timeout(10):
            while len(listener.frames) < count:  # noqa: ASYNC110 - a frame announces itself nowhere
                await asyncio.sleep(0.005)
        assert source._pump is not None
        source._pump.cancel()
        await asyncio.gather(source._pump, return_exceptions=True)
    return playback


def ramp(frames: int) -> NDArray[np.int16]:
    """So many frames in which every sample is another one."""
    return np.arange(1, frames * FRAME_SAMPLES + 1, dtype=np.int16)


async def test_all_but_the_tail_passes_at_once_and_whole() -> None:
    """1.6 s of 2 s come in a moment, the last 0.4 s in real time; no sample is lost, moved or repeated, and
    the playback's instants are those of the tail."""
    listener, clip = Listener({0: "speaking"}), ramp(100)
    playback = await played(clip, Tail(1.6), listener)
    data = np.frombuffer(b"".join(audio for _, audio in listener.frames), dtype=np.int16)
    assert np.array_equal(data[: clip.size], clip)
    assert playback.saved_ns > 1_000 * NS_PER_MS
    for index in range(81, 100):
        due = playback.start_ns + (index + 1) * FRAME_MS * NS_PER_MS
        assert listener.frames[index][0] >= due
    assert playback.end_ns == playback.start_ns + 100 * FRAME_MS * NS_PER_MS
    assert playback.samples == 100 * FRAME_SAMPLES == 2 * RATE


async def test_a_silence_in_the_speech_passes_in_real_time() -> None:
    """While the detector hears a silence no frame comes early; after a short one the rest is sped up."""
    listener = Listener({0: "speaking", 40: "stopping", 42: "speaking"})
    playback = await played(ramp(80), Tail(1.5), listener)
    assert listener.between_ms(39, 42) >= 1.5 * FRAME_MS
    assert playback.saved_ns > 900 * NS_PER_MS


async def test_after_a_silence_that_may_end_the_turn_nothing_is_sped_up() -> None:
    """Once a silence has lasted for the patience, all that follows passes in real time, speech included."""
    listener = Listener({0: "speaking", 30: "stopping", 40: "speaking"})
    playback = await played(ramp(70), Tail(1.3, patience_ms=60), listener)
    assert listener.between_ms(31, 69) >= 19 * FRAME_MS
    assert playback.saved_ns < 31 * FRAME_MS * NS_PER_MS


async def test_the_silence_before_the_speech_may_pass_in_real_time() -> None:
    """For a pipeline that looks back by the clock, only the speech itself is sped up."""
    listener = Listener({20: "speaking"})
    playback = await played(ramp(80), Tail(1.5, silence_too=False), listener)
    assert listener.between_ms(0, 20) >= 10 * FRAME_MS
    assert 500 * NS_PER_MS < playback.saved_ns < 60 * FRAME_MS * NS_PER_MS


async def test_a_pipeline_that_does_not_follow_is_not_hurried() -> None:
    """Where the detector has not judged a frame in time, the rest passes in real time."""
    listener = Listener({0: "speaking"}, deaf_from=10)
    playback = await played(ramp(40), Tail(0.7), listener)
    assert playback.saved_ns <= 11 * FRAME_MS * NS_PER_MS
    assert listener.between_ms(11, 39) >= 14 * FRAME_MS
