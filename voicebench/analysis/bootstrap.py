"""The interval of a median by bootstrap: seeded, by sample, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
"""Resamples for small sets."""
FEWEST_RESAMPLES = 200
"""Resamples for large sets, whose interval is narrow."""
WORK = 4_000_000
"""Values times resamples that one interval may cost."""
THIN_ABOVE = WORK // FEWEST_RESAMPLES
"""Above this many values every m-th of the ordered ones stands for its m neighbours."""
BLOCK = 2_000_000
"""Values times resamples that are in memory at once."""
LEAST_N = 6
"""From n = 6 on the range of the values itself covers the median at 95 %: 1 - 2 * 0.5**6 = 0.97."""


def resamples_for(n: int) -> int:
    """Resamples of an interval over `n` values: 2000 up to n = 2,000, then fewer, down to 200."""
    return int(min(RESAMPLES, max(FEWEST_RESAMPLES, WORK // max(1, n))))


def median_interval(
    ordered: NDArray[np.float64], clusters: NDArray[np.intp] | None = None, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of the median of `ordered` (ascending), in its unit: a percentile bootstrap.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13. `clusters` numbers the sample of each
    value, in the same order: whole samples are drawn with replacement, so that repeats of one sample do not
    pass for independent evidence. Where there is one sample only, its values are drawn: the interval then
    speaks of that sample alone. The number of resamples follows `resamples_for`. Above 20,000 values the
    interval is made from every m-th of them in order, and is then too wide rather than too narrow. None
    below 6 values. The same seed gives the same interval.
    """
    if ordered.size < LEAST_N:
        return None
    step = -(-ordered.size // THIN_ABOVE)
    if step > 1:
        ordered = np.ascontiguousarray(ordered[step // 2 :: step])
        clusters = None if clusters is None else clusters[step // 2 :: step]
    n = ordered.size
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
        if int(clusters.max()) == 0:
            clusters = None
    units = n if clusters is None else int(clusters.max()) + 1
    rng = np.random.default_rng(seed)
    total = resamples_for(n)
    rows = max(1, BLOCK // n)
    medians = np.concatenate(
        [
            _medians(ordered, clusters, _draw(rng, units, min(rows, total - done)))
            for done in range(0, total, rows)
        ]
    )
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(low), float(high)


def _draw(rng: np.random.Generator, units: int, rows: int) -> NDArray[np.intp]:
    """How often each unit is drawn, in each of `rows` resamples: an array (rows, units)."""
    drawn = rng.integers(units, size=(rows, units))
    drawn += np.arange(rows)[:, None] * units
    return np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)


def _medians(
    ordered: NDArray[np.float64], clusters: NDArray[np.intp] | None, counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The median of each resample, from how often each value of the ordered set is in it."""
    weights = counts if clusters is None else counts[:, clusters]
    reached = np.cumsum(weights, axis=1)
    size = reached[:, -1]
    below = (reached <= ((size - 1) // 2)[:, None]).sum(axis=1)
    above = (reached <= (size // 2)[:, None]).sum(axis=1)
    return np.asarray((ordered[below] + ordered[above]) / 2)
