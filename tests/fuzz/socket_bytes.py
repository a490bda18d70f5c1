"""A server of WebSockets that writes any bytes, in pieces, once it is asked, and then is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.faults.silent_server import accepted
from tests.loopback import listening
from voicebench.emulator.staging import CONTINUATION, PING, TEXT, websocket_frame

PAUSES = 3
"""So many rounds of the event loop lie between two pieces, so that each is read by itself."""


@dataclass
class Bytes:
    """What each connection gets."""

    pieces: Sequence[bytes]
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the socket, wait for a request, write the pieces and leave."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(accepted(await reader.readuntil(b"\r\n\r\n")))
            if await reader.read(1 << 20):
                for piece in self.pieces:
                    writer.write(piece)
                    for _ in range(PAUSES):
                        await asyncio.sleep(0)
        writer.close()


@asynccontextmanager
async def serving(pieces: Sequence[bytes]) -> AsyncIterator[Bytes]:
    """A server on this machine that writes these pieces."""
    made = Bytes(pieces)
    async with listening(made.serve) as made.port:
        yield made


def frames(parts: Sequence[bytes], *, pings: bool) -> bytes:
    """One text message in so many fragments (RFC 6455, section 5.4), with pings between them."""
    written = []
    for index, part in enumerate(parts):
        opcode = CONTINUATION if index else TEXT
        written.append(websocket_frame(part, opcode, final=index == len(parts) - 1))
    return (websocket_frame(b"?", PING) if pings else b"").join(written)
