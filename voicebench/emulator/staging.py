"""From a reply's events to the bytes that go out: carries out the faults that act on events and on bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from voicebench.clock import NS_PER_MS
from voicebench.emulator.faults import Fault
from voicebench.emulator.problems import Problem
from voicebench.emulator.wire import Event, Reply, Wire

Ending = Literal["complete", "clean", "drop", "reset", "hang"]
"""How the connection is left: `complete` after all that belongs to the reply; `clean` ends the stream
properly, but something is missing; `drop` and `reset` close the socket; `hang` keeps it open in silence."""

Transport = Literal["sse", "websocket"]


@dataclass(frozen=True)
class Stage:
    """The events that are sent, how it ends, and whether only the first half of the last event is."""

    events: list[Event]
    ending: Ending
    halved: bool = False


@dataclass(frozen=True, slots=True)
class Parcel:
    """One event as bytes. `parts` is one write, or several that are `gap_ns` apart."""

    event: Event
    parts: tuple[bytes, ...]
    gap_ns: int = 0


def stage(reply: Reply, wire: Wire, fault: Fault | None, events: list[Event]) -> Stage:
    """The events of a complete reply as a fault of the stage `stream` lets them through."""
    name = fault.name if fault and fault.kind.stage == "stream" else ""
    if fault is None or not name:
        return Stage(events, "complete")
    if name == "done-without-finish":
        return Stage([event for event in events if event.kind != "finish"], "clean")
    if name == "finish-without-done":
        kept = [event for event in events if event.kind != "done"]
        return Stage(kept, "complete" if len(kept) == len(events) else "clean")
    if name == "hang-first-text":
        first = next(
            (index for index, event in enumerate(events) if event.kind not in ("preamble", "ping")), None
        )
        return Stage(events[:first], "hang")
    kept = events[: _cut(events, int(fault.values["after"]))]
    if name == "half-event":
        broken = events[len(kept) : len(kept) + 1]
        return Stage(
            kept + [_uncounted(event, kept[-1] if kept else None) for event in broken], "drop", halved=True
        )
    if name == "filtered-in-stream":
        return Stage(kept + wire.filtered_events(reply, kept), "clean")
    if name in ("error-in-stream", "overloaded-in-stream", "failed-in-stream"):
        problem = OVERLOADED if name == "overloaded-in-stream" else SERVER_ERROR
        errors = wire.problem_events(reply, problem, kept[-1] if kept else None, name == "failed-in-stream")
        return Stage(kept + errors, "clean")
    endings: dict[str, Ending] = {
        "no-terminal": "clean",
        "drop": "drop",
        "reset": "reset",
        "hang-mid": "hang",
    }
    return Stage(kept, endings[name])


SERVER_ERROR = Problem(500, "server", "The server had an error while processing your request.")
OVERLOADED = Problem(529, "overloaded", "Overloaded", code="server_is_overloaded")


def _cut(events: Sequence[Event], after: int) -> int:
    """How many events stay: up to the one that reaches `after` visible tokens, or half of the text events."""
    text = [index for index, event in enumerate(events) if event.kind == "text"]
    if not text:
        ends = (i for i, event in enumerate(events) if event.kind in ("finish", "usage", "done", "tool"))
        return next(ends, len(events))
    if after == 0:
        return text[0]
    half = text[: (len(text) + 1) // 2]
    return next((index for index in half if events[index].text_tokens >= after), half[-1]) + 1


def _uncounted(event: Event, before: Event | None) -> Event:
    """`event` with the counts of the one before it: half an event carries nothing that a client can read."""
    counts = (before.tokens, before.text_tokens, before.characters) if before else (0, 0, 0)
    return Event(event.at_ns, event.kind, event.name, event.data, *counts)


def with_pings(events: Sequence[Event], ping_ns: int, ping: Event) -> list[Event]:
    """`events` with a ping after each `ping_ns` of silence before the next one; unchanged where `ping_ns`
    is 0."""
    told: list[Event] = []
    for event in events:
        if told and ping_ns:
            at_ns = told[-1].at_ns + ping_ns
            while at_ns < event.at_ns:
                told.append(replace(told[-1], at_ns=at_ns, kind="ping", name=ping.name, data=ping.data))
                at_ns += ping_ns
        told.append(event)
    return told


def parcels(staged: Stage, fault: Fault | None, transport: Transport) -> list[Parcel]:
    """The bytes of each event, framed for the transport (chunks of HTTP/1.1, or WebSocket frames)."""
    name = fault.name if fault else ""
    packed: list[Parcel] = []
    for index, event in enumerate(staged.events):
        gap_ns = 0
        halved = staged.halved and index == len(staged.events) - 1
        if transport == "websocket":
            payload = event.data.encode("utf-8")
            if name == "utf8-split" and (middle := _inside_a_character(payload)):
                first = websocket_frame(payload[:middle], TEXT, final=False)
                parts: tuple[bytes, ...] = (first, websocket_frame(payload[middle:], CONTINUATION))
                gap_ns = NS_PER_MS
            else:
                frame = websocket_frame(payload, TEXT)
                parts = (frame[: len(frame) // 2],) if halved else (frame,)
        else:
            payload = sse(event, name)
            if index == 0 and name == "bom":
                payload = b"\xef\xbb\xbf" + payload
            chunk = http_chunk(payload)
            start = len(chunk) - 2 - len(payload)
            if halved:
                parts = (chunk[: start + len(payload) // 2],)
            elif name == "utf8-split" and (middle := _inside_a_character(payload)):
                parts = (chunk[: start + middle], chunk[start + middle :])
                gap_ns = NS_PER_MS
            else:
                parts = (chunk,)
        if fault is not None and name == "drip":
            whole = b"".join(parts)
            parts = tuple(whole[at : at + 1] for at in range(len(whole)))
            gap_ns = round(fault.values["gap_ms"] * NS_PER_MS)
        packed.append(Parcel(event, parts, gap_ns))
    return packed


def sse(event: Event, fault: str = "") -> bytes:
    """A server-sent event: its `event:` line where it has a name, its `data:` line, a blank line.

    A ping without data is a comment.
    """
    if not event.data:
        text = ": ping\n\n"
    else:
        text = f"event: {event.name}\ndata: {event.data}\n\n" if event.name else f"data: {event.data}\n\n"
    if fault == "comments":
        text = f": {event.kind}\n{text}"
    if fault == "crlf":
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8")


def http_chunk(payload: bytes) -> bytes:
    """One chunk of HTTP/1.1's chunked transfer coding (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


CONTINUATION, TEXT, PONG, PING = 0x0, 0x1, 0xA, 0x9


def websocket_frame(payload: bytes, opcode: int, final: bool = True) -> bytes:
    """One unmasked WebSocket frame, as servers send it (RFC 6455, section 5.2)."""
    first = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return struct.pack("!BB", first, len(payload)) + payload
    if len(payload) < 1 << 16:
        return struct.pack("!BBH", first, 126, len(payload)) + payload
    return struct.pack("!BBQ", first, 127, len(payload)) + payload


def _inside_a_character(payload: bytes) -> int:
    """Where a cut falls between the first byte of a many-byte character and its next one; 0 where there is
    none."""
    return next((index + 1 for index, byte in enumerate(payload) if byte >= 0xC0), 0)


def linger_zero() -> bytes:
    """The value of SO_LINGER that makes closing a socket send RST."""
    return struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
