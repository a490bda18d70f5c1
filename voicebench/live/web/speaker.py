"""What the page plays, with an account of what sounded when: by the page's own reports."""

from __future__ import annotations

import asyncio

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame, InterruptionFrame, OutputAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection

from voicebench.audio.speaker import Speaker
from voicebench.clock import NS_PER_S, now_ns
from voicebench.live.web.playout import PagePlayout

AHEAD_S = 1.0
"""So far ahead of what it has reported as played the page is sent sound: its reports may be slow to come.

An interruption drops all of it, so it costs no time.
"""
AT_ONCE_S = 0.1
"""So much is then sent at once."""
STOPS_WITHIN_S = 0.5
"""So long an interruption waits to be told at which sample the player stopped."""


class PageSpeaker(Speaker):
    """A pipecat output transport to the page. A sample counts as played when the page says so."""

    def __init__(self, playout: PagePlayout, sample_rate: int) -> None:
        super().__init__(playout, sample_rate)
        self._page_playout = playout

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """At an interruption also wait for the page to say where it stopped."""
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            await self._page_playout.flushed(STOPS_WITHIN_S)
            if self.played.runs:
                self.played.flush(self.played.runs[-1].end_ns)

    def flush(self) -> None:
        """Let the page stop. Its reports say what had sounded by then."""
        self._page_playout.clear()
        self._converter.reset()
        self.played.cursor_ns = self.played.runs[-1].end_ns if self.played.runs else now_ns()

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        """Send one chunk; returns when there is room for the next."""
        raw = np.frombuffer(frame.audio, dtype=np.int16).astype(np.float32) / np.float32(32768.0)
        samples = self._converter.push(raw)
        if samples.size:
            pcm = np.rint(np.clip(samples, -1.0, 32767 / 32768) * 32768.0).astype(np.int16)
            self._page_playout.send(pcm, self)
            self._look_ahead()
        ahead = self._page_playout.queued_s - AHEAD_S
        if self._page_playout.stream.lost:
            # Nothing is played any more, but a whole reply must not rush through at once.
            ahead = raw.size / frame.sample_rate
        if ahead > 0:
            await asyncio.sleep(ahead + AT_ONCE_S)
        return True

    def sounded(self, samples: NDArray[np.int16], at_ns: int, goes_on: bool) -> None:
        """The page has played these."""
        runs = self.played.runs
        joins = goes_on and bool(runs) and not runs[-1].closed
        self.played.write(samples, self.playout.stream.rate, runs[-1].end_ns if joins else at_ns)
        self._look_ahead()
        self.on_sound()

    def _look_ahead(self) -> None:
        """Until what was sent has been played there is audio."""
        waiting = round(self._page_playout.queued_s * NS_PER_S)
        ends = [run.end_ns for run in self.played.runs[-1:]]
        self.played.cursor_ns = max([*ends, now_ns() + waiting if waiting else 0])
