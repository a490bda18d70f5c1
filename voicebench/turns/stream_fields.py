"""What a stream says of a turn, as fields and flags of its record: the same with and without a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voicebench.clock import ms
from voicebench.plan.modes import Mode
from voicebench.plan.served import asked_not_served, not_told
from voicebench.turns.price import usd_of
from voicebench.turns.records import Attempt, Flag, StreamRecord
from voicebench.turns.stream import StreamLog
from voicebench.turns.tokens import share_out

TOKEN_LIMIT_REACHED = ("length", "max_tokens", "max_output_tokens")
"""What vendors call a reply that was cut by the token limit."""
ONE_NAME = {"reasoning_effort": "effort"}
"""Options that a protocol calls otherwise than modes do."""
BROKEN_OFF = ("content_filter", "refusal")
"""What they call one that they broke off themselves."""


def stream_fields(
    mode: Mode, stream: StreamLog, slot_ns: int | None, origin_ns: int
) -> tuple[dict[str, Any], bool]:
    """The fields of a record that a stream fills, and whether its tokens are an estimate.

    Instants go in as ns of the monotonic clock: deltas are told from `slot_ns`, the start of the LLM slot
    (None: no deltas) and negative ahead of it, attempts from `origin_ns`, the turn's `speech_end` or first
    mark.
    """
    answering = stream.mode or mode
    visible = stream.usage.visible_tokens if stream.usage else None
    texts = [text for _, text in stream.deltas]
    tokens, method, estimated = share_out(texts, visible, answering.tokenizer)
    ended = stream.status == "ok" and stream.last_text_ns is not None
    fields = {
        "deltas": ()
        if slot_ns is None
        else tuple(
            (at - slot_ns, len(text), count) for (at, text), count in zip(stream.deltas, tokens, strict=True)
        ),
        "token_count": method,
        "reply_end_ns": (stream.last_text_ns or 0) - slot_ns if ended and slot_ns is not None else None,
        "usage": stream.usage,
        "usd": usd_of_stream(mode, stream),
        "asked": {ONE_NAME.get(name, name): value for name, value in stream.asked.items()},
        "served": stream.served if stream.mode is None else {**stream.served, "mode": stream.mode.id},
        "choice": {} if stream.mode is None else {"mode": stream.mode.id, **stream.choice},
        "candidates": tuple(
            stream_record(one.mode, one.stream, origin_ns).model_copy(
                update={
                    "chosen": one.chosen,
                    "score": one.score,
                    "clause_ns": None if one.clause_ns is None else one.clause_ns - origin_ns,
                }
            )
            for one in stream.members
        ),
        "finish_reason": stream.finish_reason,
        "request_id": stream.request_id,
        "new_connection": stream.new_connection,
        "connect_ms": None if stream.connect_ns is None else ms(stream.connect_ns),
        "attempts": _attempts(stream, origin_ns),
    }
    return fields, estimated


def usd_of_stream(mode: Mode, stream: StreamLog) -> float | None:
    """What a request cost in US dollars, that of a set the sum over its candidates; see `usd_of`."""
    if stream.members:
        return total_usd([usd_of_stream(one.mode, one.stream) for one in stream.members])
    return usd_of((stream.mode or mode).price, stream.usage)


def total_usd(bills: Sequence[float | None]) -> float | None:
    """The sum; None where one of them is not known, or there is none."""
    known = [bill for bill in bills if bill is not None]
    return sum(known) if bills and len(known) == len(bills) else None


def stream_record(mode: Mode, stream: StreamLog, origin_ns: int) -> StreamRecord:
    """One of several streams of a turn, its instants from `origin_ns`."""

    def told(at_ns: int | None) -> int | None:
        return None if at_ns is None else at_ns - origin_ns

    return StreamRecord(
        mode=(stream.mode or mode).id,
        request_ns=stream.request_ns - origin_ns,
        first_text_ns=told(stream.first_text_ns),
        end_ns=told(stream.end_ns),
        status=stream.status,
        detail=stream.detail,
        deltas=tuple((at - stream.request_ns, len(text)) for at, text in stream.deltas),
        reply=stream.text if stream.deltas else None,
        tool_calls=stream.tool_calls,
        finish_reason=stream.finish_reason,
        usage=stream.usage,
        usd=usd_of_stream(mode, stream),
        served=stream.served,
        attempts=_attempts(stream, origin_ns),
    )


def _attempts(stream: StreamLog, origin_ns: int) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(
            request_ns=one.request_ns - origin_ns,
            end_ns=None if one.end_ns is None else one.end_ns - origin_ns,
            status=one.status,
            detail=one.detail,
        )
        for one in stream.attempts
    )


def stream_work_ms(stream: StreamLog) -> dict[str, float]:
    """How long the whole stream took, and what the provider says of its own time, in ms."""
    spent = {f"llm_server_{name}": value for name, value in stream.server_ms.items()}
    if stream.end_ns is not None:
        spent["llm_total"] = ms(stream.end_ns - stream.request_ns)
    return spent


def stream_flags(mode: Mode, stream: StreamLog, estimated: bool) -> tuple[Flag, ...]:
    """The flags that a completed turn has from its stream."""
    found = []
    if asked_not_served(stream.mode or mode, stream.asked, stream.served):
        found.append(Flag.ASKED_NOT_SERVED)
    if len(stream.attempts) > 1:
        found.append(Flag.RETRIED)
    if stream.finish_reason in TOKEN_LIMIT_REACHED:
        found.append(Flag.LENGTH)
    if estimated:
        found.append(Flag.COUNT_ESTIMATED)
    return tuple(found)


def stream_caveats(mode: Mode, stream: StreamLog) -> tuple[str, ...]:
    """Codes of what a reader should know of the stream of a turn."""
    found = list(stream.caveats)
    mode = stream.mode or mode
    if mode.kind == "live" and stream.status == "ok" and not_told(mode, stream.asked, stream.served):
        found.append("served_not_told")
    if stream.finish_reason in BROKEN_OFF:
        found.append("filtered")
    if stream.first_text_ns is not None and stream.tool_calls:
        found.append("text_then_tool_call")
    return tuple(dict.fromkeys(found))
