"""What a load did to the turns: the wait for a free session, and the latency from the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from voicebench.analysis.caveats import CaveatList
from voicebench.analysis.statistics import Summary
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.run_folder import RunInfo

LATE_MS = 10.0
"""A turn that was begun later than this after it was due has waited for a free session."""
LIMITED_SHARE = 0.1
"""Where more of the completed turns than this are `client_limited`, the machine was the bottleneck."""
BUSY_SHARE = 0.85
"""Where the processors were in use for more than this on average, sessions waited for them."""


@dataclass(frozen=True)
class LoadFigures:
    """Over the turns of an entry that count, in ms. `from_schedule` is `queue` + `service`, turn by turn."""

    queue: Summary
    """From the instant at which a turn was due to the one at which it was begun."""
    service: Summary
    """Its own latency: V2V, or of a slot run from the request to the reply's end."""
    from_schedule: Summary
    waited: int
    """Of all recorded turns those that waited for a free session."""

    @property
    def scheduled(self) -> bool:
        """Had the run a schedule?"""
        return self.queue.n > 0

    def to_dict(self) -> dict[str, Any] | None:
        """The plain values, as `load` of a mode in `report.json`; None without a schedule."""
        if not self.scheduled:
            return None
        return {
            "queue_ms": self.queue.to_dict(),
            "service_ms": self.service.to_dict(),
            "from_schedule_ms": self.from_schedule.to_dict(),
            "waited": self.waited,
        }


def waited(record: TurnRecord) -> bool:
    """Was the turn begun later than its schedule said?"""
    return record.queue_ms is not None and record.queue_ms > LATE_MS


def find_load_caveats(found: CaveatList, info: RunInfo, turns: Sequence[TurnRecord]) -> None:
    """Add what the load leaves to know: who waited, and whether this machine was the bottleneck."""
    load = info.load
    if load is None:
        return
    sessions = load.get("sessions", 1)
    late = [record.queue_ms or 0.0 for record in turns if waited(record)]
    if late:
        found.add("queued", len(late), detail=f"{max(late):.0f}")
    completed = [record for record in turns if record.outcome is Outcome.COMPLETED]
    limited = sum(Flag.CLIENT_LIMITED in record.flags for record in completed)
    if limited > LIMITED_SHARE * len(completed):
        found.add("harness_limited", limited, detail=f"{len(completed)}")
    busy = [record.cpu_busy for record in completed if record.cpu_busy is not None]
    if busy and fmean(busy) > BUSY_SHARE:
        found.add("processors_busy", detail=f"{100 * fmean(busy):.0f}")
    if sessions > 1 and info.models:
        found.add("shared_models", sessions)
