"""Was the person understood, and was the answer right: pooled over turns, by condition, with n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.analysis.ledger import Share
from voicebench.turns.records import Outcome, TurnRecord

UNNAMED = "unnamed"
"""The condition of samples that name none."""


@dataclass(frozen=True)
class WordErrors:
    """Word error rate, pooled: all errors over all reference words, so that a short sample weighs little."""

    errors: int
    words: int
    n: int
    """Turns with a reference transcript."""

    @property
    def rate(self) -> float | None:
        """errors / words; may exceed 1; None without reference words."""
        return self.errors / self.words if self.words else None

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as in `wer` of `report.json`."""
        return {"wer": self.rate, "errors": self.errors, "words": self.words, "n": self.n}


def word_errors_of(records: Sequence[TurnRecord]) -> WordErrors:
    """The pooled word errors of all turns with a reference, however they ended."""
    found = [record.wer for record in records if record.wer is not None]
    return WordErrors(sum(one.errors for one in found), sum(one.words for one in found), len(found))


def word_errors_by_condition(records: Sequence[TurnRecord]) -> dict[str, WordErrors]:
    """The pooled word errors of each condition that has a reference, in the order of appearance."""
    groups: dict[str, list[TurnRecord]] = {}
    for record in records:
        if record.wer is not None:
            groups.setdefault(record.condition or UNNAMED, []).append(record)
    return {condition: word_errors_of(group) for condition, group in groups.items()}


@dataclass(frozen=True)
class Answers:
    """Correct answers among completed turns whose sample has acceptable ones."""

    right: Share | None
    """None where there is nothing to judge."""
    reason: str | None
    """Why there is nothing: `scripted` for an emulated mode's replies."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as `answers` in `report.json`."""
        if self.right is None:
            return {"correct": None, "n": None, "share": None, "ci95": None, "reason": self.reason}
        told = self.right.to_dict()
        return {
            "correct": told["hit"],
            "n": told["n"],
            "share": told["share"],
            "ci95": told["ci95"],
            "reason": None,
        }


def answers_of(records: Sequence[TurnRecord], kind: str | None) -> Answers:
    """How many of the completed, judged turns were answered right. Emulated replies are scripted: none."""
    if kind == "emulated":
        return Answers(None, "scripted")
    judged = [
        record.answer_correct
        for record in records
        if record.outcome is Outcome.COMPLETED and record.answer_correct is not None
    ]
    if not judged:
        return Answers(None, "no completed turn has a sample with acceptable answers")
    return Answers(Share(sum(judged), len(judged)), None)
