"""From a request without audio to its record: no speech, no V2V, only the language model's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voicebench.clock import ms
from voicebench.pipeline.contamination import Load, limited
from voicebench.plan.modes import Mode
from voicebench.plan.plan import PlannedTurn
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.slot import sentence_ends
from voicebench.turns.stream import StreamLog
from voicebench.turns.stream_fields import stream_caveats, stream_fields, stream_flags, stream_work_ms
from voicebench.turns.timeline import Anchor, Mark, Timeline

NEW_CONNECTION = "new_connection"
"""The caveat of a measured request that had to open its connection."""


@dataclass(frozen=True)
class Conditions:
    """What the machine was like during a request."""

    lag_ns: int
    load: Load
    time_limit_s: float | None = None
    """The request was given up after so long; None: it was not."""


def slot_record(
    run: str, planned: PlannedTurn, mode: Mode, stream: StreamLog, conditions: Conditions
) -> TurnRecord:
    """The record of one request. Marks and deltas count from the request, which starts the slot."""
    outcome, reason = judge(stream, conditions.time_limit_s)
    completed = outcome is Outcome.COMPLETED
    fields, estimated = stream_fields(mode, stream, stream.request_ns, stream.request_ns)
    clause = first_clause(stream.deltas, complete=stream.status == "ok")
    found = {
        Mark.LLM_REQUEST: stream.request_ns,
        Mark.LLM_FIRST_TOKEN: stream.first_token_ns,
        Mark.LLM_FIRST_TEXT: stream.first_text_ns,
    }
    flags = stream_flags(mode, stream, estimated)
    if limited(ms(conditions.lag_ns), conditions.load) is not None:
        flags = (Flag.CLIENT_LIMITED, *flags)
    caveats = stream_caveats(mode, stream)
    if stream.new_connection:
        caveats = (*caveats, NEW_CONNECTION)
    return TurnRecord(
        run=run,
        turn=planned.index,
        mode=mode.id,
        mode_kind=mode.kind,
        model=mode.model,
        sample=planned.sample,
        repeat=planned.repeat,
        speech_in_sample=False,
        outcome=outcome,
        reason=reason,
        flags=flags if completed else (),
        anchor=Anchor.NONE,
        marks_ns=Timeline({mark: at for mark, at in found.items() if at is not None}).relative(),
        work_ms=stream_work_ms(stream),
        clause_ready_ns=None if clause is None else clause[0] - stream.request_ns,
        reply=stream.text if stream.deltas else None,
        first_clause=None if clause is None else clause[1],
        lag_ms=ms(conditions.lag_ns),
        cpu_busy=conditions.load.busy,
        cpu_stolen=conditions.load.stolen,
        caveats=caveats,
        **fields,
    )


def judge(stream: StreamLog, time_limit_s: float | None = None) -> tuple[Outcome, str | None]:
    """Exactly one outcome, by the precedence of `Outcome`, and why."""
    if stream.status == "failed":
        return Outcome.FAILED, f"LLM: {stream.detail}"
    if time_limit_s is not None:
        return Outcome.TIMED_OUT, f"the reply had not ended after {time_limit_s:g} s"
    if stream.status in ("timed_out", "rate_limited", "overloaded"):
        return Outcome(stream.status), f"LLM: {stream.detail}"
    if stream.status == "truncated":
        return Outcome.TRUNCATED, stream.detail
    if stream.status != "ok":
        return Outcome.INTERRUPTED, "the request was interrupted"
    if stream.first_text_ns is None:
        if stream.tool_calls:
            return Outcome.TOOL_CALL, "the reply is a tool call without text"
        return Outcome.EMPTY, "the reply has no text"
    return Outcome.COMPLETED, None


def first_clause(deltas: Sequence[tuple[int, str]], *, complete: bool) -> tuple[int, str] | None:
    """When a voice could have begun to speak, in ns of the monotonic clock, and with which text.

    That is the first sentence, known to be complete when the next visible character has come, as a pipeline's
    sentence splitter waits for it; or the whole of a `complete` reply. None: neither came.
    """
    text = ""
    for at, piece in deltas:
        text += piece
        if not piece.strip():
            continue
        visible = len(text.rstrip())
        end = next((end for end in sentence_ends(text) if end < visible), None)
        if end is not None:
            return at, text[:end].strip()
    if complete and text.strip():
        return deltas[-1][0], text.strip()
    return None
