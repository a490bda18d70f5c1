"""Two runs, or two modes, compared turn by turn: what changed, and whether the turns support saying so.

Turns are paired by sample and repeat, for each mode and anchor. Every difference is B less A. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

from voicebench.analysis.caveats import Caveat
from voicebench.analysis.comparison_bootstrap import (
    Draws,
    Floats,
    Statistic,
    draw,
    estimate,
    interval,
    mean,
    percentile_difference,
    trimmed_mean,
)
from voicebench.analysis.comparison_pairs import Pairing, Side, pairings
from voicebench.analysis.comparison_words import find_comparison_caveats
from voicebench.analysis.ledger import Ledger, budget_share, cutoffs_of, ledger_of, was_cut_off, within_budget
from voicebench.analysis.statistics import MIN_N, percentile
from voicebench.clock import NS_PER_MS
from voicebench.errors import BadRequest
from voicebench.turns.records import ModeKind, TurnRecord
from voicebench.turns.timeline import Anchor, Mark, Stage

__all__ = ["Comparison", "Difference", "ModeComparison", "Side", "Verdict", "compare"]

SCHEMA = 1
ERROR = 0.05
"""How often a figure that has not changed is called changed, at most."""

Pair = tuple[TurnRecord, TurnRecord]
Value = Callable[[TurnRecord], float | None]


class Verdict(StrEnum):
    """What a difference between A and B supports saying of B."""

    FASTER = "faster"
    """B is better: a shorter time, a higher share within the budget, a lower share of cutoffs."""
    SLOWER = "slower"
    """B is worse."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Difference:
    """One figure of A and of B over the same pairs, and B less A."""

    n: int
    """Pairs."""
    a: float | None = None
    """In the figure's unit; None where n does not allow it."""
    b: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float = 1 - ERROR
    """Of the interval: 0.95, or more where several figures are told at 95 % together."""
    higher_is_better: bool = False
    reason: str | None = None
    """Why there is no difference or no interval; None where both are there."""

    @property
    def verdict(self) -> Verdict:
        """Faster or slower where the whole interval lies on one side of 0, else `cannot tell`."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return Verdict.CANNOT_TELL
        return Verdict.FASTER if (self.interval[0] > 0) == self.higher_is_better else Verdict.SLOWER

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as in the comparison's JSON."""
        return {
            "n": self.n,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
            "confidence": self.confidence,
            "verdict": self.verdict.value,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Differences:
    """One duration in ms, compared in three ways over the same pairs."""

    paired: Difference
    """The mean change of a pair, without the lowest and the highest fifth. Its `a` and `b` are None.

    The strictest look at the same turns, as what a sample itself takes cancels out.
    """
    p50: Difference
    """The difference of the medians."""
    p95: Difference
    """The difference of p95; empty below 20 pairs."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {"paired": self.paired.to_dict(), "p50": self.p50.to_dict(), "p95": self.p95.to_dict()}


@dataclass(frozen=True)
class ModeComparison:
    """One mode of A against one of B, at one anchor."""

    mode_a: str
    mode_b: str
    kind_a: ModeKind
    kind_b: ModeKind
    anchor: Anchor
    samples: int
    """Different samples behind the pairs."""
    pairs: int
    """Turns that have a partner."""
    only_a: int
    """Turns of A without a partner, left out."""
    only_b: int
    not_counted: int
    """Pairs of which a turn was not completed, was kept out by a flag, or has no latency."""
    ledger_a: Ledger
    """How the paired turns of A ended."""
    ledger_b: Ledger
    voice_to_voice: Differences
    budget: Difference
    """Of the share within the budget, failures counted as misses."""
    cutoffs: Difference
    parts: dict[str, Differences]
    """By stage, and `ttft` and `ttfat`; those that no pair has are not there.

    Their intervals are widened so that all of one kind hold together at 95 %.
    """

    @property
    def verdict(self) -> Verdict:
        """What is said of B: the verdict of the paired voice-to-voice latency, and of nothing else."""
        return self.voice_to_voice.paired.verdict

    def to_dict(self) -> dict[str, Any]:
        """One of `modes` in the comparison's JSON."""
        stages = [stage.value for stage in Stage]
        told = {name: found.to_dict() for name, found in self.parts.items()}
        return {
            "mode_a": self.mode_a,
            "mode_b": self.mode_b,
            "kind_a": self.kind_a,
            "kind_b": self.kind_b,
            "anchor": self.anchor.value,
            "verdict": self.verdict.value,
            "samples": self.samples,
            "pairs": self.pairs,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "not_counted": self.not_counted,
            "turns_a": self.ledger_a.to_dict(),
            "turns_b": self.ledger_b.to_dict(),
            "voice_to_voice_ms": self.voice_to_voice.to_dict(),
            "budget_share": self.budget.to_dict(),
            "cutoff_share": self.cutoffs.to_dict(),
            "stages_ms": {name: told[name] for name in stages if name in told},
            **{f"{name}_ms": told[name] for name in ("ttft", "ttfat") if name in told},
        }


@dataclass(frozen=True)
class Comparison:
    """Two runs compared."""

    a: Side
    b: Side
    budget_ms: float
    modes: tuple[ModeComparison, ...]
    caveats: tuple[Caveat, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The comparison as one JSON object, schema 1."""
        return {
            "schema": SCHEMA,
            "run_a": self.a.to_dict(),
            "run_b": self.b.to_dict(),
            "budget_ms": self.budget_ms,
            "difference": "b - a",
            "modes": [entry.to_dict() for entry in self.modes],
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def compare(
    a: Side, b: Side, *, modes: Sequence[str] = (), against: str | None = None, seed: int = 0
) -> Comparison:
    """B compared with A.

    By default every mode that both have, or those in `modes`. With `against`, the one mode in `modes` as A
    has it with the mode `against` as B has it; `a` and `b` may then be the same run. The same input and seed
    give the same intervals. Raises BadRequest, with the reason, where nothing is comparable: budgets or paces
    differ, no mode is in both, no anchor or no sample is shared.
    """
    if a.budget_ms != b.budget_ms:
        raise BadRequest(
            f"The runs have different budgets: {a.budget_ms:g} ms in {a.info.id} and {b.budget_ms:g} ms in "
            f"{b.info.id}.",
            "Run both with the same budget_ms in the config.",
        )
    if a.pace != b.pace:
        raise BadRequest(
            f"The runs were made at different paces: {a.pace} in {a.info.id} and {b.pace} in {b.info.id}.",
            "Run both with the same --pace.",
        )
    found = pairings(a, b, modes, against)
    compared = tuple(_compare_pairs(pairing, a.budget_ms, seed) for pairing in found.pairings)
    return Comparison(a, b, a.budget_ms, compared, tuple(find_comparison_caveats(a, b, found, compared)))


class _Figures:
    """Makes differences over pairs; resamples are drawn once for each list of samples."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: dict[tuple[Hashable, ...], Draws | None] = {}

    def draws(self, samples: Sequence[str]) -> Draws | None:
        key = tuple(samples)
        if key not in self._drawn:
            self._drawn[key] = draw(key, self._seed)
        return self._drawn[key]

    def difference(
        self, statistic: Statistic, samples: Sequence[str], error: float, **told: Any
    ) -> Difference:
        """The difference that `statistic` makes, with its interval where the pairs carry one."""
        draws = self.draws(samples)
        found = None if draws is None else interval(statistic, draws, error)
        return Difference(
            n=len(samples),
            difference=estimate(statistic, len(samples)),
            interval=found,
            confidence=1 - error,
            reason="too few pairs for an interval" if draws is None else None,
            **told,
        )

    def duration(self, pairs: Sequence[Pair], value: Value, error: float) -> Differences:
        """A duration over the pairs in which both turns have it."""
        both = [
            (first, second, one.sample)
            for one, other in pairs
            if (first := value(one)) is not None and (second := value(other)) is not None
        ]
        if not both:
            empty = Difference(0, reason="no pair has it in both turns")
            return Differences(empty, empty, empty)
        a: Floats = np.array([first for first, _, _ in both])
        b: Floats = np.array([second for _, second, _ in both])
        samples = [sample for _, _, sample in both]

        def at(percent: int) -> Difference:
            least = MIN_N.get(percent, 1)
            if len(both) < least:
                return Difference(len(both), reason=f"n = {len(both)}, and p{percent} is shown from {least}")
            told = {"a": percentile(a, percent), "b": percentile(b, percent)}
            return self.difference(percentile_difference(a, b, percent), samples, error, **told)

        paired = self.difference(trimmed_mean(b - a), samples, error)
        return Differences(paired, at(50), at(95))

    def unchanged(self, samples: Sequence[str]) -> Difference:
        """Of a share in which no pair differs: a bootstrap of it knows no doubt, which a few pairs leave.

        With no difference in k independent units, the share of those that differ is at most 1 - 0.025^(1/k)
        (Clopper and Pearson, 1934).
        """
        draws = self.draws(samples)
        if draws is None:
            return Difference(len(samples), difference=0.0, reason="too few pairs for an interval")
        reach = 1 - (ERROR / 2) ** (1 / draws.counts.shape[1])
        return Difference(len(samples), difference=0.0, interval=(-reach, reach))

    def share(
        self,
        pairs: Sequence[Pair],
        asked: Callable[[TurnRecord], bool],
        hit: Callable[[TurnRecord], bool],
        higher_is_better: bool,
    ) -> Difference:
        """A share of turns, over the pairs in which both turns are asked for."""
        held = [(one, other) for one, other in pairs if asked(one) and asked(other)]
        if not held:
            return Difference(0, higher_is_better=higher_is_better, reason="no pair tells")
        a = np.array([float(hit(one)) for one, _ in held])
        b = np.array([float(hit(other)) for _, other in held])
        samples = [one.sample for one, _ in held]
        same = np.array_equal(a, b)
        found = self.unchanged(samples) if same else self.difference(mean(b - a), samples, ERROR)
        return replace(found, a=float(a.mean()), b=float(b.mean()), higher_is_better=higher_is_better)


def _compare_pairs(pairing: Pairing, budget_ms: float, seed: int) -> ModeComparison:
    figures = _Figures(seed)
    counted = pairing.counted()
    values: dict[str, Value] = {stage.value: partial(_stage, stage.value) for stage in Stage}
    values["ttft"] = partial(_between, Mark.LLM_REQUEST.value, Mark.LLM_FIRST_TOKEN.value)
    values["ttfat"] = partial(_between, Mark.LLM_REQUEST.value, Mark.LLM_FIRST_TEXT.value)
    present = {
        name: value
        for name, value in values.items()
        if any(value(one) is not None and value(other) is not None for one, other in counted)
    }
    first_a, first_b = pairing.pairs[0]
    latency = figures.duration(counted, _latency, ERROR)
    return ModeComparison(
        mode_a=pairing.mode_a,
        mode_b=pairing.mode_b,
        kind_a=first_a.mode_kind,
        kind_b=first_b.mode_kind,
        anchor=pairing.anchor,
        samples=len({one.sample for one, _ in pairing.pairs}),
        pairs=len(pairing.pairs),
        only_a=pairing.only_a,
        only_b=pairing.only_b,
        not_counted=len(pairing.pairs) - latency.paired.n,
        ledger_a=ledger_of([one for one, _ in pairing.pairs]),
        ledger_b=ledger_of([other for _, other in pairing.pairs]),
        voice_to_voice=latency,
        budget=figures.share(
            pairing.pairs,
            lambda record: budget_share([record], budget_ms).n == 1,
            lambda record: within_budget(record, budget_ms),
            higher_is_better=True,
        ),
        cutoffs=figures.share(
            pairing.pairs, lambda record: cutoffs_of([record]).n == 1, was_cut_off, higher_is_better=False
        ),
        parts={
            name: figures.duration(counted, value, ERROR / len(present)) for name, value in present.items()
        },
    )


def _latency(record: TurnRecord) -> float | None:
    return record.voice_to_voice_ms


def _stage(stage: str, record: TurnRecord) -> float | None:
    stages: Mapping[str, float | None] = record.stages_ms or {}
    return stages.get(stage)


def _between(begin: str, end: str, record: TurnRecord) -> float | None:
    first, last = record.marks_ns.get(begin), record.marks_ns.get(end)
    return None if first is None or last is None else (last - first) / NS_PER_MS
