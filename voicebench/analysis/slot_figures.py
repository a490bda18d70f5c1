"""What a mode gets out in its slot: tokens, characters, words, sentences and seconds of speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from voicebench.analysis.courses import Courses, Floats, Numbers
from voicebench.analysis.ledger import Share
from voicebench.analysis.statistics import Summary, percentile, summarize
from voicebench.clock import NS_PER_MS
from voicebench.turns.slot import TTFT_SWEEP_MS, headline_tokens

RESIDUAL = "residual"
"""Each turn is held against its own residual slot."""
RESIDUAL_STACK = "residual_stack"
"""Each turn is held against what the stack leaves any mode: one deadline for all."""

DELIVERED = ("tokens", "characters", "words", "sentences", "speech_s")


@dataclass(frozen=True)
class SlotFigures:
    """What was there by the end of one slot."""

    slot: str
    """A nominal slot's ms, or RESIDUAL or RESIDUAL_STACK."""
    slot_ms: float | None
    """The slot in ms; for both residual ones the stack's, the same for every mode. None: not known."""
    deadline: Literal["fixed", "per_turn"]
    """Was every turn held against `slot_ms`, or each against its own residual slot?"""
    turn_slot_ms: Summary | None
    """The turns' own residual slots in ms, where the deadline is per turn."""
    delivered: dict[str, Summary]
    """By name: tokens, characters, words, sentences, speech_s."""
    clause_ready: Share
    """Turns whose first speakable clause was ready."""
    ended_before_deadline: Share
    """Turns whose reply had ended by itself."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as one of `slots` in `report.json`."""
        return {
            "slot": self.slot,
            "slot_ms": self.slot_ms,
            "deadline": self.deadline,
            "turn_slot_ms": None if self.turn_slot_ms is None else self.turn_slot_ms.to_dict(),
            **{name: self.delivered[name].to_dict() for name in DELIVERED},
            "clause_ready": self.clause_ready.to_dict(),
            "ended_before_deadline": self.ended_before_deadline.to_dict(),
        }


def slots_of(
    courses: Courses,
    samples: Numbers,
    slots_ms: Sequence[float],
    budget_ms: float,
    stack_ms: float | None,
    missing: int,
    excluded: int,
) -> tuple[SlotFigures, ...]:
    """The figures of each nominal slot, of each turn's residual slot, and of the stack's.

    `samples` numbers the sample of each reply; `stack_ms` is what the stack leaves any mode, None where no
    turn tells. `missing` counts turns without deltas, `excluded` those kept out by a flag.
    """
    own = round(budget_ms * NS_PER_MS) - courses.non_llm_ns

    def figures(slot: str, slot_ms: float | None, deadlines: Floats | None = None) -> SlotFigures:
        fixed = np.nan if slot_ms is None else round(slot_ms * NS_PER_MS)
        every = np.full(len(courses), fixed) if deadlines is None else deadlines
        return _slot(slot, slot_ms, courses, samples, every, missing, excluded)

    return (
        *(figures(f"{slot_ms:g}", slot_ms) for slot_ms in slots_ms),
        figures(RESIDUAL, stack_ms, own),
        figures(RESIDUAL_STACK, stack_ms),
    )


def _slot(
    slot: str,
    slot_ms: float | None,
    courses: Courses,
    samples: Numbers,
    deadlines: Floats,
    missing: int,
    excluded: int,
) -> SlotFigures:
    """The figures by one deadline a reply, in ns; NaN: this one has none."""
    known = ~np.isnan(deadlines)
    held = int(known.sum())
    total = len(courses) + missing
    there = courses.by(deadlines)
    with np.errstate(invalid="ignore"):
        ready = int((courses.clause_ns <= deadlines).sum())
        ended = int(((deadlines >= 0) & (courses.end_ns <= deadlines)).sum())

    def over(values: Floats) -> Summary:
        told = known & ~np.isnan(values)
        return summarize(values[told], total - int(told.sum()), excluded, samples[told])

    per_turn = slot == RESIDUAL
    return SlotFigures(
        slot=slot,
        slot_ms=slot_ms,
        deadline="per_turn" if per_turn else "fixed",
        turn_slot_ms=summarize(deadlines[known] / NS_PER_MS, total - held, excluded) if per_turn else None,
        delivered={name: over(getattr(there, name)) for name in DELIVERED},
        clause_ready=Share(ready, held),
        ended_before_deadline=Share(ended, held),
    )


@dataclass(frozen=True)
class Headline:
    """Decode rate times slot: from the measured rate and from the published one."""

    measured: float | None
    """With the median measured decode rate; None where no turn has one."""
    published: float | None
    """With the published rate; None where nobody published one."""
    source: str | None
    assumed: bool

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as one of `headline_tokens` in `report.json`."""
        return {
            "measured": self.measured,
            "published": self.published,
            "published_source": self.source,
            "assumed": self.assumed,
        }


def headline_of(
    slot_ms: float, rate: float | None, published: float | None, source: str | None, assumed: bool
) -> Headline:
    """The headline tokens of one slot."""
    return Headline(
        measured=None if rate is None else headline_tokens(rate, slot_ms),
        published=None if published is None else headline_tokens(published, slot_ms),
        source=source,
        assumed=assumed,
    )


@dataclass(frozen=True)
class Sweep:
    """Delivered tokens over an assumed time to the first token: the medians over the turns."""

    slot_ms: float
    first_ms: tuple[float, ...]
    tokens: tuple[float | None, ...]
    n: int

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as one of `tokens_over_ttft` in `report.json`."""
        return {
            "slot_ms": self.slot_ms,
            "ttft_ms": list(self.first_ms),
            "tokens": list(self.tokens),
            "n": self.n,
        }


def sweep_of(courses: Courses, slot_ms: float) -> Sweep:
    """The median tokens by the slot's end, had the first text come after each of `TTFT_SWEEP_MS`."""
    rows = courses.tokens_if_first_at(slot_ms, TTFT_SWEEP_MS)
    return Sweep(
        slot_ms=slot_ms,
        first_ms=tuple(float(first) for first in TTFT_SWEEP_MS),
        tokens=tuple(percentile(column, 50) for column in rows.T),
        n=len(courses),
    )
