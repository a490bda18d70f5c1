"""Recorded speech as a microphone would give it: 20 ms frames at absolute instants, silence around."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import CancelFrame, EndFrame, InputAudioRawFrame, StartFrame
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns

FRAME_MS = 20
RATE = 16_000
FRAME_SAMPLES = RATE * FRAME_MS // 1000


@dataclass
class Playback:
    """A clip on its way into the pipeline: its sample `i` was spoken at `start_ns + i / 16000 s`."""

    start_ns: int
    samples: int
    worst_late_ns: int = 0
    """The longest delay of a frame beyond its instant."""

    def instant(self, seconds: float) -> int:
        """The instant of a position in the clip, in ns."""
        return self.start_ns + round(seconds * NS_PER_S)

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
        lead = np.zeros(RATE * lead_in_ms // 1000, dtype=np.int16)
        self._pump = self.create_task(
            self._speak(np.concatenate((lead, samples)), begin, playback), "file-source"
        )
        return playback

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

    async def _speak(self, samples: NDArray[np.int16], begin: int, playback: Playback) -> None:
        padded = np.concatenate((samples, np.zeros(-samples.size % FRAME_SAMPLES, dtype=np.int16)))
        data = padded.tobytes()
        width = FRAME_SAMPLES * 2
        silence = bytes(width)
        count = len(data) // width
        index = 0
        while True:
            due = begin + (index + 1) * FRAME_MS * NS_PER_MS
            wait = due - now_ns()
            if wait > 0:
                await asyncio.sleep(wait / NS_PER_S)
            if index < count:
                playback.worst_late_ns = max(playback.worst_late_ns, now_ns() - due)
                audio = data[index * width : (index + 1) * width]
            else:
                audio = silence
            await self.push_audio_frame(InputAudioRawFrame(audio=audio, sample_rate=RATE, num_channels=1))
            index += 1
