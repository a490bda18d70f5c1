"""Turns laid out on one time line, for viewers that draw time.

A record tells its instants from the turn's `speech_end`, not since when the run had been going: turns are
laid one after another in the order of the plan, with a gap between them. Inside a turn every instant is as
measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.clock import NS_PER_MS
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import timeline_of
from voicebench.turns.timeline import Mark, Stage

GAP_NS = 200 * NS_PER_MS
"""Between the end of a turn and the begin of the next."""

LAYOUT = (
    "Turns are laid one after another in the order of the plan: a record holds no instant of the run. "
    "Inside a turn all instants are as measured."
)


@dataclass(frozen=True)
class LaidTurn:
    """One turn on the common time line; instants in ns from the line's start."""

    record: TurnRecord
    begin_ns: int
    end_ns: int
    """At or after `begin_ns`; equal for a turn without any instant."""
    marks_ns: dict[Mark, int]
    stages_ns: tuple[tuple[Stage, int, int], ...]
    """Stage, begin, end: they tile V2V. Empty for a turn without stages; one without its mark is left out."""
    reply_ns: tuple[int, int] | None
    """The first and the last text of the reply; None without text or without the start of the LLM slot."""


def lay_out(records: Sequence[TurnRecord]) -> Iterator[LaidTurn]:
    """Each turn in the order of the plan."""
    at = 0
    for record in sorted(records, key=lambda one: one.turn):
        timeline = timeline_of(record)
        slot = timeline.slot_start_ns
        reply = None
        if record.deltas and slot is not None:
            reply = (slot + min(delta[0] for delta in record.deltas), slot + max(d[0] for d in record.deltas))
        known = [*timeline.marks.values(), *(reply or ())]
        first = min(known, default=0)
        shift = at - first
        stages, bound = [], timeline.marks.get(Mark.SPEECH_END, 0) + shift
        # A turn that did not complete has marks, but no stages that anything is told of.
        for stage, part in (timeline.stages_ns() or {}).items() if record.stages_ms is not None else ():
            if part is not None:
                stages.append((stage, bound, bound + part))
                bound += part
        end = max(known, default=0) + shift
        yield LaidTurn(
            record=record,
            begin_ns=at,
            end_ns=end,
            marks_ns={mark: ns + shift for mark, ns in timeline.marks.items()},
            stages_ns=tuple(stages),
            reply_ns=None if reply is None else (reply[0] + shift, reply[1] + shift),
        )
        at = end + GAP_NS


def told_of(record: TurnRecord) -> dict[str, Any]:
    """What is told of a turn beside its instants; what it has not, is not there."""
    told: dict[str, Any] = {
        "turn": record.turn,
        "mode": record.mode,
        "model": record.model,
        "sample": record.sample,
        "repeat": record.repeat,
        "outcome": record.outcome.value,
        "anchor": record.anchor.value,
        "emulated": record.mode_kind == "emulated",
        "voice_to_voice_ms": record.voice_to_voice_ms,
        "reason": record.reason,
        "flags": [flag.value for flag in record.flags] or None,
        "caveats": list(record.caveats) or None,
        "transcript": record.transcript,
        "reply": record.reply,
    }
    return {name: value for name, value in told.items() if value is not None}
