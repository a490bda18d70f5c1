"""The page as a sound card: its microphone and its player, with the instant of every sample."""

from __future__ import annotations

import asyncio
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.devices import Device, DeviceStream, Direction, StreamClock
from voicebench.audio.echo import RATE
from voicebench.audio.microphone import Capture, Microphone
from voicebench.audio.speaker import Playout
from voicebench.clock import NS_PER_MS, NS_PER_S, ms, now_ns
from voicebench.errors import BadRequest
from voicebench.live.card import FIRST_SOUND_S, LISTEN_S, WINDOW_NS, Card, Level
from voicebench.live.web.messages import Flushed, Hello, PlayedSamples, Stamp
from voicebench.live.web.page import Page

GONE = "the page in the browser is gone (closed, or its connection lost)"
RETURN_WITHIN_S = 120.0
"""So long a conversation waits for its page to come back."""
UNSEEN_MS = 40.0
"""What a browser does not tell of its devices' buffers, together: a usual figure, not a measured one."""
_REFERENCE_S = 2
_BLOCKS_KEPT = 256


class Owner(Protocol):
    """Who is told what the page has played."""

    def sounded(self, samples: NDArray[np.int16], at_ns: int, goes_on: bool) -> None:
        """These were played from `at_ns` on; `goes_on`: without a gap after those before."""


class PageStreamClock(StreamClock):
    """The instants of the samples of the page's microphone.

    A block comes to the page's hands at once or late, never early: the earliest of the last seconds count,
    not the middle. What the browser says of the microphone's own latency is in it.
    """

    def __init__(self, rate: int) -> None:
        super().__init__(rate, "input")
        self._origins = deque(maxlen=_BLOCKS_KEPT)

    @property
    def origin_ns(self) -> int | None:
        """The instant of sample 0; None before the first block."""
        with self._lock:
            return _low(self._origins) if self._origins else None

    @property
    def uncertainty_ns(self) -> int:
        """By how much an instant may be off, in ns: one block, and how late blocks usually come."""
        with self._lock:
            if not self._origins:
                return round(NS_PER_S)
            return self._block_ns + statistics.median_low(self._origins) - _low(self._origins)


def _low(origins: deque[int]) -> int:
    """One of the earliest: 5 % lie before it."""
    return sorted(origins)[len(origins) // 20]


class PageStream(DeviceStream):
    """One direction of the page's sound. It is opened and closed with the page, not by PortAudio."""

    def __init__(self, page: Page, direction: Direction) -> None:
        inputs, outputs = (1, 0) if direction == "input" else (0, 1)
        super().__init__(Device(-1, "browser", "web page", inputs, outputs, 48_000), direction)
        self.page = page
        self.block: Callable[[Any, int], None] = lambda data, first: None

    def begin(self, hello: Hello) -> None:
        """A page is there: its clock begins anew."""
        if not self.rate:
            self.rate = hello.rate
            heard = self.direction == "input"
            self.clock = PageStreamClock(hello.rate) if heard else StreamClock(hello.rate, "output")
        self.clock.restart()

    def open(self, block: Callable[[Any, int], None]) -> None:
        """`block` gets what is heard."""
        self.block = block

    def close(self) -> None:
        """The page goes on without anyone who listens."""
        self.block = lambda data, first: None

    @property
    def lost(self) -> bool:
        """Is the page gone?"""
        return not self.page.connected

    @property
    def facts(self) -> dict[str, Any]:
        """What a record says of the page."""
        hello = self.page.hello
        own = {} if hello is None else hello.model_dump(exclude={"type", "rate", "microphone"})
        name = hello.microphone if hello is not None and self.direction == "input" else ""
        return {**super().facts, "name": name or "browser", **own, "unseen_ms": UNSEEN_MS}


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
        rate = max(1, self.stream.rate)
        past = self._heard_past
        if not past.size:
            return np.zeros(count, dtype=np.float32)
        if self._next is not None and not self.silent:
            ahead = [samples for number, samples, _ in self._sent if number >= self._next[0]]
            if ahead:
                coming = np.concatenate(ahead)[: rate // 5].astype(np.float32) / np.float32(32768.0)
                past = np.concatenate((past, coming))
        start = self._past_end - self._heard_past.size
        end = self.stream.clock.sample_at(end_ns)
        places = end - (np.arange(count, 0, -1) * (rate / RATE))
        numbers = np.arange(start, start + past.size)
        return np.asarray(np.interp(places, numbers, past, left=0.0, right=0.0), dtype=np.float32)

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


class PageCapture(Capture):
    """The page's microphone."""

    def __init__(self, page: Page) -> None:
        super().__init__(Device(-1, "browser", "web page", 1, 0, 48_000))
        self.stream: PageStream = PageStream(page, "input")
        self._page = page
        self._next_frame: int | None = None

    def begin(self, hello: Hello) -> None:
        """A page is there."""
        self.stream.begin(hello)
        self._next_frame = None

    def note_sound(self, frame: int, at_ms: float, samples: NDArray[np.int16]) -> None:
        """A block came to the page's hands at `at_ms`."""
        stream, hello = self.stream, self._page.hello
        if self._next_frame is not None and frame != self._next_frame:
            stream.troubles += 1
            stream.clock.restart()
        self._next_frame = frame + samples.size
        told = None if hello is None else hello.input_latency_ms
        offset = None if told is None else -(samples.size / stream.rate + told / 1000)
        stream.clock.note(stream.frames, samples.size, self._page.clock.instant(at_ms), offset)
        stream.block((samples.astype(np.float32) / np.float32(32768.0))[:, None], stream.frames)
        stream.frames += samples.size


@dataclass
class Uncertainty:
    """What V2V in the page may be off by, in ms, part by part."""

    clock_ms: float
    """Half of a ping's shortest way: the browser's clock on ours."""
    microphone_ms: float
    """One block of the microphone, and how unevenly blocks come."""
    player_ms: float
    """One block of the player, and how unevenly its stamps come."""
    window_ms: float = ms(WINDOW_NS)
    unseen_ms: float = UNSEEN_MS

    @property
    def total_ms(self) -> float:
        """All of it together."""
        return self.clock_ms + self.microphone_ms + self.player_ms + self.window_ms + self.unseen_ms


class WebCard(Card):
    """The page's microphone and player in the place of a sound card's."""

    returns = True

    def __init__(self, page: Page, *, echo: bool = True) -> None:
        self.page = page
        self.capture: PageCapture = PageCapture(page)
        self.playout: PagePlayout = PagePlayout(page)
        self.stuck = False
        if echo:
            self.capture.reference = self.playout.reference
        page.on_sound = self.capture.note_sound
        page.on_hello = self._hello

    async def open(self) -> Level:
        """Wait until someone presses Start in the page, then listen for half a second."""
        await self.page.came.wait()
        # Only now is the rate known at which the page hears.
        await self.capture.open()
        while True:
            await self.page.came.wait()
            deadline = now_ns() + round(FIRST_SOUND_S * NS_PER_S)
            begun = self.capture.count
            while self.capture.count - begun < LISTEN_S * RATE and self.lost is None:
                if now_ns() > deadline:
                    raise BadRequest(
                        "The page's microphone gives no sound.", "Choose another in the browser's settings."
                    )
                await asyncio.sleep(0.02)
            if self.lost is None:
                return self.level()

    def transports(self, rate: int) -> tuple[Microphone, Any]:
        """Source and sink of a pipeline whose voice has that rate in Hz."""
        from voicebench.live.web.speaker import PageSpeaker

        return Microphone(self.capture), PageSpeaker(self.playout, rate)

    async def there(self) -> bool:
        """Wait for the page to come back; False where it does not for two minutes."""
        if self.page.connected:
            return True
        try:
            async with asyncio.timeout(RETURN_WITHIN_S):
                while not self.page.connected:
                    await self.page.came.wait()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    @property
    def lost(self) -> str | None:
        """That the page is gone, in words; None while it is there."""
        return None if self.page.connected else GONE

    @property
    def uncertainty(self) -> Uncertainty:
        """By how much V2V may be off, part by part."""
        clock = self.page.clock.uncertainty_ns if self.page.clock.known else 100 * NS_PER_MS
        heard, played = (one.clock.uncertainty_ns for one in (self.capture.stream, self.playout.stream))
        return Uncertainty(ms(clock), ms(heard), ms(played))

    @property
    def uncertainty_ms(self) -> float:
        """By how much the time from a sound heard to a sound played may be off."""
        return self.uncertainty.total_ms

    @property
    def facts(self) -> dict[str, Any]:
        """What `run.json` says of the page."""
        return {**super().facts, "web": True, "pages": self.page.generation}

    async def close(self) -> None:
        """Hear the page no more."""
        await self.capture.close()

    def _hello(self, hello: Hello) -> str | None:
        rate = self.capture.stream.rate
        if rate and rate != hello.rate:
            return (
                f"This browser's sound runs at {hello.rate} Hz, the conversation began with {rate} Hz. "
                "Go on in the browser it began in, or start the command anew."
            )
        self.capture.begin(hello)
        self.playout.begin(hello)
        return None
