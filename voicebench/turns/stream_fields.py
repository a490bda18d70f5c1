"""What a stream says of a turn, as fields and flags of its record: the same with and without a pipeline."""

from __future__ import annotations

from typing import Any

from voicebench.clock import ms
from voicebench.plan.modes import Mode
from voicebench.plan.served import asked_not_served, not_told
from voicebench.turns.price import usd_of
from voicebench.turns.records import Attempt, Flag
from voicebench.turns.stream import StreamLog
from voicebench.turns.tokens import share_out

TOKEN_LIMIT_REACHED = ("length", "max_tokens", "max_output_tokens")
"""What vendors call a reply that was cut by the token limit."""
BROKEN_OFF = ("content_filter", "refusal")
"""What they call one that they broke off themselves."""


def stream_fields(
    mode: Mode, stream: StreamLog, slot_ns: int | None, origin_ns: int
) -> tuple[dict[str, Any], bool]:
    """The fields of a record that a stream fills, and whether its tokens are an estimate.

    Instants go in as ns of the monotonic clock: deltas are told from `slot_ns`, the start of the LLM slot
    (None: no deltas), attempts from `origin_ns`, the turn's `speech_end` or first mark.
    """
    visible = stream.usage.visible_tokens if stream.usage else None
    texts = [text for _, text in stream.deltas]
    tokens, method, estimated = share_out(texts, visible, mode.tokenizer)
    ended = stream.status == "ok" and stream.last_text_ns is not None
    fields = {
        "deltas": ()
        if slot_ns is None
        else tuple(
            (max(0, at - slot_ns), len(text), count)
            for (at, text), count in zip(stream.deltas, tokens, strict=True)
        ),
        "token_count": method,
        "reply_end_ns": max(0, (stream.last_text_ns or 0) - slot_ns)
        if ended and slot_ns is not None
        else None,
        "usage": stream.usage,
        "usd": usd_of(mode.price, stream.usage),
        "asked": stream.asked,
        "served": stream.served,
        "finish_reason": stream.finish_reason,
        "request_id": stream.request_id,
        "new_connection": stream.new_connection,
        "connect_ms": None if stream.connect_ns is None else ms(stream.connect_ns),
        "attempts": tuple(
            Attempt(
                request_ns=one.request_ns - origin_ns,
                end_ns=None if one.end_ns is None else one.end_ns - origin_ns,
                status=one.status,
                detail=one.detail,
            )
            for one in stream.attempts
        ),
    }
    return fields, estimated


def stream_work_ms(stream: StreamLog) -> dict[str, float]:
    """How long the whole stream took, and what the provider says of its own time, in ms."""
    spent = {f"llm_server_{name}": value for name, value in stream.server_ms.items()}
    if stream.end_ns is not None:
        spent["llm_total"] = ms(stream.end_ns - stream.request_ns)
    return spent


def stream_flags(mode: Mode, stream: StreamLog, estimated: bool) -> tuple[Flag, ...]:
    """The flags that a completed turn has from its stream."""
    found = []
    if asked_not_served(mode, stream.asked, stream.served):
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
    if mode.kind == "live" and stream.status == "ok" and not_told(mode, stream.asked, stream.served):
        found.append("served_not_told")
    if stream.finish_reason in BROKEN_OFF:
        found.append("filtered")
    if stream.first_text_ns is not None and stream.tool_calls:
        found.append("text_then_tool_call")
    return tuple(dict.fromkeys(found))
