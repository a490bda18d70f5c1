"""Several runs told as a trend: for each mode and anchor, one point a run, in the order of time. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from voicebench.analysis.ledger import Share
from voicebench.analysis.report import Report
from voicebench.analysis.statistics import Summary
from voicebench.turns.records import ModeKind

SCHEMA = 1


@dataclass(frozen=True)
class Point:
    """One mode and anchor in one run."""

    run: str
    started_at: str
    """UTC, ISO 8601."""
    complete: bool
    voice_to_voice: Summary
    """In ms; its figures are None where no turn counts."""
    budget: Share
    budget_ms: float
    """What this run was held against."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "run": self.run,
            "started_at": self.started_at,
            "complete": self.complete,
            "voice_to_voice_ms": self.voice_to_voice.to_dict(),
            "budget_ms": self.budget_ms,
            "budget": self.budget.to_dict(),
        }


@dataclass(frozen=True)
class Trend:
    """One mode and anchor over the runs that have it."""

    mode: str
    kind: ModeKind | None
    anchor: str | None
    points: tuple[Point, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        points = [point.to_dict() for point in self.points]
        return {"mode": self.mode, "kind": self.kind, "anchor": self.anchor, "points": points}


@dataclass(frozen=True)
class History:
    """The trends, modes in the order of their first appearance in time."""

    trends: tuple[Trend, ...]

    def to_dict(self) -> dict[str, Any]:
        """The history as one JSON object, schema 1."""
        return {"schema": SCHEMA, "history": [trend.to_dict() for trend in self.trends]}


def history_of(reports: Iterable[Report]) -> History:
    """The trends over these runs; a run that is named twice is told once."""
    runs = {report.run.id: report for report in reports}
    ordered = sorted(runs.values(), key=lambda report: (report.run.started_at, report.run.id))
    points: dict[tuple[str, str | None], list[Point]] = {}
    kinds: dict[tuple[str, str | None], ModeKind | None] = {}
    for report in ordered:
        for entry in report.modes:
            key = (entry.mode, None if entry.anchor is None else entry.anchor.value)
            kinds[key] = entry.kind or kinds.get(key)
            points.setdefault(key, []).append(
                Point(
                    run=report.run.id,
                    started_at=report.run.started_at,
                    complete=report.complete,
                    voice_to_voice=entry.voice_to_voice,
                    budget=entry.budget,
                    budget_ms=report.budget_ms,
                )
            )
    return History(
        tuple(Trend(mode, kinds[mode, anchor], anchor, tuple(own)) for (mode, anchor), own in points.items())
    )
