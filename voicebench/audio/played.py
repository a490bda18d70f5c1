"""What was played and when: the sample-exact account of the agent's voice in one turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import amplitude, present, window_samples
from voicebench.clock import NS_PER_S

THRESHOLD = amplitude(-45.0)


@dataclass
class Run:
    """A stretch of audio without a gap: the sample `i` sounds at `start_ns + i / rate`."""

    start_ns: int
    sample_rate: int
    pieces: list[NDArray[np.int16]] = field(default_factory=list)
    count: int = 0
    sounding: list[bool] = field(default_factory=list)
    """For each whole 5 ms window, and after a cut for the one that was cut: is there sound?"""
    closed: bool = False
    """Was it cut? Then nothing is added any more."""
    _tail: NDArray[np.int16] = field(default_factory=lambda: np.zeros(0, dtype=np.int16))

    def instant(self, sample: int) -> int:
        """When that sample sounds, in ns."""
        return self.start_ns + sample * NS_PER_S // self.sample_rate

    @property
    def end_ns(self) -> int:
        """When the last sample has sounded."""
        return self.instant(self.count)

    def append(self, samples: NDArray[np.int16]) -> None:
        """Add samples at the end."""
        self.pieces.append(samples)
        self.count += samples.size
        width = window_samples(self.sample_rate)
        joined = np.concatenate((self._tail, samples))
        whole = joined.size // width * width
        if whole:
            flags = present(joined[:whole].astype(np.float32) / 32768.0, self.sample_rate, THRESHOLD)
            self.sounding.extend(bool(flag) for flag in flags)
        self._tail = joined[whole:]

    def cut(self, at_ns: int) -> None:
        """Drop what would sound after `at_ns`, and take no more."""
        self.closed = True
        keep = max(0, -(-(at_ns - self.start_ns) * self.sample_rate // NS_PER_S))
        if keep >= self.count:
            return
        joined = np.concatenate(self.pieces)[:keep] if self.pieces else np.zeros(0, dtype=np.int16)
        self.pieces = [joined]
        self.count = int(joined.size)
        width = window_samples(self.sample_rate)
        whole = self.count // width
        rest = joined[whole * width :].astype(np.float32) / 32768.0
        left = [bool(flag) for flag in present(rest, self.sample_rate, THRESHOLD)]
        self.sounding = self.sounding[:whole] + left

    def sound_instants(self) -> list[tuple[int, int]]:
        """Start and end in ns of each unbroken sound; none ends after the run."""
        width = window_samples(self.sample_rate)
        flags = np.asarray([False, *self.sounding, False], dtype=np.int8)
        steps = np.flatnonzero(np.diff(flags))
        return [
            (self.instant(int(begin) * width), self.instant(min(int(end) * width, self.count)))
            for begin, end in steps.reshape(-1, 2)
        ]


@dataclass
class Played:
    """All that was played in a turn. `cursor_ns` is the instant up to which there is audio."""

    runs: list[Run] = field(default_factory=list)
    cursor_ns: int = 0
    flushes_ns: list[int] = field(default_factory=list)

    def write(self, samples: NDArray[np.int16], sample_rate: int, now_ns: int) -> None:
        """Play `samples` as soon as what is there has sounded, at once where there is nothing."""
        last = self.runs[-1] if self.runs else None
        if last is None or last.closed or last.sample_rate != sample_rate or now_ns > last.end_ns:
            start = now_ns if last is None else max(now_ns, last.end_ns)
            last = Run(start, sample_rate)
            self.runs.append(last)
        last.append(samples)
        self.cursor_ns = last.end_ns

    def waited_ns(self, after_ns: int) -> int:
        """For how long it stood silent in its midst since more audio was not there yet: between the first run
        that sounds after `after_ns` and the last. A cut is no wait."""
        heard = [run for run in self.runs if run.end_ns > after_ns]
        waits = [(run.end_ns, later.start_ns) for run, later in pairwise(heard)]
        return sum(
            end - begin for begin, end in waits if not any(begin <= cut <= end for cut in self.flushes_ns)
        )

    def flush(self, at_ns: int) -> None:
        """The person interrupted: what has not sounded by `at_ns` never will."""
        self.flushes_ns.append(at_ns)
        for run in self.runs:
            run.cut(at_ns)
        self.runs = [run for run in self.runs if run.count]
        self.cursor_ns = min(self.cursor_ns, at_ns)

    def sounds(self) -> list[tuple[int, int]]:
        """Start and end in ns of each sound in the order of playing."""
        return [sound for run in self.runs for sound in run.sound_instants()]

    def first_sound(self, after_ns: int, before_ns: int | None = None) -> int | None:
        """The first instant in [after_ns, before_ns) at which there is sound, in ns; None without one.

        A sound that began before `after_ns` and still lasts counts from `after_ns` on.
        """
        for run in self.runs:
            if run.end_ns <= after_ns:
                continue
            for begin, end in run.sound_instants():
                if end <= after_ns:
                    continue
                begin = max(begin, after_ns)
                if before_ns is not None and begin >= before_ns:
                    return None
                return begin
        return None

    def last_sound(self, before_ns: int | None = None) -> int | None:
        """The end of the last sound that began before `before_ns`, in ns; None without one."""
        for run in reversed(self.runs):
            for begin, end in reversed(run.sound_instants()):
                if before_ns is None or begin < before_ns:
                    return end
        return None
