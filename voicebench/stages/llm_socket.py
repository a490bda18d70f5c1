"""A WebSocket to a language model: how it is opened and waited for, and what its errors say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from voicebench.stages.llm_keys import Endpoint

OPEN_S = 10.0
"""So long, at most, may the opening of a socket take; less where the endpoint may be silent for less."""
CLOSE_S = 0.5
"""So long is waited for the other side's farewell."""
UNANSWERED = "keepalive ping timeout"
"""Why a socket was closed whose other side answers no ping, in the words of its library."""

Waited = TypeVar("Waited")


def socket_address(settings: Endpoint) -> str:
    """Where the endpoint takes WebSockets."""
    parts = urlsplit(settings.base_url)
    scheme = "wss" if parts.scheme == "https" else "ws"
    return urlunsplit((scheme, parts.netloc, f"{parts.path}/responses", "", ""))


def connect_options(settings: Endpoint) -> dict[str, Any]:
    """How a socket is opened and closed: never through a proxy where it leads to this machine."""
    times = {"open_timeout": min(OPEN_S, settings.timeout_s), "close_timeout": CLOSE_S}
    return {**times, "proxy": None} if settings.on_this_machine else times


async def in_time(waited: Awaitable[Waited], timeout_s: float) -> Waited:
    """What `waited` gives. Raises TimeoutError where that takes longer than an endpoint may be silent."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await waited
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"the endpoint was silent for {timeout_s:g} s") from None


def with_status(error: Exception) -> Exception:
    """An error of the handshake, its HTTP status where `classify` looks for one."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None and not hasattr(error, "status_code"):
        error.status_code = status  # type: ignore[attr-defined]  # websockets keeps it in the response alone
    return error


def is_open(socket: Any) -> bool:
    """Is the SDK's socket still open?"""
    from websockets.protocol import State

    inner = getattr(socket, "_connection", None)
    return getattr(inner, "state", State.OPEN) is State.OPEN


def is_closed(error: BaseException) -> bool:
    """Did the socket close: as websockets raises it, or as the SDK words it?"""
    from websockets.exceptions import ConnectionClosed

    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, ConnectionClosed):
            return True
        chain = chain.__cause__ or chain.__context__
    return False


def is_unanswered(error: BaseException) -> bool:
    """Was the socket closed by us, as its other side answered no ping?"""
    sent = getattr(error, "sent", None)
    return getattr(sent, "reason", None) == UNANSWERED
