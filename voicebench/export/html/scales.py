"""From figures to places on an axis: linear, and logarithmic with a true zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Linear:
    """A linear axis from `low` at `begin` px to `high` at `end` px."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Where `value` lies, in px."""
        return self.begin + (value - self.low) * (self.end - self.begin) / ((self.high - self.low) or 1.0)

    def inside(self, value: float) -> float:
        """Where `value` lies, held within the axis."""
        return self(max(self.low, min(self.high, value)))

    def ticks(self, most: int = 7) -> list[float]:
        """At most about `most` round figures within the axis."""
        step = nice_step((self.high - self.low) / max(1, most))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]


@dataclass(frozen=True)
class LogFromZero:
    """An axis of log(1 + value/unit): 0 at `begin` px, `high` at `end` px."""

    high: float
    begin: float
    end: float
    unit: float = 1.0

    def __call__(self, value: float) -> float:
        """Where `value` (at least 0) lies, in px."""
        whole = math.log1p(self.high / self.unit) or 1.0
        return self.begin + math.log1p(max(0.0, value) / self.unit) / whole * (self.end - self.begin)

    def ticks(self, gap: float = 22.0) -> list[float]:
        """0 and figures 1, 3, 10, 30 ... of the unit's order, none nearer than `gap` px to the one before."""
        found = [0.0]
        decade = 10.0 ** math.floor(math.log10(self.unit) + 1e-9)
        while decade <= self.high:
            for step in (decade, 3 * decade):
                if step <= self.high and abs(self(step) - self(found[-1])) >= gap:
                    found.append(step)
            decade *= 10
        return found


def nice_step(rough: float) -> float:
    """The least round step (1, 2, 2.5 or 5 times a power of ten) of at least `rough`."""
    if not rough > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


def nice_end(value: float, most: int = 7) -> float:
    """`value` or the next round figure above it."""
    step = nice_step(value / most)
    return math.ceil(value / step - 1e-9) * step


Point = tuple[float, float]


def simplified(points: Sequence[Point], tolerance: float = 0.7) -> list[Point]:
    """The points of a line less those that lie within `tolerance` px of it without them.

    The Douglas-Peucker algorithm (Ramer, 1972); the first and the last point stay.
    """
    kept = {0, len(points) - 1}
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        (x1, y1), (x2, y2) = points[first], points[last]
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        far, place = tolerance, -1
        for one in range(first + 1, last):
            x, y = points[one]
            off = abs((x2 - x1) * (y1 - y) - (x1 - x) * (y2 - y1)) / length
            if off > far:
                far, place = off, one
        if place >= 0:
            kept.add(place)
            spans += [(first, place), (place, last)]
    return [points[one] for one in sorted(kept) if one >= 0]
