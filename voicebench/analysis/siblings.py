"""A fast mode held against its standard sibling on the same samples: milliseconds, share, dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from voicebench.analysis.bootstrap import RESAMPLES, median_interval
from voicebench.analysis.changes import in_share
from voicebench.analysis.ledger import counts, within_budget
from voicebench.plan.modes import catalogue
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunInfo
from voicebench.turns.timeline import Anchor

LEAST_SAMPLES = 6
"""With fewer samples in common no interval is given; see `bootstrap.LEAST_N`."""


@dataclass(frozen=True)
class Faster:
    """What a fast mode gains over its sibling, over the samples that both were asked."""

    mode: str
    sibling: str
    anchor: Anchor | None
    samples: int
    saved_ms: float | None
    """The median over samples of (sibling's median V2V - the fast mode's). Negative: it was slower."""
    saved_ci95: tuple[float, float] | None
    """Bootstrap over samples; None below 6 samples."""
    points: float | None
    """The mean over samples of the difference in budget share, in percentage points."""
    points_ci95: tuple[float, float] | None
    """Bootstrap over samples; None below 6 samples."""
    extra_usd_per_1000: float | None
    """Mean price of 1000 turns, the fast mode's less the sibling's. None where either has no price."""

    @property
    def saves(self) -> bool | None:
        """Does it answer sooner (True), later (False)? None: the samples do not tell."""
        return _sign(self.saved_ci95)

    @property
    def changes_outcome(self) -> bool | None:
        """Does it hold the budget more (True) or less (False) often? None: the samples do not tell."""
        return _sign(self.points_ci95)

    @property
    def usd_per_1000_per_ms(self) -> float | None:
        """Dollars per 1000 turns for each ms saved. None unless time is saved and prices are known."""
        if self.extra_usd_per_1000 is None or not self.saved_ms or not self.saves:
            return None
        return self.extra_usd_per_1000 / self.saved_ms

    @property
    def usd_per_1000_per_point(self) -> float | None:
        """Dollars per 1000 turns for each point of budget share. None unless share is won and priced."""
        if self.extra_usd_per_1000 is None or not self.points or not self.changes_outcome:
            return None
        return self.extra_usd_per_1000 / self.points

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            **asdict(self),
            "anchor": None if self.anchor is None else self.anchor.value,
            "saves": self.saves,
            "changes_outcome": self.changes_outcome,
            "usd_per_1000_per_ms": self.usd_per_1000_per_ms,
            "usd_per_1000_per_point": self.usd_per_1000_per_point,
        }


def _sign(interval: tuple[float, float] | None) -> bool | None:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return None
    return interval[0] > 0


def siblings_of(info: RunInfo) -> dict[str, str]:
    """Fast mode to its standard sibling: as the run's own modes say, else the catalogue."""
    found = {mode.id: mode.sibling for mode in catalogue().values() if mode.sibling}
    for mode in (one for key in ("own_modes", "sets", "routes") for one in _listed(info.config.get(key))):
        if isinstance(mode, Mapping) and isinstance(mode.get("id"), str):
            found.pop(mode["id"], None)
            if isinstance(mode.get("sibling"), str):
                found[mode["id"]] = mode["sibling"]
    return found


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def worth_of(
    info: RunInfo,
    groups: Mapping[tuple[str, Anchor | None], Sequence[TurnRecord]],
    usd_per_turn: Mapping[tuple[str, Anchor | None], float | None],
    budget_ms: float,
) -> tuple[Faster, ...]:
    """Each mode against its sibling at the same anchor, where both have records, in the groups' order.

    `usd_per_turn` is each entry's mean price of a turn in US dollars, None where it is not known.
    """
    siblings = siblings_of(info)
    found = []
    for (mode, anchor), records in groups.items():
        other = (siblings.get(mode, ""), anchor)
        if not records or other[0] == mode or not groups.get(other):
            continue
        price, others = usd_per_turn.get((mode, anchor)), usd_per_turn.get(other)
        extra = None if price is None or others is None else 1000 * (price - others)
        found.append(compare(records, groups[other], budget_ms, extra))
    return tuple(found)


def compare(
    fast: Sequence[TurnRecord],
    standard: Sequence[TurnRecord],
    budget_ms: float,
    extra_usd_per_1000: float | None,
    seed: int = 0,
) -> Faster:
    """`fast` against `standard`, each the records of one mode at one anchor, at least one."""
    latencies = [_by_sample(records) for records in (fast, standard)]
    shares = [_shares(records, budget_ms) for records in (fast, standard)]
    common = sorted(latencies[0].keys() & latencies[1].keys())
    saved = np.sort([np.median(latencies[1][one]) - np.median(latencies[0][one]) for one in common])
    both = sorted(shares[0].keys() & shares[1].keys())
    points = np.array([100 * (shares[0][one] - shares[1][one]) for one in both])
    return Faster(
        mode=fast[0].mode,
        sibling=standard[0].mode,
        anchor=fast[0].anchor,
        samples=len(common),
        saved_ms=float(np.median(saved)) if common else None,
        saved_ci95=median_interval(saved, seed=seed) if len(common) >= LEAST_SAMPLES else None,
        points=float(points.mean()) if both else None,
        points_ci95=_mean_interval(points, seed) if len(both) >= LEAST_SAMPLES else None,
        extra_usd_per_1000=extra_usd_per_1000,
    )


def _by_sample(records: Sequence[TurnRecord]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        if counts(record) and record.voice_to_voice_ms is not None:
            found.setdefault(record.sample, []).append(record.voice_to_voice_ms)
    return found


def _shares(records: Sequence[TurnRecord], budget_ms: float) -> dict[str, float]:
    found: dict[str, list[bool]] = {}
    for record in records:
        if in_share(record):
            found.setdefault(record.sample, []).append(within_budget(record, budget_ms))
    return {sample: sum(hits) / len(hits) for sample, hits in found.items()}


def _mean_interval(values: np.ndarray[Any, np.dtype[np.float64]], seed: int) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean, over 2000 resamples."""
    rng = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, 100):
        drawn = rng.integers(values.size, size=(100, values.size))
        means[start : start + 100] = values[drawn].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
