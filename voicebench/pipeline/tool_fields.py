"""What a record says of the tools that were called in a turn, and of the requests around them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voicebench.clock import ms
from voicebench.plan.modes import Mode
from voicebench.stages.tools import ToolCallLog
from voicebench.turns.records import ToolCall
from voicebench.turns.stream import StreamLog
from voicebench.turns.stream_fields import stream_record, total_usd, usd_of_stream


def request_fields(mode: Mode, streams: Sequence[StreamLog], origin_ns: int) -> dict[str, Any]:
    """The fields of a turn that made several requests; none for one request. `usd` is their sum."""
    if len(streams) < 2:
        return {}
    return {
        "requests": tuple(stream_record(mode, stream, origin_ns) for stream in streams),
        "usd": total_usd([usd_of_stream(mode, stream) for stream in streams]),
    }


def tool_fields(calls: Sequence[ToolCallLog], origin_ns: int) -> dict[str, Any]:
    """The calls of a turn, from `origin_ns`."""
    return {
        "tools": tuple(
            ToolCall(
                name=call.name,
                start_ns=call.start_ns - origin_ns,
                end_ns=None if call.end_ns is None else call.end_ns - origin_ns,
                arguments=call.arguments,
                error=call.error,
            )
            for call in calls
        )
    }


def tool_work_ms(calls: Sequence[ToolCallLog], first_text_ns: int | None) -> dict[str, float]:
    """`tool`: the time in which tools were at work, in ms; `tool_before_text`: the part of it before the
    answer's first text, which is a part of `llm_ttfat`. Empty without a call that ended."""
    spans = [(call.start_ns, call.end_ns) for call in calls if call.end_ns is not None]
    if not spans:
        return {}
    spent = {"tool": ms(covered_ns(spans))}
    if first_text_ns is not None:
        before = [(start, min(end, first_text_ns)) for start, end in spans if start < first_text_ns]
        spent["tool_before_text"] = ms(covered_ns(before))
    return spent


def covered_ns(spans: Sequence[tuple[int, int]]) -> int:
    """How much time the spans cover together: what overlaps counts once."""
    total, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return total
