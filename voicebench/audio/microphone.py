"""What is heard: a device's samples as 20 ms frames at 16 kHz, and when each was spoken."""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import CancelFrame, EndFrame, InputAudioRawFrame, StartFrame
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_transport import TransportParams

from voicebench.audio.devices import Device, DeviceStream
from voicebench.audio.echo import AHEAD, FRAME, RATE, REFERENCE, EchoGate, Floats
from voicebench.audio.streaming_rate import RateConverter
from voicebench.clock import NS_PER_S

KEPT_S = 120
"""So much of what was heard is kept for finding edges and for recordings."""

Listener = Callable[[bytes], Awaitable[None]]
Reference = Callable[[int, int], Floats]


class Capture:
    """An open microphone, shared by all pipelines of a conversation; one at a time listens.

    Sample `j` at 16 kHz was spoken at `instant(j)`. Frames that are the agent's own voice are replaced by
    silence before anyone listens; the recording keeps what was heard.
    """

    def __init__(self, device: Device) -> None:
        self.stream = DeviceStream(device, "input")
        self.listener: Listener | None = None
        self.reference: Reference | None = None
        """Gives so many samples at 16 kHz of what is played, up to an instant."""
        self.gate = EchoGate()
        self.muted = False
        self.count = 0
        """Samples at 16 kHz so far."""
        self._blocks: queue.SimpleQueue[Floats] = queue.SimpleQueue()
        self._frames: deque[NDArray[np.int16]] = deque(maxlen=KEPT_S * RATE // FRAME)
        self._clean: deque[NDArray[np.int16]] = deque(maxlen=KEPT_S * RATE // FRAME)
        self._wake = asyncio.Event()
        self._spoken: NDArray[np.int16] | None = None
        self._spoken_at = 0
        self._pump: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the device and begin to hear. Raises BadRequest where it refuses."""
        loop = asyncio.get_running_loop()

        def block(data: Any, first: int) -> None:
            self._blocks.put(np.array(data.mean(axis=1) if data.shape[1] > 1 else data[:, 0]))
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake.set)

        await asyncio.to_thread(self.stream.open, block)
        self._pump = asyncio.create_task(self._hear(), name="microphone")

    async def close(self) -> None:
        """Close the device. Raises RunProblem where it does not let go."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
            self._pump = None
        await asyncio.to_thread(self.stream.close)

    def speak(self, samples: NDArray[np.int16]) -> None:
        """Hear these 16 kHz samples instead of the device, then silence until `speak_no_more`.

        They take the places of the device's own samples, so their instants are as well known.
        """
        self._spoken, self._spoken_at = samples, 0

    def speak_no_more(self) -> None:
        """Hear the device again."""
        self._spoken = None

    def instant(self, sample: int) -> int:
        """When that sample at 16 kHz was spoken, in ns."""
        return self.stream.clock.instant(sample * self.stream.rate / RATE)

    def sample_at(self, instant_ns: int) -> int:
        """The sample at 16 kHz that was spoken at an instant, at least 0."""
        return max(0, round(self.stream.clock.sample_at(instant_ns) * RATE / max(1, self.stream.rate)))

    def between(self, first: int, end: int, *, clean: bool = False) -> tuple[int, NDArray[np.int16]]:
        """What was heard from sample `first` up to `end`: the number of the first one kept, and the samples.

        With `clean`, what was taken for the agent's own voice is silence.
        """
        frames = self._clean if clean else self._frames
        kept_from = self.count - FRAME * len(frames)
        first, end = max(first, kept_from), min(end, self.count)
        if end <= first:
            return first, np.zeros(0, dtype=np.int16)
        start = (first - kept_from) // FRAME
        stop = -(-(end - kept_from) // FRAME)
        joined = np.concatenate([frames[place] for place in range(start, stop)])
        skip = first - kept_from - start * FRAME
        return first, joined[skip : skip + end - first]

    def level(self, seconds: float) -> tuple[float, float]:
        """RMS and peak of the last seconds, +-1.0 being full scale; zeros where nothing came."""
        _, heard = self.between(self.count - round(seconds * RATE), self.count)
        if not heard.size:
            return 0.0, 0.0
        floats = heard.astype(np.float64) / 32768.0
        return float(np.sqrt(np.mean(floats**2))), float(np.max(np.abs(floats)))

    async def _hear(self) -> None:
        converter = RateConverter(self.stream.rate, RATE)
        held: Floats = np.zeros(0, dtype=np.float32)
        while True:
            await self._wake.wait()
            self._wake.clear()
            parts = [held]
            while not self._blocks.empty():
                parts.append(converter.push(self._blocks.get()))
            held = np.concatenate(parts)
            while held.size >= FRAME:
                frame, held = held[:FRAME], held[FRAME:]
                await self._take(frame)

    async def _take(self, frame: Floats) -> None:
        pcm = np.rint(np.clip(frame, -1.0, 32767 / 32768) * 32768.0).astype(np.int16)
        if self._spoken is not None:
            pcm = np.zeros(FRAME, dtype=np.int16)
            part = self._spoken[self._spoken_at : self._spoken_at + FRAME]
            pcm[: part.size] = part
            self._spoken_at += FRAME
        elif self.muted:
            pcm = np.zeros(FRAME, dtype=np.int16)
        heard = pcm
        end = self.instant(self.count + FRAME) + AHEAD * NS_PER_S // RATE
        listening = self._spoken is None and not self.muted
        if listening and self.reference is not None:
            floats = pcm.astype(np.float32) / np.float32(32768.0)
            if self.gate.is_echo(floats, self.reference(end, REFERENCE)):
                pcm = np.zeros(FRAME, dtype=np.int16)
        self._frames.append(heard)
        self._clean.append(pcm)
        self.count += FRAME
        if self.listener is not None:
            await self.listener(pcm.tobytes())


class Microphone(BaseInputTransport):
    """A pipecat input transport on an open microphone. It is silent until `listen`."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(
            TransportParams(audio_in_enabled=True, audio_in_sample_rate=RATE, audio_in_channels=1)
        )
        self.capture = capture

    async def start(self, frame: StartFrame) -> None:
        """Become ready to listen."""
        await super().start(frame)
        await self.set_transport_ready(frame)

    def listen(self) -> None:
        """From now on what is heard goes into this pipeline."""
        self.capture.listener = self._heard

    async def quiet(self) -> None:
        """Nothing goes into this pipeline any more."""
        if self.capture.listener == self._heard:
            self.capture.listener = None

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

    async def _heard(self, pcm: bytes) -> None:
        await self.push_audio_frame(InputAudioRawFrame(audio=pcm, sample_rate=RATE, num_channels=1))
