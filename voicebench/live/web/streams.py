"""The page's microphone, and the instants of its samples."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.devices import Device, DeviceStream, Direction, StreamClock
from voicebench.audio.microphone import Capture
from voicebench.clock import NS_PER_S
from voicebench.live.web.messages import Hello
from voicebench.live.web.page import Page

UNSEEN_MS = 40.0
"""What a browser does not tell of its devices' buffers, together. Assumed: over a virtual sound card the
figures were 28 ms too low to 46 ms too high on a busy machine, but no real card was tried."""
_BLOCKS_KEPT = 256
_STEP_BLOCKS = 64
_STEP_NS = 8_000_000
"""A smaller step between two lots of blocks is no stop: clocks drift apart, and blocks come unevenly."""


class PageStreamClock(StreamClock):
    """The instants of the samples of the page's microphone.

    A block comes to the page's hands at once or late, never early: the earliest of the last seconds count,
    not the middle. What the browser says of the microphone's own latency is in it.

    Where the browser was stopped for a while its count stands still, and the sound that came meanwhile may
    wait in it ever after: by so much more an instant may be off. `slipped_ns` is the sum of such steps.
    """

    def __init__(self, rate: int) -> None:
        super().__init__(rate, "input")
        self._origins = deque(maxlen=_BLOCKS_KEPT)
        self.slipped_ns = 0
        self._lately: list[int] = []
        self._before: int | None = None

    def note(self, first: int, frames: int, now: int, offset_s: float | None) -> None:
        """A block came, as for every stream."""
        super().note(first, frames, now, offset_s)
        self._lately.append(self._origins[-1])
        if len(self._lately) < _STEP_BLOCKS:
            return
        low = _low(self._lately)
        step = 0 if self._before is None else low - self._before
        if abs(step) > _STEP_NS:
            self.slipped_ns = max(0, self.slipped_ns + step)
        self._before, self._lately = low, []

    def restart(self) -> None:
        """A page is there anew, or samples were lost."""
        super().restart()
        self._lately, self._before = [], None

    def begin(self) -> None:
        """A page is there anew: nothing waits in it."""
        self.restart()
        self.slipped_ns = 0

    @property
    def origin_ns(self) -> int | None:
        """The instant of sample 0; None before the first block."""
        with self._lock:
            return _low(self._origins) if self._origins else None

    @property
    def uncertainty_ns(self) -> int:
        """By how much an instant may be off, in ns: a block, how late blocks usually come, all slips."""
        with self._lock:
            if not self._origins:
                return round(NS_PER_S)
            late = statistics.median_low(self._origins) - _low(self._origins)
            return self._block_ns + late + self.slipped_ns


def _low(origins: Sequence[int]) -> int:
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
        if isinstance(self.clock, PageStreamClock):
            self.clock.begin()
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
