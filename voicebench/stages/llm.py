"""The stream tap: the one place that sees what a provider sends, and when.

It stands around the provider SDK's call, so the pipeline's services and requests made without a pipeline are
measured alike. It records and passes on; it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from voicebench.clock import now_ns
from voicebench.turns.stream import AttemptLog, StreamLog, StreamStatus

Reader = Callable[[StreamLog, Any, int], None]
"""Reads one event of a protocol into the log: (log, event, arrival in ns)."""


UNREAD = "event_not_understood"
"""The caveat of a stream with an event that its reader could not read."""

CONNECTION_ERRORS = ("ConnectionError", "APIConnectionError", "TransportError", "ClientConnectionError")
"""Names of the classes of a broken connection: Python's own, the provider SDKs', httpx' and aiohttp's."""


class Tap:
    """Collects the streams of one session, in the order of their requests."""

    def __init__(self) -> None:
        self.streams: list[StreamLog] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called when a stream begins, gets its first text, or ends."""

    def take(self) -> list[StreamLog]:
        """All streams since the last call."""
        taken, self.streams = self.streams, []
        return taken

    def wrap(
        self,
        create: Callable[..., Awaitable[Any]],
        reader: Reader,
        asked: Callable[[dict[str, Any]], dict[str, Any]],
        opened: Callable[[Any, StreamLog], None] | None = None,
    ) -> Callable[..., Awaitable[Any]]:
        """The SDK call `create`, observed. `asked` picks the options that make the mode.

        `opened` is called with the SDK's stream before its first event is read, for what its events do not
        show.
        """

        async def observed(**request: Any) -> Any:
            if not request.get("stream", False):
                return await create(**request)
            log = StreamLog(request_ns=now_ns(), asked=asked(request), model=str(request.get("model", "")))
            log.attempts.append(AttemptLog(log.request_ns))
            self.streams.append(log)
            self.on_change()
            try:
                stream = await create(**request)
            except BaseException as error:
                self._failed(log, error)
                raise
            if opened is not None:
                opened(stream, log)
            return TappedStream(stream, log, reader, self)

        return observed

    def _failed(self, log: StreamLog, error: BaseException) -> None:
        status, detail = classify(error)
        if status == "failed" and log.first_token_ns is not None and is_broken_connection(error):
            # The connection broke in mid-answer: the stream ended without its terminal marker.
            status = "ok" if log.terminal else "truncated"
        log.end(now_ns(), status, detail)
        self.on_change()


class TappedStream:
    """An SDK stream that notes each event's arrival before handing it on."""

    def __init__(self, stream: Any, log: StreamLog, reader: Reader, tap: Tap) -> None:
        self._stream = stream
        self._events: AsyncIterator[Any] = stream.__aiter__()
        self._log = log
        self._reader = reader
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> TappedStream:
        return self

    async def __anext__(self) -> Any:
        log = self._log
        try:
            event = await self._events.__anext__()
        except StopAsyncIteration:
            at = now_ns()
            if log.terminal:
                log.end(at, "ok")
            else:
                log.end(at, "truncated", "the stream ended without its terminal marker")
            self._tap.on_change()
            raise
        except BaseException as error:
            self._tap._failed(log, error)
            raise
        had_text = log.first_text_ns is not None
        self._read(event, now_ns())
        if not had_text and log.first_text_ns is not None:
            self._tap.on_change()
        return event

    def _read(self, event: Any, at_ns: int) -> None:
        """Read an event into the log. One that a vendor shaped unexpectedly is noted, and passed on."""
        try:
            self._reader(self._log, event, at_ns)
        except Exception:
            if UNREAD not in self._log.caveats:
                self._log.caveats.append(UNREAD)

    async def aclose(self) -> None:
        """Close the event iterator; a stream closed before its end was cancelled by us."""
        closer = getattr(self._events, "aclose", None)
        if closer is not None:
            await closer()
        self._ended_by_us()

    async def close(self) -> None:
        """Close the stream and its connection."""
        closer = getattr(self._stream, "close", None) or getattr(self._stream, "aclose", None)
        if closer is not None:
            await closer()
        self._ended_by_us()

    async def __aenter__(self) -> TappedStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _ended_by_us(self) -> None:
        if self._log.running:
            self._log.end(now_ns(), "ok" if self._log.terminal else "cancelled")
            self._tap.on_change()


def classify(error: BaseException) -> tuple[StreamStatus, str]:
    """What an SDK's error means for the turn, and what it says in one line.

    By the HTTP status where there is one: 429 is `rate_limited`, 503 and 529 are `overloaded`; an error that
    calls itself so inside a 200 stream, in its text, its code or its type, is too.
    """
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "cancelled", ""
    text = _one_line(error)
    codes = _codes(error)
    lowered = " ".join((type(error).__name__, text, *codes)).lower()
    if "429" in codes or "rate_limit" in lowered or "rate limit" in lowered:
        return "rate_limited", text
    if codes & {"503", "529"} or "overloaded" in lowered:
        return "overloaded", text
    if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
        return "timed_out", text
    return "failed", text


def is_broken_connection(error: BaseException) -> bool:
    """Did the connection break, as opposed to a provider that answered with an error?"""
    return any(kind.__name__ in CONNECTION_ERRORS for kind in type(error).__mro__)


def _codes(error: BaseException) -> set[str]:
    """The HTTP status, and what an error inside a 200 stream calls itself: its `code` and `type`."""
    found = {getattr(error, name, None) for name in ("status_code", "code", "type")}
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error")
        for part in (body, inner if isinstance(inner, Mapping) else {}):
            found |= {part.get(name) for name in ("code", "type", "status")}
    return {str(code) for code in found if isinstance(code, str | int)}


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no text"
    return f"{type(error).__name__}: {text}"[:300]
