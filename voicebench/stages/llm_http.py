"""The HTTP client under a provider's SDK: no retries, no redirects, connections that stay open, each new one
seen; and the bytes of its streams."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from voicebench.clock import now_ns
from voicebench.stages.llm_keys import Endpoint, vendor_of
from voicebench.turns.stream import StreamLog

CURRENT: ContextVar[StreamLog | None] = ContextVar("voicebench_stream", default=None)
"""The log of the request that the running task is making."""

CUSTOM_HEADERS = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
"""Variables from which the SDKs take further headers, meant for their own vendor."""
VENDOR_HEADERS = ("openai-organization", "openai-project")


def client_options(settings: Endpoint, kept_s: float | None = None) -> dict[str, Any]:
    """The arguments for an SDK's `DefaultAsyncHttpxClient`.

    Redirects are not followed, as a key would go along. An idle connection is used again within `kept_s`
    seconds, which must be less than the server keeps it: a request on one that the server is just closing
    fails. None: for as long as the server keeps it, as the SDKs' own 5 s would make a new one for each turn.
    A proxy is not used on this machine.
    """
    import httpx2

    return {
        "follow_redirects": False,
        "limits": httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=kept_s),
        "timeout": httpx2.Timeout(settings.timeout_s),
        "trust_env": not settings.on_this_machine,
        "event_hooks": {"request": [note_connection, _own_headers_only(settings)]},
    }


async def note_connection(request: Any) -> None:
    """Note in the request's log whether it opens a connection, and how long that takes."""
    log = CURRENT.get()
    if log is None:
        return
    log.new_connection = False
    begun = 0

    async def trace(name: str, info: dict[str, Any]) -> None:
        nonlocal begun
        if name == "connection.connect_tcp.started":
            begun = now_ns()
            log.new_connection = True
        elif name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            log.connect_ns = now_ns() - begun

    request.extensions["trace"] = trace


def skip_byte_order_mark(stream: Any) -> None:
    """Let an SDK's stream skip a byte-order mark before its first event.

    An event stream may begin with one (WHATWG's HTML standard, 9.2.6), wherever the network cuts it. The SDKs
    take it for a part of the first line, and lose the first event. What reads no bytes goes on as it is.
    """
    response = getattr(stream, "response", None)
    read = getattr(response, "aiter_bytes", None)
    if response is None or read is None:
        return

    async def aiter_bytes(*sizes: int | None) -> AsyncIterator[bytes]:
        head, begun = b"", False
        async with contextlib.aclosing(read(*sizes)) as chunks:
            async for chunk in chunks:
                if begun:
                    yield chunk
                    continue
                head += chunk
                if head == codecs.BOM_UTF8 or not codecs.BOM_UTF8.startswith(head):
                    begun = True
                    yield head.removeprefix(codecs.BOM_UTF8)
        if not begun and head:
            yield head

    response.aiter_bytes = aiter_bytes


def _own_headers_only(settings: Endpoint) -> Any:
    """A hook that takes from a request to another host what the environment holds for the SDK's vendor."""
    foreign = set(VENDOR_HEADERS)
    for variable in CUSTOM_HEADERS:
        lines = os.environ.get(variable, "").splitlines()
        foreign.update(line.partition(":")[0].strip().lower() for line in lines if ":" in line)

    async def drop(request: Any) -> None:
        if vendor_of(request.url.host) in ("api.openai.com", "api.anthropic.com"):
            return
        for name in foreign:
            if name in request.headers:
                del request.headers[name]

    return drop
