"""The interval of a median by bootstrap: seeded, by sample, exact, and quick for large sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEAST_N = 6
"""From n = 6 on the range of the values itself covers the median at 95 %: 1 - 2 * 0.5**6 = 0.97."""
EXACT_IN_FLOAT32 = 2**24
ONE_THREAD, LEAST_ROWS = 2**18, 2
"""Products of so many multiplications are made by one thread (OpenBLAS); of fewer rows it is not worth it."""
MOST_CLUSTERS = 2000
"""More samples than this are drawn in groups."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


def median_interval(
    ordered: Floats, clusters: Numbers | None = None, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of the median of `ordered` (ascending), in its unit: a percentile bootstrap.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13, over 2000 resamples. `clusters`
    numbers the sample of each value, in the same order: whole samples are drawn with replacement, so that
    repeats of one sample do not pass for independent evidence. More than 2000 samples are drawn in 2000
    groups. Where there is one sample only, or none is named, single values are drawn: the interval of one
    sample's values speaks of that sample alone. None below 6 values. The same seed gives the same interval.
    """
    if ordered.size < LEAST_N:
        return None
    rng = np.random.default_rng(seed)
    medians = _of_values(ordered, rng)
    if clusters is not None:
        ranks = np.cumsum(np.bincount(clusters) > 0) - 1
        numbers = ranks[clusters] % MOST_CLUSTERS
        if int(numbers.max()) > 0:
            medians = _of_clusters(ordered, numbers, rng)
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(low), float(high)


def _of_values(ordered: Floats, rng: np.random.Generator) -> Floats:
    """The medians of resamples of single values, without drawing all of each.

    A resample draws n places of the ordered set, uniformly; the j-th smallest place is floor(n * U) with U
    the j-th order statistic of n uniform numbers, which is Beta(j, n + 1 - j). For an even n the next one,
    given U, is the least of the n - j left over, uniform above U.
    """
    n = ordered.size
    lower = (n + 1) // 2
    first = rng.beta(lower, n + 1 - lower, RESAMPLES)
    second = first
    if n % 2 == 0:
        second = first + (1 - first) * (1 - rng.random(RESAMPLES) ** (1 / (n - lower)))
    places = [np.minimum((n * drawn).astype(np.intp), n - 1) for drawn in (first, second)]
    return np.asarray((ordered[places[0]] + ordered[places[1]]) / 2)


def _of_clusters(ordered: Floats, clusters: Numbers, rng: np.random.Generator) -> Floats:
    """The medians of resamples of whole clusters.

    How often each cluster is drawn gives each value's weight. The weight up to the end of each block of
    about sqrt(n) ordered values is one product of matrices; only the block with the median is then looked at
    value by value.
    """
    n, units = ordered.size, int(clusters.max()) + 1
    width = math.isqrt(n - 1) + 1
    blocks = -(-n // width)
    drawn = rng.integers(units, size=(RESAMPLES, units)) + np.arange(RESAMPLES)[:, None] * units
    weights = np.bincount(drawn.ravel(), minlength=RESAMPLES * units).reshape(RESAMPLES, units)
    cells = clusters * blocks + np.arange(n) // width
    held = np.bincount(cells, minlength=units * blocks).reshape(units, blocks)
    # Whole numbers: exact in single precision up to 2**24, and twice as quick to multiply.
    largest = int((weights @ held.sum(axis=1)).max())
    exact = np.float32 if largest < EXACT_IN_FLOAT32 else np.float64
    reached = _product(weights.astype(exact), np.cumsum(held, axis=1).astype(exact))
    size = reached[:, -1].astype(np.intp)
    # A column beyond the last cluster, which is never drawn, stands for places beyond the last value.
    small = np.zeros((RESAMPLES, units + 1), dtype=np.int32)
    small[:, :units] = weights
    padded = np.full(blocks * width, units, dtype=np.intp)
    padded[:n] = clusters
    find = _Finder(ordered, padded.reshape(blocks, width), small, reached)
    low, high = find.values_at(np.arange(RESAMPLES), (size - 1) // 2, size // 2)
    return (low + high) / 2


def _product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """`left @ right`, in pieces for which the linear algebra library wakes no threads where it can be.

    On a busy machine, threads that wait for one another take several times the processor time of the product.
    """
    rows = ONE_THREAD // max(1, right.size)
    if rows < LEAST_ROWS:
        return np.asarray(left @ right)
    found = np.empty((left.shape[0], right.shape[1]), dtype=left.dtype)
    for begin in range(0, left.shape[0], rows):
        np.matmul(left[begin : begin + rows], right, out=found[begin : begin + rows])
    return found


@dataclass(frozen=True)
class _Finder:
    """Finds values by their rank in resamples of whole clusters."""

    ordered: Floats
    clusters: Numbers
    """The cluster of each value, a row a block."""
    weights: NDArray[np.int32]
    """How often each resample draws each cluster."""
    reached: NDArray[Any]
    """The weight up to each block's end, a row a resample."""

    def values_at(self, rows: Numbers, rank: Numbers, other: Numbers) -> tuple[Floats, Floats]:
        """The values at `rank` and at `other` (from 0; the same or the next one) of these resamples."""
        reached, width = self.reached[rows], self.clusters.shape[1]
        block = np.count_nonzero(reached <= rank[:, None].astype(reached.dtype), axis=1)
        before = np.where(block > 0, reached[np.arange(rows.size), np.maximum(block - 1, 0)], 0)
        flat = self.clusters[block] + (rows * self.weights.shape[1])[:, None]
        within = np.cumsum(self.weights.ravel()[flat], axis=1, dtype=np.int32)
        within += before[:, None].astype(np.int32)
        first = self.ordered[block * width + np.count_nonzero(within <= rank[:, None], axis=1)]
        offset = np.count_nonzero(within <= other[:, None], axis=1)
        second = self.ordered[np.minimum(block * width + offset, self.ordered.size - 1)]
        beyond = np.flatnonzero(offset >= width)
        if beyond.size:  # the second rank begins another block
            second[beyond] = self.values_at(rows[beyond], other[beyond], other[beyond])[0]
        return first, second
