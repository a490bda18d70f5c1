"""The run as a Chrome trace, which Perfetto and chrome://tracing open: a process a mode, a track a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from voicebench.analysis.report import Report
from voicebench.export.laid_out import LAYOUT, LaidTurn, lay_out, told_of
from voicebench.export.turn_text import mode_name
from voicebench.turns.durable import strict_json
from voicebench.turns.records import TurnRecord
from voicebench.turns.timeline import Stage

NS_PER_US = 1000
WHOLE = "whole turn"
"""The track of whole turns; `turn` is a stage."""
TRACKS = (WHOLE, *(stage.value for stage in Stage), "reply text", "marks")
"""The tracks of each process, from the top; the place in it, from 1, is the thread's id."""


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The turns in the Trace Event Format (JSON object form), instants in whole microseconds.

    Boundaries are rounded, not lengths, so that stages still meet and add up to their turn.
    """
    modes = list(dict.fromkeys([*(entry.mode for entry in report.modes), *(one.mode for one in records)]))
    process = {mode: place for place, mode in enumerate(modes, start=1)}
    kinds = {record.mode: record.mode_kind for record in records}
    events = [event for mode in modes for event in _names(process[mode], mode_name(mode, kinds.get(mode)))]
    for turn in lay_out(records):
        events.extend(_events(turn, process[turn.record.mode]))
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {
            "run": report.run.id,
            "started_at": report.run.started_at,
            "budget_ms": report.budget_ms,
            "layout": LAYOUT,
        },
        "traceEvents": events,
    }
    return strict_json(trace) + b"\n"


def _names(process: int, name: str) -> Iterator[dict[str, Any]]:
    yield _meta(process, 0, "process_name", name=name)
    yield _meta(process, 0, "process_sort_index", sort_index=process)
    for place, track in enumerate(TRACKS, start=1):
        yield _meta(process, place, "thread_name", name=track)
        yield _meta(process, place, "thread_sort_index", sort_index=place)


def _meta(process: int, track: int, what: str, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": args}


def _events(turn: LaidTurn, process: int) -> Iterator[dict[str, Any]]:
    record = turn.record
    title = f"{record.sample}, repeat {record.repeat}"
    if record.outcome.value != "completed":
        title = f"{title}: {record.outcome.value}"
    yield _slice(process, WHOLE, title, turn.begin_ns, turn.end_ns, told_of(record))
    for stage, begin, end in turn.stages_ns:
        yield _slice(process, stage.value, stage.value, begin, end, {"turn": record.turn})
    if turn.reply_ns is not None:
        tokens = {"turn": record.turn, "deltas": len(record.deltas)}
        yield _slice(process, "reply text", "reply text", *turn.reply_ns, tokens)
    for mark, at in turn.marks_ns.items():
        yield {
            "ph": "i",
            "s": "t",
            "cat": "mark",
            "name": mark.value,
            "pid": process,
            "tid": _track("marks"),
            "ts": _us(at),
            "args": {"turn": record.turn},
        }


def _slice(
    process: int, track: str, name: str, begin_ns: int, end_ns: int, args: dict[str, Any]
) -> dict[str, Any]:
    begin = _us(begin_ns)
    return {
        "ph": "X",
        "cat": "turn" if track == WHOLE else "stage",
        "name": name,
        "pid": process,
        "tid": _track(track),
        "ts": begin,
        "dur": _us(end_ns) - begin,
        "args": args,
    }


def _track(name: str) -> int:
    return TRACKS.index(name) + 1


def _us(ns: int) -> int:
    return (ns + NS_PER_US // 2) // NS_PER_US
