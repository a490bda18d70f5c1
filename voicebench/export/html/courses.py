"""How replies grow over the slot's time: medians and bands of what had been delivered by each instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.ledger import counts
from voicebench.clock import NS_PER_MS
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import Delivery

MOST_REPLIES = 1000
"""A mode's curve is drawn from at most so many replies, evenly over the run; its labels are from all."""
STEP_MS = 20

MEASURES = ("tokens", "words", "characters", "speech_s")
UNITS = {"tokens": "tokens", "words": "words", "characters": "characters", "speech_s": "seconds of speech"}


@dataclass(frozen=True)
class Curve:
    """One measure over time: p10, p50 and p90 at each of `at_ms`."""

    at_ms: NDArray[np.float64]
    p10: NDArray[np.float64]
    p50: NDArray[np.float64]
    p90: NDArray[np.float64]
    n: int
    """Replies that it is drawn from."""
    of: int
    """Replies that there are."""


def curves_of(records: Sequence[TurnRecord], until_ms: float, words_per_minute: float) -> dict[str, Curve]:
    """The curve of each measure over the turns that count; a measure without any values is left out."""
    usable = [record for record in records if record.deltas and counts(record)]
    step = max(1, -(-len(usable) // MOST_REPLIES))
    drawn = usable[::step]
    at_ms = np.arange(0, until_ms + STEP_MS / 2, STEP_MS)
    values: dict[str, list[list[float]]] = {name: [] for name in MEASURES}
    for record in drawn:
        delivery = Delivery(record, words_per_minute)
        found = [delivery.by(round(at * NS_PER_MS)) for at in at_ms]
        for name in MEASURES:
            row = [getattr(one, name) for one in found]
            if None not in row:
                values[name].append(row)
    curves = {}
    for name, rows in values.items():
        if rows:
            low, middle, high = np.percentile(np.array(rows, dtype=np.float64), [10, 50, 90], axis=0)
            curves[name] = Curve(at_ms, low, middle, high, len(rows), len(usable))
    return curves
