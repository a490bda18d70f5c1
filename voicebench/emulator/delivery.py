"""Hands parcels to the socket at their instants, and writes down when."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from voicebench.clock import NS_PER_MS, now_ns
from voicebench.emulator.pacing import sleep_until
from voicebench.emulator.staging import Ending, Parcel, linger_zero
from voicebench.emulator.writelog import Record


class Gone(Exception):
    """The client closed the connection."""


class Link:
    """A connection's way out, past the server library: one write to the socket for each event."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._whole = asyncio.Lock()

    def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise Gone
        self._transport.write(data)

    async def write(self, parts: Sequence[bytes], gap_ns: int = 0) -> None:
        """Write `parts`, `gap_ns` apart, with nothing else between them. Raises `Gone`."""
        if len(parts) == 1 and not self._whole.locked():
            self._write(parts[0])
            return
        async with self._whole:
            for index, part in enumerate(parts):
                if index:
                    await asyncio.sleep(0)
                    await sleep_until(now_ns() + gap_ns)
                self._write(part)

    @property
    def buffered(self) -> int:
        """Bytes that the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def cut(self, ending: Ending) -> None:
        """Close the socket for `drop`, reset it for `reset`; nothing for the other endings."""
        if ending == "reset":
            connection = self._transport.get_extra_info("socket")
            if connection is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero())
            self._transport.abort()
        elif ending == "drop":
            self._transport.close()


async def send(parcels: Sequence[Parcel], link: Link, record: Record) -> None:
    """Write each parcel at its instant. A late one leaves at once and moves none of those after it.

    Raises `Gone` where the client has left.
    """
    hurried = 0
    for parcel in parcels:
        event = parcel.event
        due_ns = record.received_ns + event.at_ns
        if due_ns > now_ns():
            await sleep_until(due_ns)
            hurried = 0
        else:
            hurried += 1
            if hurried % 32 == 0:
                await asyncio.sleep(0)
        before_ns = now_ns()
        await link.write(parcel.parts, parcel.gap_ns)
        after_ns = now_ns()
        counts = (event.tokens, event.text_tokens, event.characters)
        record.events.append((event.kind, event.name, due_ns, before_ns, after_ns, *counts, link.buffered))


async def hang(link: Link, ping: bytes, ping_ms: float) -> None:
    """Keep a connection open in silence, or with pings; ends by cancellation or with `Gone`."""
    while True:
        if ping_ms > 0:
            await sleep_until(now_ns() + round(ping_ms * NS_PER_MS))
            await link.write((ping,))
        else:
            await asyncio.Event().wait()
