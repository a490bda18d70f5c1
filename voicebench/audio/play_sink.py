"""A loudspeaker without a device: plays in real time and knows the instant of each sample."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from pipecat.frames.frames import Frame, InterruptionFrame, OutputAudioRawFrame, StartFrame
from pipecat.processors.frame_processor import FrameDirection
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams

from voicebench.audio.played import Played
from voicebench.audio.rate_door import one_channel
from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns

BUFFER_MS = 40
"""How far ahead of the sound the sink takes audio, as a device's buffer would."""


class PlaySink(BaseOutputTransport):
    """A pipecat output transport that plays at once what comes first, and the rest without a gap.

    It stands for a device of no latency of its own: `playout` then holds only what the pipeline adds.
    """

    def __init__(self, sample_rate: int, chunk_ms: int = 10) -> None:
        super().__init__(
            TransportParams(
                audio_out_enabled=True,
                audio_out_sample_rate=sample_rate,
                audio_out_channels=1,
                audio_out_10ms_chunks=chunk_ms // 10,
                audio_out_end_silence_secs=0,
            )
        )
        self.played = Played()
        self.on_sound: Callable[[], None] = lambda: None
        """Called after each chunk."""

    def begin_turn(self) -> None:
        """Forget what was played before."""
        self.played = Played()

    async def start(self, frame: StartFrame) -> None:
        """Become ready to play."""
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Silence the buffer at an interruption, then do as every transport does.

        Until the transport has emptied its queue one more chunk may be written: it is silenced too.
        """
        if isinstance(frame, InterruptionFrame):
            self.played.flush(now_ns())
        if isinstance(frame, OutputAudioRawFrame):
            frame = one_channel(frame)
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            self.played.flush(now_ns())

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        """Take one chunk; returns when the buffer has room for the next."""
        samples = np.frombuffer(frame.audio, dtype=np.int16)
        now = now_ns()
        self.played.write(samples, frame.sample_rate, now)
        self.on_sound()
        ahead = self.played.cursor_ns - now - BUFFER_MS * NS_PER_MS
        if ahead > 0:
            await asyncio.sleep(ahead / NS_PER_S)
        return True
