"""Statistics of latency: percentiles, intervals and bounds, one function each.

A figure that the sample cannot carry is None, never 0 and never NaN. Everything here is deterministic: the
bootstrap has a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voicebench.analysis.bootstrap import median_interval

MIN_N = {90: 10, 95: 20, 99: 100}
"""From how many values on a percentile is shown; below, the maximum says more."""

NEAR_RANKS = 5.0
"""How many percentile ranks around a percentile its stage means are taken over."""

Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """What is told of one quantity. Its unit is that of the values; what n does not allow is None."""

    n: int
    """Values that the figures rest on."""
    missing: int = 0
    """Turns that should have had a value and have none."""
    excluded: int = 0
    """Turns whose value was kept out, by a flag."""
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    """From n >= 10."""
    p95: float | None = None
    """From n >= 20."""
    p99: float | None = None
    """From n >= 100."""
    min: float | None = None
    max: float | None = None
    ci95_p50: tuple[float, float] | None = None
    """95 % interval of the median, from n >= 6; see `bootstrap.median_interval`."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as SUMMARY of `report.json`."""
        plain = asdict(self)
        plain["ci95_p50"] = None if self.ci95_p50 is None else list(self.ci95_p50)
        return plain


def sorted_values(values: ArrayLike) -> Floats:
    """The values in ascending order. Raises ValueError for one that is not a finite number."""
    return _finite(np.sort(np.asarray(values, dtype=np.float64).ravel()))


def _finite(ordered: Floats) -> Floats:
    if ordered.size and not (math.isfinite(ordered[0]) and math.isfinite(ordered[-1])):
        raise ValueError("a statistic is asked over a value that is not a finite number")
    return ordered


def _at(ordered: Floats, percent: float) -> float:
    position = (ordered.size - 1) * percent / 100
    below = min(int(position), ordered.size - 1)
    above = min(below + 1, ordered.size - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return min(high, low + (high - low) * (position - below))


def percentile(values: ArrayLike, percent: float) -> float | None:
    """The `percent`-th percentile (0 to 100), in the unit of the values. None for no values.

    Linear interpolation between order statistics (Hyndman and Fan, 1996, type 7; numpy's default): with the
    values in ascending order x(0) .. x(n-1) and h = (n-1) * percent/100, it is
    x(floor h) + (h - floor h) * (x(floor h + 1) - x(floor h)). It never falls as `percent` grows.

    Raises ValueError for a percent outside 0..100 or a value that is not finite.
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
    ordered = sorted_values(values)
    return _at(ordered, percent) if ordered.size else None


def summarize(
    values: ArrayLike,
    missing: int = 0,
    excluded: int = 0,
    clusters: Sequence[Hashable] | NDArray[np.intp] | None = None,
    seed: int = 0,
) -> Summary:
    """Everything that is told of one quantity; see `Summary` for what is None when.

    `clusters` names, for each value, the sample that it comes from (an array: by numbers from 0): repeats of
    one sample are no independent evidence, so the median's interval draws whole samples. Raises ValueError
    for a value that is not finite or where `clusters` has another length.
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    if clusters is not None and len(clusters) != array.size:
        raise ValueError(f"{array.size} values, but the clusters of {len(clusters)}")
    n = array.size
    if n == 0:
        return Summary(0, missing, excluded)
    labels = None
    if clusters is None:
        ordered = sorted_values(array)
    else:
        order = np.argsort(array, kind="stable")
        ordered = _finite(array[order])
        labels = (clusters if isinstance(clusters, np.ndarray) else cluster_numbers(clusters))[order]
    high = {percent: _at(ordered, percent) if n >= least else None for percent, least in MIN_N.items()}
    return Summary(
        n=n,
        missing=missing,
        excluded=excluded,
        mean=math.fsum(ordered.tolist()) / n,
        p50=_at(ordered, 50),
        p90=high[90],
        p95=high[95],
        p99=high[99],
        min=float(ordered[0]),
        max=float(ordered[-1]),
        ci95_p50=median_interval(ordered, labels, seed),
    )


def cluster_numbers(clusters: Iterable[Hashable]) -> NDArray[np.intp]:
    """The labels as numbers from 0, in the order of their first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in clusters], dtype=np.intp)


def wilson(hit: int, n: int) -> tuple[float, float] | None:
    """The 95 % interval of a share `hit`/`n`, within 0..1 (Wilson, 1927, without correction). None for n = 0.

    With p = hit/n and z = 1.96: (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). Raises ValueError
    unless 0 <= hit <= n.
    """
    if not 0 <= hit <= n:
        raise ValueError(f"{hit} of {n} is no share")
    if n == 0:
        return None
    share = hit / n
    centre = share + Z_95**2 / (2 * n)
    half = Z_95 * math.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    low = 0.0 if hit == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if hit == n else min(1.0, (centre + half) / scale)
    return low, high


def upper_bound(values: ArrayLike, percent: float, confidence: float = 0.95) -> float | None:
    """An upper confidence bound of a percentile, free of any assumed distribution.

    The smallest order statistic x(k), k from 1, with P(Binomial(n, percent/100) < k) >= confidence (Hahn and
    Meeker, Statistical Intervals, section 5.2): the true percentile of independent turns lies at or below it
    with at least that confidence. None where even the maximum does not reach that: p95 needs n >= 59, p99
    n >= 299 at 95 %. Raises ValueError for a value that is not finite.
    """
    ordered = sorted_values(values)
    n, share = ordered.size, percent / 100
    if n == 0 or not 0 < share < 1 or 1 - share**n < confidence:
        return None
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    hits = np.arange(n + 1)
    pmf = np.exp(
        logs[n] - logs[hits] - logs[n - hits] + hits * math.log(share) + (n - hits) * math.log1p(-share)
    )
    below = np.cumsum(pmf[:-1])  # below[k-1] = P(Binomial < k), k = 1 .. n
    return float(ordered[min(int(np.searchsorted(below, confidence)), n - 1)])


def upper_bound_p95(values: ArrayLike) -> float | None:
    """What p95 is at most, with 95 % confidence: `upper_bound(values, 95)`. None below n = 59."""
    return upper_bound(values, 95)


@dataclass(frozen=True)
class StageMeans:
    """The means of the stages over the turns whose V2V lies near a percentile: they add up to `total`."""

    n: int
    total: float
    """Mean V2V of those turns, in the unit of the values."""
    stages: dict[str, float]


def stage_means_near(
    totals: ArrayLike, stages: Mapping[str, ArrayLike], percent: float, within: float = NEAR_RANKS
) -> StageMeans | None:
    """The mean of each stage over the turns within `within` percentile ranks of the V2V's `percent`.

    `totals` are the V2V, one per turn, and each of `stages` the stage's part of it, 0 where the stage has
    none: per turn they sum to the total, so the means do too, which medians of stages do not. The rank of the
    turn at place i from 0 in ascending order is 100 i/(n-1). The turns between which the percentile
    lies are always among them. None for no turns, and for a percentile that n is too small to show.
    """
    array = np.asarray(totals, dtype=np.float64).ravel()
    n = array.size
    if n == 0 or n < MIN_N.get(round(percent), 1):
        return None
    order = np.argsort(array, kind="stable")
    position = (n - 1) * percent / 100
    reach = (n - 1) * within / 100
    first = min(math.ceil(position - reach - 1e-9), math.floor(position))
    last = max(math.floor(position + reach + 1e-9), math.ceil(position))
    near = order[max(0, first) : min(n - 1, last) + 1]
    return StageMeans(
        n=near.size,
        total=float(np.mean(array[near])),
        stages={
            name: float(np.mean(np.asarray(part, dtype=np.float64)[near])) for name, part in stages.items()
        },
    )
