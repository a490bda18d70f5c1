"""What is played: a loudspeaker that knows the instant of each of its samples."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame, InterruptionFrame, OutputAudioRawFrame, StartFrame
from pipecat.processors.frame_processor import FrameDirection
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams

from voicebench.audio.devices import Device, DeviceStream
from voicebench.audio.echo import RATE
from voicebench.audio.played import Played
from voicebench.audio.rate_door import one_channel
from voicebench.audio.streaming_rate import RateConverter
from voicebench.clock import NS_PER_S

BUFFER_S = 0.4
"""How far ahead of the device's own buffer audio is taken.

A busy event loop then leaves no gap; an interruption drops all of it, so it costs no time.
"""
SLIPPED_NS = 20_000_000
"""A run whose count is this far off the stream's clock has slipped."""
_REMEMBERED_S = 2


class Playout:
    """An open loudspeaker, shared by all pipelines of a talk. It plays silence where nothing waits."""

    def __init__(self, device: Device) -> None:
        self.stream = DeviceStream(device, "output")
        self.silent = False
        """Plays nothing but silence, and accounts for it as if it sounded: for warming up."""
        self._lock = threading.Lock()
        self._waiting: deque[NDArray[np.float32]] = deque()
        self._queued = 0
        self._done = 0
        self._past: NDArray[np.float32] = np.zeros(0, dtype=np.float32)

    async def open(self) -> None:
        """Open the device and play silence. Raises BadRequest where it refuses."""
        await asyncio.to_thread(self.stream.open, self._fill)

    async def close(self) -> None:
        """Close the device. Raises RunProblem where it does not let go."""
        await asyncio.to_thread(self.stream.close)

    def put(self, samples: NDArray[np.float32]) -> int:
        """Play these as soon as what waits has been played; the number of the first one in the stream."""
        with self._lock:
            first = self._done + self._queued
            self._waiting.append(samples)
            self._queued += samples.size
            return first

    def clear(self) -> int:
        """Drop what the device has not taken; the number of the first sample that will not sound."""
        with self._lock:
            self._waiting.clear()
            self._queued = 0
            return self._done

    @property
    def queued_s(self) -> float:
        """Seconds of sound that the device has not taken yet."""
        return self._queued / max(1, self.stream.rate)

    def instant(self, sample: int) -> int:
        """When that sample of the stream sounds, in ns."""
        return self.stream.clock.instant(sample)

    def reference(self, end_ns: int, count: int) -> NDArray[np.float32]:
        """The last `count` samples at 16 kHz of what sounds up to `end_ns`: what an echo would be made of."""
        with self._lock:
            past, done = self._past.copy(), self._done
        return self._up_to(end_ns, count, past, done - past.size)

    def _up_to(self, end_ns: int, count: int, past: NDArray[np.float32], first: int) -> NDArray[np.float32]:
        """The last `count` samples at 16 kHz before `end_ns` of `past`, which begins at sample `first`."""
        if not past.size:
            return np.zeros(count, dtype=np.float32)
        end = self.stream.clock.sample_at(end_ns)
        places = end - (np.arange(count, 0, -1) * (max(1, self.stream.rate) / RATE))
        numbers = np.arange(first, first + past.size)
        return np.asarray(np.interp(places, numbers, past, left=0.0, right=0.0), dtype=np.float32)

    def _fill(self, data: Any, first: int) -> None:
        """Give the device its next block."""
        frames = data.shape[0]
        block = np.zeros(frames, dtype=np.float32)
        with self._lock:
            filled = 0
            while filled < frames and self._waiting:
                head = self._waiting[0]
                part = head[: frames - filled]
                block[filled : filled + part.size] = part
                filled += part.size
                if part.size == head.size:
                    self._waiting.popleft()
                else:
                    self._waiting[0] = head[part.size :]
            self._queued -= filled
            self._done = first + frames
            if self.silent:
                block[:] = 0.0
            self._past = np.concatenate((self._past, block))[-_REMEMBERED_S * self.stream.rate :]
        data[:] = block[:, None]


class Speaker(BaseOutputTransport):
    """A pipecat output transport on an open loudspeaker, with an account of what sounded when.

    The instant of a sound is that of its place in the device's stream of samples.
    """

    def __init__(self, playout: Playout, sample_rate: int) -> None:
        super().__init__(
            TransportParams(
                audio_out_enabled=True,
                audio_out_sample_rate=sample_rate,
                audio_out_channels=1,
                audio_out_10ms_chunks=1,
                audio_out_end_silence_secs=0,
            )
        )
        self.playout = playout
        self.played = Played()
        self.on_sound: Callable[[], None] = lambda: None
        """Called after each chunk."""
        self._converter = RateConverter(sample_rate, playout.stream.rate)
        self._stream_end: int | None = None

    def begin_turn(self) -> None:
        """Forget what was played before."""
        self.played = Played()
        self._stream_end = None

    async def start(self, frame: StartFrame) -> None:
        """Become ready to play."""
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Silence what waits at an interruption, then do as every transport does.

        Until the transport has emptied its queue one more chunk may be written: it is silenced too.
        """
        if isinstance(frame, InterruptionFrame):
            self.flush()
        if isinstance(frame, OutputAudioRawFrame):
            frame = one_channel(frame)
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            self.flush()

    def flush(self) -> None:
        """Stop sounding: only what the device has taken already still sounds."""
        last = self.playout.clear()
        if self.played.runs:
            self.played.flush(self._instant(last))
        self._converter.reset()
        self._stream_end = None

    def _instant(self, sample: int) -> int:
        """The instant of a sample: in a run that goes on by that run's own beginning.

        Where the device has run dry since, the run's count is late: then by the stream's clock.
        """
        by_clock = self.playout.instant(sample)
        if self._stream_end is None or not self.played.runs:
            return by_clock
        rate = self.playout.stream.rate
        by_run = self.played.runs[-1].end_ns - (self._stream_end - sample) * NS_PER_S // rate
        return by_run if abs(by_run - by_clock) < SLIPPED_NS else by_clock

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        """Take one chunk; returns when there is room for the next."""
        raw = np.frombuffer(frame.audio, dtype=np.int16).astype(np.float32) / np.float32(32768.0)
        samples = self._converter.push(raw)
        if samples.size:
            first = self.playout.put(samples)
            pcm = np.rint(np.clip(samples, -1.0, 32767 / 32768) * 32768.0).astype(np.int16)
            goes_on = first == self._stream_end and self.played.runs
            at = self.played.runs[-1].end_ns if goes_on else self.playout.instant(first)
            self.played.write(pcm, self.playout.stream.rate, at)
            self._stream_end = first + samples.size
            self.on_sound()
        ahead = self.playout.queued_s - BUFFER_S
        if ahead > 0:
            await asyncio.sleep(ahead)
        return True
