"""The ledger: every planned turn is counted once, by how it ended, beside every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.analysis.statistics import wilson
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.run_folder import PlannedEntry
from voicebench.turns.timeline import Anchor

OUTCOME_ORDER = (
    Outcome.COMPLETED,
    Outcome.INTERRUPTED,
    Outcome.NO_SPEECH,
    Outcome.EMPTY,
    Outcome.TOOL_CALL,
    Outcome.TRUNCATED,
    Outcome.OVERLOADED,
    Outcome.RATE_LIMITED,
    Outcome.TIMED_OUT,
    Outcome.FAILED,
)
"""The order in which reports tell outcomes."""


@dataclass(frozen=True)
class Share:
    """A share of turns with its 95 % interval (Wilson). For n = 0 share and interval are None."""

    hit: int
    n: int

    @property
    def share(self) -> float | None:
        """hit / n, None for n = 0."""
        return self.hit / self.n if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The 95 % interval of the share, None for n = 0."""
        return wilson(self.hit, self.n)

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as in `report.json`."""
        interval = self.ci95
        return {
            "hit": self.hit,
            "n": self.n,
            "share": self.share,
            "ci95": None if interval is None else list(interval),
        }


@dataclass(frozen=True)
class Ledger:
    """How the planned turns of one mode and anchor ended."""

    planned: int
    """Recorded turns and those without a record: the sum of all outcomes and `not_run`, exactly."""
    outcomes: dict[str, int]
    not_run: int
    reasons: dict[str, dict[str, int]]
    """Of each outcome but `completed`: reason to count."""

    def to_dict(self) -> dict[str, int]:
        """The plain counts, as `turns` in `report.json`."""
        return {"planned": self.planned, **self.outcomes, "not_run": self.not_run}


def latest_records(records: Sequence[TurnRecord]) -> tuple[list[TurnRecord], int]:
    """One record for each turn, the last written, in the order of the first; and how many were earlier.

    A turn is one place in the plan: position, mode, sample and repeat.
    """
    latest = {(one.turn, one.mode, one.sample, one.repeat): one for one in records}
    return list(latest.values()), len(records) - len(latest)


def left_out(record: TurnRecord) -> bool:
    """Is this completed turn kept out of the statistics: by a flag, or by a sound before the speech's end?"""
    return record.excluded or (record.voice_to_voice_ms is not None and record.voice_to_voice_ms < 0)


def counts(record: TurnRecord) -> bool:
    """Is this turn completed and not kept out? Its figures enter the statistics, where it has them."""
    return record.outcome is Outcome.COMPLETED and not left_out(record)


def ledger_of(records: Sequence[TurnRecord], not_run: int = 0) -> Ledger:
    """The ledger over one record a turn and `not_run` planned turns without a record."""
    found = Counter(record.outcome for record in records)
    reasons: dict[str, dict[str, int]] = {}
    for record in records:
        if record.outcome is not Outcome.COMPLETED and record.reason:
            told = reasons.setdefault(record.outcome.value, {})
            told[record.reason] = told.get(record.reason, 0) + 1
    return Ledger(
        planned=len(records) + not_run,
        outcomes={outcome.value: found[outcome] for outcome in OUTCOME_ORDER},
        not_run=not_run,
        reasons=reasons,
    )


def flag_counts(records: Iterable[TurnRecord]) -> dict[str, int]:
    """How many completed turns carry each flag."""
    found = Counter(
        flag for record in records if record.outcome is Outcome.COMPLETED for flag in set(record.flags)
    )
    return {flag.value: found[flag] for flag in Flag}


def holds_speech(record: TurnRecord) -> bool:
    """Does the turn's sample hold speech? Where nobody knows, it does unless none was heard."""
    if record.speech_in_sample is None:
        return record.outcome is not Outcome.NO_SPEECH
    return record.speech_in_sample


def was_cut_off(record: TurnRecord) -> bool:
    """Was an end of turn committed before the person had stopped, whether or not it was answered?"""
    early = record.voice_to_voice_ms is not None and record.voice_to_voice_ms < 0
    return record.cutoffs > 0 or Flag.CUTOFF in record.flags or early


def cutoffs_of(records: Iterable[TurnRecord]) -> Share:
    """The turns with a cutoff among those whose sample holds speech."""
    spoken = [record for record in records if holds_speech(record)]
    return Share(sum(map(was_cut_off, spoken)), len(spoken))


def budget_share(records: Iterable[TurnRecord], budget_ms: float) -> Share:
    """The share of turns within the budget, failures counted as misses.

    n: turns whose sample holds speech, less those interrupted and those served at another speed than asked.
    hit: completed, no cutoff, V2V <= budget. Turns that were never run say nothing and are in neither.
    """
    asked = [
        record
        for record in records
        if holds_speech(record)
        and record.outcome is not Outcome.INTERRUPTED
        and Flag.ASKED_NOT_SERVED not in record.flags
    ]
    return Share(sum(within_budget(record, budget_ms) for record in asked), len(asked))


def within_budget(record: TurnRecord, budget_ms: float) -> bool:
    """Completed, no cutoff, and V2V at most the budget?"""
    return (
        record.outcome is Outcome.COMPLETED
        and not was_cut_off(record)
        and record.voice_to_voice_ms is not None
        and record.voice_to_voice_ms <= budget_ms
    )


def missing_turns(planned: Iterable[PlannedEntry], records: Iterable[TurnRecord]) -> list[PlannedEntry]:
    """The planned turns that have no record, in the plan's order."""
    recorded = Counter((record.mode, record.sample, record.repeat) for record in records)
    missing = []
    for entry in planned:
        key = (entry.mode, entry.sample, entry.repeat)
        if recorded[key]:
            recorded[key] -= 1
        else:
            missing.append(entry)
    return missing


def usual_anchors(records: Iterable[TurnRecord]) -> dict[str, Anchor]:
    """Where most of each mode's turns have their speech end from."""
    found: dict[str, Counter[Anchor]] = {}
    for record in records:
        found.setdefault(record.mode, Counter())[record.anchor] += 1
    return {mode: counted.most_common(1)[0][0] for mode, counted in found.items()}


def anchor_of(entry: PlannedEntry, usual: Mapping[str, Anchor]) -> Anchor | None:
    """Where the speech end of a turn that was not run would have come from.

    As planned, else as `usual_anchors` has it of the mode; None where the mode has none.
    """
    return usual.get(entry.mode) if entry.anchor is None else entry.anchor
