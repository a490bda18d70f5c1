"""Recorded speech as a microphone would give it: 20 ms frames at absolute instants, silence around.

Or, to save a batch's time, with all but the last part of a clip sped up: `play_tail`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import CancelFrame, EndFrame, InputAudioRawFrame, StartFrame
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns

FRAME_MS = 20
RATE = 16_000
FRAME_SAMPLES = RATE * FRAME_MS // 1000
IN_REAL_TIME_S = 0.5
"""So long before the end of the speech a sped-up clip goes on in real time, at the latest."""
PATIENCE_MS = 60.0
"""A silence within speech that has lasted so long may end the turn: from then on nothing is sped up."""
TAKEN_WITHIN_S = 0.5
"""A pipeline that has not taken a frame by then is not to be hurried."""


class Detector(Protocol):
    """The voice activity detector at the other end, by which a sped-up clip is guided."""

    samples: int
    """So many samples it has judged."""
    state: str
    """`quiet`, `starting`, `speaking` or `stopping`."""

    async def reached(self, samples: int, within_s: float) -> bool:
        """Wait until it has judged so many in all."""


@dataclass(frozen=True)
class Tail:
    """What of a clip may be sped up: what lies before `from_s`, in seconds from the clip's start."""

    from_s: float
    patience_ms: float = PATIENCE_MS
    """A silence within speech that has lasted so long puts an end to it."""
    silence_too: bool = True
    """Is the silence before the speech sped up as well? Not where the pipeline looks back by the clock."""


@dataclass
class Playback:
    """A clip on its way into the pipeline: its sample `i` was spoken at `start_ns + i / 16000 s`."""

    start_ns: int
    samples: int
    worst_late_ns: int = 0
    """The longest delay of a frame of the clip beyond its instant, where it was spoken in real time."""
    late_silence: list[tuple[int, int]] = field(default_factory=list)
    """Of the silence after the clip each frame that was later than all before it: its instant, its delay."""
    saved_ns: int = 0
    """How much less time the clip took than its length."""

    def instant(self, seconds: float) -> int:
        """The instant of a position in the clip, in ns."""
        return self.start_ns + round(seconds * NS_PER_S)

    def worst_late_until(self, instant_ns: int | None) -> int:
        """The longest delay of a frame of the clip, or of the silence after it up to this instant, in ns.

        The end of the speech is found over that silence. None: all of it counts.
        """
        silence = (late for due, late in self.late_silence if instant_ns is None or due <= instant_ns)
        return max(self.worst_late_ns, *silence, 0)

    @property
    def end_ns(self) -> int:
        """When the last sample has been spoken."""
        return self.start_ns + self.samples * NS_PER_S // RATE


class FileSource(BaseInputTransport):
    """A pipecat input transport that speaks 16 kHz mono clips in real time.

    Frame `k` of a clip enters the pipeline at `start_ns + (k + 1) * 20 ms`, when a microphone has it whole.
    The instants are absolute, so a late frame delays none after it.
    """

    def __init__(self) -> None:
        super().__init__(
            TransportParams(audio_in_enabled=True, audio_in_sample_rate=RATE, audio_in_channels=1)
        )
        self._pump: asyncio.Task[None] | None = None

    async def start(self, frame: StartFrame) -> None:
        """Become ready to speak."""
        await super().start(frame)
        await self.set_transport_ready(frame)

    def play(self, samples: NDArray[np.int16], lead_in_ms: int = 200) -> Playback:
        """Begin to speak a clip after `lead_in_ms` of silence; silence goes on after it until `quiet`."""
        assert self._pump is None, "one clip at a time"
        begin = now_ns()
        playback = Playback(begin + lead_in_ms * NS_PER_MS, samples.size)
        self._go_on(_frames(samples, lead_in_ms), begin, playback)
        return playback

    async def play_tail(
        self, samples: NDArray[np.int16], tail: Tail, detector: Detector, lead_in_ms: int = 200
    ) -> Playback:
        """Speak a clip as `play` does, but hand on what comes before its tail as fast as it is taken.

        The same frames go the same way in the same order, each when the detector has judged the one before.
        What may end a turn, or tell one from another, passes in real time: each change of the detector's
        verdict, each silence within speech while it lasts, and all that follows one which has lasted for
        `patience_ms`. So nothing that runs by the clock is begun in what was sped up.

        Returns when the rest goes on in real time. The playback's instants are those of that part: of an
        earlier sample, the instant at which it would have been spoken.
        """
        assert self._pump is None, "one clip at a time"
        frames = _frames(samples, lead_in_ms)
        started = now_ns()
        begin, index = await self._hurry(frames, tail, detector, lead_in_ms)
        playback = Playback(begin + lead_in_ms * NS_PER_MS, samples.size, saved_ns=max(0, started - begin))
        self._go_on(frames, begin, playback, index)
        return playback

    async def _hurry(
        self, frames: list[bytes], tail: Tail, detector: Detector, lead_in_ms: int
    ) -> tuple[int, int]:
        """Hand on the first frames. Gives the instant at which the first one would have begun in real time,
        and which frame is next."""
        last = min(len(frames), int((lead_in_ms + tail.from_s * 1000) // FRAME_MS))
        begin, heard_before = now_ns(), detector.samples
        state, silent_ms, index = detector.state, 0, 0
        while index < last:
            before, state = state, detector.state
            silent_ms = silent_ms + FRAME_MS if state == "stopping" else 0
            if silent_ms >= tail.patience_ms:
                break
            waiting = state in ("quiet", "starting") and not tail.silence_too
            if waiting or silent_ms or state != before:
                await _until(_due(begin, index))
            else:
                begin = min(begin, now_ns() - (index + 1) * FRAME_MS * NS_PER_MS)
            await self._hand_on(frames[index])
            index += 1
            if not await detector.reached(heard_before + index * FRAME_SAMPLES, TAKEN_WITHIN_S):
                break
        return begin, index

    def _go_on(self, frames: list[bytes], begin: int, playback: Playback, index: int = 0) -> None:
        self._pump = self.create_task(self._speak(frames, begin, playback, index), "file-source")

    async def quiet(self) -> None:
        """Stop speaking: no frames until the next clip."""
        if self._pump is not None:
            pump, self._pump = self._pump, None
            await self.cancel_task(pump)

    async def stop(self, frame: EndFrame) -> None:
        """End with the pipeline."""
        await self.quiet()
        await super().stop(frame)

    async def cancel(self, frame: CancelFrame) -> None:
        """End with the pipeline at once."""
        await self.quiet()
        await super().cancel(frame)

    async def cleanup(self) -> None:
        """End with the pipeline, however it ended."""
        await self.quiet()
        await super().cleanup()  # type: ignore[no-untyped-call]  # pipecat leaves it unannotated

    async def _speak(self, frames: list[bytes], begin: int, playback: Playback, index: int) -> None:
        silence = bytes(FRAME_SAMPLES * 2)
        while True:
            due = _due(begin, index)
            await _until(due)
            late = now_ns() - due
            if index < len(frames):
                playback.worst_late_ns = max(playback.worst_late_ns, late)
                await self._hand_on(frames[index])
            else:
                if not playback.late_silence or late > playback.late_silence[-1][1]:
                    playback.late_silence.append((due, late))
                await self._hand_on(silence)
            index += 1

    async def _hand_on(self, audio: bytes) -> None:
        await self.push_audio_frame(InputAudioRawFrame(audio=audio, sample_rate=RATE, num_channels=1))


def _frames(samples: NDArray[np.int16], lead_in_ms: int) -> list[bytes]:
    """The clip after so much silence, cut into frames; the last one is filled up with silence."""
    lead = np.zeros(RATE * lead_in_ms // 1000, dtype=np.int16)
    filling = np.zeros(-(lead.size + samples.size) % FRAME_SAMPLES, dtype=np.int16)
    data = np.concatenate((lead, samples, filling)).tobytes()
    width = FRAME_SAMPLES * 2
    return [data[at : at + width] for at in range(0, len(data), width)]


def _due(begin: int, index: int) -> int:
    """When a microphone that began to hear at `begin` has that frame whole, in ns."""
    return begin + (index + 1) * FRAME_MS * NS_PER_MS


async def _until(due: int) -> None:
    wait = due - now_ns()
    if wait > 0:
        await asyncio.sleep(wait / NS_PER_S)
