"""Intervals of differences between paired turns: a seeded bootstrap of whole samples.

Repeats of one sample are no independent evidence: samples are drawn, not turns. An interval is
estimate -+ t * standard error, with the bootstrap's standard error and Student's t of as many degrees of
freedom as there are independent units less one (Efron and Tibshirani, An Introduction to the Bootstrap,
chapters 6 and 12). With few samples it holds its level, which a percentile interval does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.statistics import cluster_numbers

RESAMPLES = 2000
LEAST_SAMPLES = 6
"""From so many samples on, samples are drawn; below, pairs within each sample."""
LEAST_FREEDOM = 5
"""Fewer degrees of freedom than this give no interval."""
MOST_UNITS = 2000
"""More units than this are drawn in groups."""
TRIM = 0.2
"""The share of pairs left out at either end of a trimmed mean."""

_CELLS = 4_000_000
"""How many weights are held in memory at once."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
Statistic = Callable[[Floats], Floats]
"""From weights of shape (resamples, pairs) to one figure a resample."""


@dataclass(frozen=True)
class Draws:
    """How often each unit is drawn in each resample. A unit is a sample, or, with few samples, a pair."""

    counts: NDArray[np.int32]
    """Of shape (resamples, units)."""
    unit: Numbers
    """The unit of each pair."""
    freedom: int
    """Degrees of freedom behind a standard error."""
    inflation: float
    """What the bootstrap's standard error falls short by, as a plain resample has no n - 1."""
    by_sample: bool
    """Are whole samples drawn? Else the interval speaks of the samples at hand alone."""


def draw(samples: Sequence[Hashable], seed: int = 0) -> Draws | None:
    """The resamples for pairs whose samples are named: the same names and seed give the same.

    From 6 samples on, whole samples are drawn with replacement. Below, pairs are drawn within each sample.
    None where fewer than 5 degrees of freedom are left: there is no interval then.
    """
    labels = cluster_numbers(samples)
    groups = int(labels.max()) + 1 if labels.size else 0
    rng = np.random.default_rng(seed)
    if groups >= LEAST_SAMPLES:
        unit = labels % MOST_UNITS
        units = int(unit.max()) + 1
        counts = _with_replacement(units, rng)
        return Draws(counts, unit, units - 1, math.sqrt(units / (units - 1)), True)
    freedom = labels.size - groups
    if freedom < LEAST_FREEDOM:
        return None
    # Pairs beyond the most that are held one by one share a unit with another pair of the same sample.
    unit = np.empty(labels.size, dtype=np.intp)
    parts, first = [], 0
    for group in range(groups):
        places = np.flatnonzero(labels == group)
        units = min(places.size, MOST_UNITS // groups)
        unit[places] = first + np.arange(places.size) % units
        parts.append(_with_replacement(units, rng))
        first += units
    freedom = first - groups
    return Draws(np.concatenate(parts, axis=1), unit, freedom, math.sqrt(first / freedom), False)


def _with_replacement(units: int, rng: np.random.Generator) -> NDArray[np.int32]:
    drawn = rng.integers(units, size=(RESAMPLES, units)) + np.arange(RESAMPLES)[:, None] * units
    counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * units)
    return counts.reshape(RESAMPLES, units).astype(np.int32)


def estimate(statistic: Statistic, pairs: int) -> float:
    """The figure over all pairs as they are."""
    return float(statistic(np.ones((1, pairs)))[0])


def interval(statistic: Statistic, draws: Draws, error: float = 0.05) -> tuple[float, float]:
    """The interval around `estimate` that misses the true figure with probability `error`."""
    rows = max(1, _CELLS // max(1, draws.unit.size))
    found = np.concatenate(
        [
            statistic(draws.counts[first : first + rows][:, draws.unit].astype(np.float64))
            for first in range(0, RESAMPLES, rows)
        ]
    )
    at = estimate(statistic, draws.unit.size)
    reach = student_t(1 - error / 2, draws.freedom) * draws.inflation * float(np.std(found))
    return at - reach, at + reach


def percentile_difference(a: Floats, b: Floats, percent: float) -> Statistic:
    """The `percent`-th percentile of `b` less that of `a`, under the same weights."""
    if np.array_equal(a, b):
        return lambda weights: np.zeros(weights.shape[0])
    first, second = _percentile(a, percent), _percentile(b, percent)
    return lambda weights: second(weights) - first(weights)


def _percentile(values: Floats, percent: float) -> Statistic:
    """`statistics.percentile` of a set in which each value stands as often as its weight says."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    if ordered[0] == ordered[-1]:
        return lambda weights: np.full(weights.shape[0], ordered[0])

    def at(weights: Floats) -> Floats:
        reached = np.cumsum(weights[:, order], axis=1)
        position = (reached[:, -1] - 1) * percent / 100
        below = np.floor(position)
        low = ordered[np.sum(reached <= below[:, None], axis=1)]
        above = np.sum(reached <= below[:, None] + 1, axis=1)
        high = ordered[np.minimum(above, ordered.size - 1)]
        return np.asarray(low + (high - low) * (position - below))

    return at


def trimmed_mean(differences: Floats) -> Statistic:
    """The mean without the lowest and the highest fifth (Tukey and McLaughlin, 1963).

    As good as the mean where differences are normal, and unmoved by a few turns that are far out.
    """
    order = np.argsort(differences, kind="stable")
    ordered = differences[order]
    if ordered[0] == ordered[-1]:
        return lambda weights: np.full(weights.shape[0], ordered[0])

    def at(weights: Floats) -> Floats:
        reached = np.cumsum(weights[:, order], axis=1)
        total = reached[:, -1:]
        kept = np.clip(reached, TRIM * total, (1 - TRIM) * total)
        inside = np.diff(np.concatenate((TRIM * total, kept), axis=1), axis=1)
        return np.asarray((inside @ ordered) / ((1 - 2 * TRIM) * total[:, 0]))

    return at


def mean(differences: Floats) -> Statistic:
    """The mean: of differences between hits (1) and misses (0), the difference of two shares."""
    return lambda weights: np.asarray((weights @ differences) / weights.sum(axis=1))


@cache
def student_t(probability: float, freedom: int) -> float:
    """The quantile of Student's t for a `probability` of at least 0.5 and whole degrees of freedom.

    By bisection of the distribution in closed form (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    low, high = 0.0, 1.0
    while _student_t_at_most(high, freedom) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_t_at_most(middle, freedom) < probability else (low, middle)
    return high


def _student_t_at_most(t: float, freedom: int) -> float:
    """P(T <= t) for t >= 0."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2 == 1
    term = total = cosine if odd else 1.0
    for step in range(3 if odd else 2, freedom, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if not odd:
        return 0.5 + sine * total / 2
    return 0.5 + (angle + (sine * total if freedom > 1 else 0.0)) / math.pi
