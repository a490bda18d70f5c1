"""A server that takes WebSockets and falls silent, as one whose machine hangs: it answers no farewell."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from tests.keys_and_text.echoing_vendor import events_of
from tests.loopback import listening
from voicebench.emulator.staging import TEXT, websocket_frame

Silence = Literal["handshake", "first-event", "mid-stream", "none"]
"""From where on it is silent: before it takes the socket, after that, after some text; or not at all."""
SAID = "It is Paris."

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class SilentServer:
    """Serves each connection with the silence that is set when it is made."""

    def __init__(self, silence: Silence) -> None:
        self.silence = silence
        self.refuses: list[int] = []
        """The HTTP statuses with which the next handshakes are refused, one each."""
        self.connections = 0
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its client is gone."""
        silence = self.silence
        self.connections += 1
        self._writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        if self.refuses:
            told = b"HTTP/1.1 %d No\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            writer.write(told % self.refuses.pop(0))
            writer.close()
            return
        if silence != "handshake":
            writer.write(accepted(head))
        request = await reader.read(1 << 20)
        if request and silence in ("mid-stream", "none"):
            events = events_of("/responses", "x", "success")
            for event in events if silence == "none" else events[:-1]:
                data = event.split(b"data: ", 1)[1].strip()
                writer.write(websocket_frame(data, TEXT))
        while await reader.read(1 << 16):
            continue
        writer.transport.abort()

    def cut(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()


def accepted(head: bytes) -> bytes:
    """The answer that opens a WebSocket (RFC 6455, section 4.2.2)."""
    lines = (line.partition(b":") for line in head.split(b"\r\n"))
    [key] = [value.strip() for name, _, value in lines if name.lower() == b"sec-websocket-key"]
    accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    told = (b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + accept)
    return b"\r\n".join((b"HTTP/1.1 101 Switching Protocols", *told, b"", b""))


@asynccontextmanager
async def silent_server(silence: Silence) -> AsyncIterator[SilentServer]:
    """A server on this machine, ended with all its connections."""
    made = SilentServer(silence)
    async with listening(made.serve) as made.port:
        try:
            yield made
        finally:
            made.cut()
