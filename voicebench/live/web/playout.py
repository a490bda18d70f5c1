"""The page's player: what was sent to it, what it has played, and when."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.devices import Device
from voicebench.audio.speaker import Playout
from voicebench.live.web.messages import Flushed, Hello, PlayedSamples, Stamp
from voicebench.live.web.page import Page
from voicebench.live.web.streams import PageStream

_REFERENCE_S = 2


class Owner(Protocol):
    """Who is told what the page has played."""

    def sounded(self, samples: NDArray[np.int16], at_ns: int, goes_on: bool) -> None:
        """These were played from `at_ns` on; `goes_on`: without a gap after those before."""


class PagePlayout(Playout):
    """The page's player. What it reports as played counts, not what was sent to it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        super().__init__(Device(-1, "browser", "web page", 0, 1, 48_000))
        self.stream: PageStream = PageStream(page, "output")
        self.gaps = 0
        """How often the player ran dry in the middle of a reply."""
        self._sent: deque[tuple[int, NDArray[np.int16], Owner]] = deque()
        self._number = 0
        self._base = 0
        self._next: tuple[int, int] | None = None
        self._flushes: dict[int, int] = {}
        self._flush_number = 0
        self._flushed = asyncio.Event()
        self._heard_past: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._past_end = 0

    def begin(self, hello: Hello) -> None:
        """A page is there: nothing waits in it."""
        self.stream.begin(hello)
        self._sent.clear()
        self._flushes.clear()
        self._flushed.set()
        self._base = self._number
        self._next = None
        self._heard_past = np.zeros(0, dtype=np.float32)

    @property
    def queued_s(self) -> float:
        """Seconds of sound that the player has not reported as played."""
        return (self._number - self._base) / max(1, self.stream.rate)

    def send(self, samples: NDArray[np.int16], owner: Owner) -> None:
        """Let the page play these; `owner` is told when it has."""
        if not self._page.connected:
            return
        self._sent.append((self._number, samples, owner))
        self._page.play(self._number, np.zeros_like(samples) if self.silent else samples)
        self._number += samples.size

    def clear(self) -> int:
        """Let the page drop what it has not played; the number of the next sample."""
        if self._base != self._number:
            self._flush_number += 1
            self._flushes[self._flush_number] = self._number
            self._flushed.clear()
            self._page.drop_sound()
            self._page.tell(type="flush", id=self._flush_number)
            self._base = self._number
        return self._number

    async def flushed(self, within_s: float) -> None:
        """Wait until the page says that it has stopped, not longer than that."""
        try:
            async with asyncio.timeout(within_s):
                await self._flushed.wait()
        except TimeoutError:
            return

    def note_flushed(self, message: Flushed) -> None:
        """The page has dropped what waited. What it played before that it has said already."""
        number = self._flushes.pop(message.id, None)
        if number is not None:
            while self._sent and self._sent[0][0] < number:
                self._sent.popleft()
            self._next = None
        if not self._flushes:
            self._flushed.set()

    def note_played(self, message: PlayedSamples) -> None:
        """The page has played samples."""
        first, frame = message.first, message.frame
        end = first + message.count
        while self._sent and self._sent[0][0] < end:
            number, samples, owner = self._sent[0]
            skip = max(0, first - number)
            part = samples[skip : end - number]
            if part.size:
                goes_on = self._next == (number + skip, frame)
                if self._next is not None and not goes_on and self._next[0] == number + skip:
                    self.gaps += 1
                    self.stream.troubles += 1
                owner.sounded(part, self.instant(frame), goes_on)
                self._remember(part, frame)
                frame += part.size
                self._next = (number + skip + part.size, frame)
            if number + samples.size > end:
                break
            self._sent.popleft()
        self._base = max(self._base, min(end, self._number))
        if self._base == self._number:
            self._next = None

    def note_stamp(self, message: Stamp) -> None:
        """The page says where its audio context stands and when that sounds."""
        hello = self._page.hello
        block = max(128, round((hello.base_latency_ms or 0.0 if hello else 0.0) * self.stream.rate / 1000))
        lead = None if message.lead_ms is None else message.lead_ms / 1000
        self.stream.clock.note(message.frame, block, self._page.clock.instant(message.now_ms), lead)

    def reference(self, end_ns: int, count: int) -> NDArray[np.float32]:
        """The last `count` samples at 16 kHz of what sounds up to `end_ns`: played, then waiting ones."""
        past = self._heard_past
        if past.size and self._next is not None and not self.silent:
            ahead = [samples for number, samples, _ in self._sent if number >= self._next[0]]
            if ahead:
                coming = np.concatenate(ahead)[: max(1, self.stream.rate) // 5].astype(
                    np.float32
                ) / np.float32(32768.0)
                past = np.concatenate((past, coming))
        return self._up_to(end_ns, count, past, self._past_end - self._heard_past.size)

    def _remember(self, part: NDArray[np.int16], frame: int) -> None:
        kept = _REFERENCE_S * self.stream.rate
        heard = part.astype(np.float32) / np.float32(32768.0)
        gap = frame - self._past_end
        if not 0 <= gap < kept:
            self._heard_past = heard
        else:
            silence = np.zeros(gap, dtype=np.float32)
            self._heard_past = np.concatenate((self._heard_past, silence, heard))[-kept:]
        self._past_end = frame + part.size
