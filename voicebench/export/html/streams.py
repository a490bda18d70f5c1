"""What a turn's model did in several streams: candidates of a set, requests around tools, and the tools."""

from __future__ import annotations

from voicebench.clock import NS_PER_MS
from voicebench.export.html.markup import Safe, join, tag, user_text
from voicebench.turns.records import StreamRecord, ToolCall, TurnRecord

MOST_SHOWN = 12
"""Of more candidates, requests or calls the first are told, and how many there are."""


def streams_of(record: TurnRecord) -> Safe | None:
    """A line for each candidate, request and tool call of the turn; None where it had one plain request."""
    parts = [
        _told("Candidates", [_stream(one, one.mode) for one in record.candidates]),
        _told("Requests", [_stream(one, f"{n}.") for n, one in enumerate(record.requests, start=1)]),
        _told("Tools", [_call(one) for one in record.tools]),
    ]
    return join(*parts) if any(parts) else None


def _told(head: str, lines: list[Safe]) -> Safe | None:
    if not lines:
        return None
    left = len(lines) - MOST_SHOWN
    more = tag("li", f"and {left} more") if left > 0 else None
    return tag("div", tag("b", head), tag("ul", *lines[:MOST_SHOWN], more), class_="streams")


def _stream(one: StreamRecord, name: str) -> Safe:
    """Its name, first text and first clause from its own request, how it ended, and what it cost."""
    told = [
        f"{what} {(at - one.request_ns) / NS_PER_MS:.0f} ms"
        for what, at in (("first text", one.first_text_ns), ("clause", one.clause_ns), ("end", one.end_ns))
        if at is not None
    ]
    told += [f"{one.tool_calls} tool call{'s' if one.tool_calls > 1 else ''}"] if one.tool_calls else []
    told += [] if one.status == "ok" else [f"{one.status.replace('_', ' ')} {one.detail}".strip()]
    told += [] if one.score is None else [f"score {one.score:.3g}"]
    told += [] if one.usd is None else [f"${one.usd:.5f}"]
    said = join(" “", user_text(one.reply, 160), "”") if one.reply else None
    taken = tag("b", " taken") if one.chosen else None
    return tag("li", user_text(name, 60), taken, ": ", user_text(" · ".join(told), 300), said)


def _call(one: ToolCall) -> Safe:
    """Its name, how long it took, and what it raised."""
    took = "not ended" if one.end_ns is None else f"{(one.end_ns - one.start_ns) / NS_PER_MS:.0f} ms"
    error = f" · {one.error}" if one.error else ""
    asked = f" {one.arguments}" if one.arguments else ""
    return tag(
        "li", user_text(f"{one.name}{asked}", 160), f": {took}", user_text(error, 200) if error else None
    )
