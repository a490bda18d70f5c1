"""Limits that a run, or a change, is held against: passed, breached, or not proven by so few turns.

A limit is passed where the figure's confidence bound is within it, and breached where the bound on the other
side is beyond it. Between the two the turns do not say, and more of them would.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from voicebench.analysis.caveats import LEAST_N_FOR_P95_BOUND
from voicebench.analysis.comparison import Difference, ModeComparison
from voicebench.analysis.ledger import Share, counts
from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.statistics import Z_95, Summary, upper_bound
from voicebench.errors import BadRequest, ExitStatus
from voicebench.turns.records import TurnRecord

ALLOWANCE_MS = 50.0
"""What a change may cost where no limit is named: so much slower must be ruled out."""
LEAST_N_FOR_MEDIAN = 6
_TOO_MANY = 1_000_000
"""Nobody runs so many turns: it is told as never."""


class Finding(StrEnum):
    """What became of one limit."""

    PASS = "pass"  # noqa: S105 - a finding, not a secret
    BREACH = "breach"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class Limits:
    """What is asked; None is not held. For a run they bound the figures, for a comparison their worsening."""

    p50_ms: float | None = None
    """V2V's median, at most."""
    p95_ms: float | None = None
    """V2V's p95, at most."""
    hit_rate: float | None = None
    """The share within the budget, at least (0 to 1)."""
    cutoff_rate: float | None = None
    """The share of turns that are cut off, at most (0 to 1)."""

    def __post_init__(self) -> None:
        for name, value in (("--p50-ms", self.p50_ms), ("--p95-ms", self.p95_ms)):
            if value is not None and not 0 <= value < math.inf:
                raise BadRequest(f"{name} {value:g} is no duration.", "Name milliseconds from 0 on.")
        for name, value in (("--hit-rate", self.hit_rate), ("--cutoff-rate", self.cutoff_rate)):
            if value is not None and not 0 <= value <= 1:
                raise BadRequest(f"{name} {value:g} is no share.", "Name a share from 0 to 1, such as 0.95.")

    @property
    def empty(self) -> bool:
        """Is nothing asked?"""
        return self == Limits()


@dataclass(frozen=True)
class Check:
    """One limit held against one mode at one anchor."""

    mode: str
    anchor: str | None
    limit: str
    """`p50_ms`, `p95_ms`, `hit_rate`, `cutoff_rate`, or of a comparison `slower`."""
    asked: float
    """In ms, or a share."""
    at_least: bool
    """Is `asked` the least that is allowed? Else the most."""
    found: float | None
    """The figure; None where n does not allow it."""
    low: float | None
    """The figure is at least this; None where the turns do not say."""
    high: float | None
    """The figure is at most this; None where the turns do not say."""
    n: int
    """Turns (of a comparison: pairs) that the figure rests on."""
    finding: Finding
    needs: str | None = None
    """What would prove it; None where it is proven or breached."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "mode": self.mode,
            "anchor": self.anchor,
            "limit": self.limit,
            "asked": self.asked,
            "at_least": self.at_least,
            "found": self.found,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "finding": self.finding.value,
            "needs": self.needs,
        }


def judged(asked: float, at_least: bool, low: float | None, high: float | None) -> Finding:
    """Pass where the whole range from `low` to `high` keeps the limit, breach where none of it does."""
    if at_least:
        kept, beyond = low is not None and low >= asked, high is not None and high < asked
    else:
        kept, beyond = high is not None and high <= asked, low is not None and low > asked
    return Finding.PASS if kept else Finding.BREACH if beyond else Finding.NOT_PROVEN


def check_mode(entry: ModeReport, records: Iterable[TurnRecord], limits: Limits) -> list[Check]:
    """The limits held against one entry of a report; `records` are the run's, one a turn.

    The median is held by its 95 % interval, p95 by its 95 % confidence bounds (which take turns as
    independent), shares by their Wilson interval.
    """
    latencies = [
        record.voice_to_voice_ms
        for record in records
        if record.mode == entry.mode
        and record.anchor is entry.anchor
        and counts(record)
        and record.voice_to_voice_ms is not None
    ]
    found = []
    if limits.p50_ms is not None:
        found.append(_median(entry, limits.p50_ms))
    if limits.p95_ms is not None:
        found.append(_p95(entry, latencies, limits.p95_ms))
    if limits.hit_rate is not None:
        found.append(_share(entry, "hit_rate", entry.budget, limits.hit_rate, at_least=True))
    if limits.cutoff_rate is not None:
        found.append(_share(entry, "cutoff_rate", entry.cutoffs, limits.cutoff_rate, at_least=False))
    return found


def _check(
    entry: ModeReport,
    limit: str,
    asked: float,
    found: float | None,
    bounds: tuple[float | None, float | None],
    n: int,
    needs: str,
    at_least: bool = False,
) -> Check:
    finding = judged(asked, at_least, *bounds)
    anchor = None if entry.anchor is None else entry.anchor.value
    told = needs if finding is Finding.NOT_PROVEN else None
    return Check(entry.mode, anchor, limit, asked, at_least, found, *bounds, n, finding, told)


def _median(entry: ModeReport, asked: float) -> Check:
    summary: Summary = entry.voice_to_voice
    low, high = summary.ci95_p50 or (None, None)
    if summary.p50 is None or high is None or low is None:
        needs = f"at least {LEAST_N_FOR_MEDIAN} turns that count; there are {summary.n}"
    else:
        needs = _more_for(summary.n, high - summary.p50, asked - summary.p50, "the median")
    return _check(entry, "p50_ms", asked, summary.p50, (low, high), summary.n, needs)


def _more_for(n: int, reach: float, room: float, what: str) -> str:
    """How many turns it takes until an interval's `reach` fits into the `room` to the limit."""
    if room <= 0:
        return f"{what} found is beyond the limit; more turns may show a breach"
    return _about(n * (reach / room) ** 2, n)


def _about(turns: float, n: int) -> str:
    """So many turns, and more than there are."""
    if not turns < _TOO_MANY:
        return "no number of turns that one can run"
    digits = max(0, len(str(math.ceil(turns))) - 2)
    step = 10**digits if digits else 1
    return f"about {max(n + 1, math.ceil(turns / step) * step)} turns like these"


def _p95(entry: ModeReport, latencies: Sequence[float], asked: float) -> Check:
    n = len(latencies)
    high = upper_bound(latencies, 95)
    low = upper_bound([-value for value in latencies], 5)
    within = sum(value <= asked for value in latencies) / n if n else 0.0
    if n < LEAST_N_FOR_P95_BOUND:
        needs = f"at least {LEAST_N_FOR_P95_BOUND} turns that count, if all are within; there are {n}"
    elif within <= 0.95:
        needs = "more than 95 % of the turns within the limit; more turns may show a breach"
    else:
        # By the normal approximation the bound's rank stands 1.645 standard deviations above 0.95 n.
        needs = _about(0.95 * 0.05 * (1.645 / (within - 0.95)) ** 2, n)
    bounds = (None if low is None else -low, high)
    return _check(entry, "p95_ms", asked, entry.voice_to_voice.p95, bounds, n, needs)


def _share(entry: ModeReport, limit: str, share: Share, asked: float, at_least: bool) -> Check:
    low, high = share.ci95 or (None, None)
    room = 0.0 if share.share is None else (share.share - asked) * (1 if at_least else -1)
    if share.share is None:
        needs = "turns with speech; there is none"
    elif asked in (0, 1):
        needs = f"no number of turns proves a share of exactly {asked:g}; name one that leaves room"
    elif room <= 0:
        needs = "the share found is beyond the limit; more turns may show a breach"
    else:
        # Where a Wilson bound reaches the limit L: |share - L| = z sqrt(L (1 - L) / n).
        needs = _about(Z_95**2 * asked * (1 - asked) / room**2, share.n)
    return _check(entry, limit, asked, share.share, (low, high), share.n, needs, at_least)


def check_comparison(entry: ModeComparison, limits: Limits) -> list[Check]:
    """What B may be worse than A by, held by the intervals of the differences.

    Without limits: breached where B is proven slower, voice to voice; passed where it is proven not to be
    slower by `ALLOWANCE_MS` or more.
    """
    mode = entry.mode_b if entry.mode_a == entry.mode_b else f"{entry.mode_a} | {entry.mode_b}"
    found = []

    def hold(limit: str, difference: Difference, asked: float, least_slower: float | None = None) -> None:
        sign = -1 if difference.higher_is_better else 1
        low, high = _worsening(difference.interval, sign)
        worse = None if difference.difference is None else sign * difference.difference
        finding = judged(asked, False, low, high)
        if least_slower is not None and low is not None and low > least_slower:
            finding = Finding.BREACH
        needs = None
        if finding is Finding.NOT_PROVEN:
            reason = difference.reason or "too few pairs"
            needs = f"more pairs than {difference.n}: {reason}"
            if worse is not None and high is not None:
                needs = _more_for(difference.n, high - worse, asked - worse, "the worsening")
        found.append(
            Check(
                mode, entry.anchor.value, limit, asked, False, worse, low, high, difference.n, finding, needs
            )
        )

    v2v = entry.voice_to_voice
    if limits.empty:
        hold("slower", v2v.paired, ALLOWANCE_MS, least_slower=0.0)
    if limits.p50_ms is not None:
        hold("p50_ms", v2v.p50, limits.p50_ms)
    if limits.p95_ms is not None:
        hold("p95_ms", v2v.p95, limits.p95_ms)
    if limits.hit_rate is not None:
        hold("hit_rate", entry.budget, limits.hit_rate)
    if limits.cutoff_rate is not None:
        hold("cutoff_rate", entry.cutoffs, limits.cutoff_rate)
    return found


def _worsening(interval: tuple[float, float] | None, sign: int) -> tuple[float | None, float | None]:
    if interval is None:
        return None, None
    return (interval[0], interval[1]) if sign > 0 else (-interval[1], -interval[0])


def status_of_checks(checks: Iterable[Check], turns_failed: bool = False) -> ExitStatus:
    """The exit status: 4 where turns failed, then 1 for a breach, 3 for not proven, else 0."""
    findings = {check.finding for check in checks}
    if turns_failed:
        return ExitStatus.TURNS_FAILED
    if Finding.BREACH in findings:
        return ExitStatus.LIMIT_BREACHED
    return ExitStatus.NOT_PROVEN if Finding.NOT_PROVEN in findings else ExitStatus.DONE
