"""The stream tap: the one place that sees what a provider sends, and when.

It stands around the provider SDK's call, so the pipeline's services and requests made without a pipeline are
measured alike. It records and passes on; it changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from voicebench.clock import now_ns
from voicebench.stages.llm_http import CURRENT, skip_byte_order_mark
from voicebench.stages.llm_keys import redact
from voicebench.stages.retries import Retry, begin_again, retry_after_s
from voicebench.turns.stream import AttemptLog, StreamLog, StreamStatus

Opened = Callable[[Any, StreamLog], Callable[[Any], Any] | None]
"""Told of each stream that an SDK opened; may give what makes of an event what the caller is handed."""

Reader = Callable[[StreamLog, Any, int], None]
"""Reads one event of a protocol into the log: (log, event, arrival in ns)."""


class Asker(Protocol):
    """Asks one mode without a pipeline, one request at a time, over a connection that stays open."""

    async def ask(self, prompt: str) -> StreamLog:
        """Put `prompt` to the model and read its stream to the end; what goes wrong is in the log."""

    async def close(self) -> None:
        """Close the connection."""


UNREAD = "event_not_understood"
"""The caveat of a stream with an event that its reader could not read."""

CONNECTION_ERRORS = ("ConnectionError", "APIConnectionError", "TransportError", "ClientConnectionError")
"""Names of the classes of a broken connection: Python's own, the provider SDKs', httpx' and aiohttp's."""


class Tap:
    """Collects the streams of one session, in the order of their requests."""

    def __init__(self) -> None:
        self.streams: list[StreamLog] = []
        self.retry = Retry()
        self.on_change: Callable[[], None] = lambda: None
        """Called when a stream begins, gets its first text, or ends."""
        self.on_begin: Callable[[StreamLog], None] = lambda log: None
        """Called with each new log before its request is made."""

    def take(self) -> list[StreamLog]:
        """All streams since the last call."""
        taken, self.streams = self.streams, []
        return taken

    def wrap(
        self,
        create: Callable[..., Awaitable[Any]],
        reader: Reader,
        asked: Callable[[dict[str, Any]], dict[str, Any]],
        opened: Opened | None = None,
    ) -> Callable[..., Awaitable[Any]]:
        """The SDK call `create`, observed. `asked` picks the options that make the mode.

        `opened` is called with the SDK's stream before its first event is read.
        """

        async def observed(**request: Any) -> Any:
            if not request.get("stream", False):
                return await create(**request)
            log = self.begin(str(request.get("model", "")), asked(request))

            async def call() -> Any:
                current = CURRENT.set(log)
                try:
                    stream = await create(**request)
                finally:
                    CURRENT.reset(current)
                log.request_id = request_id_of(stream)
                return stream

            return TappedStream(await self.called(call, log), log, reader, self, call, opened)

        return observed

    async def called(self, call: Callable[[], Awaitable[Any]], log: StreamLog) -> Any:
        """What `call` gives, tried again as often as `retry` says. Its last error ends the log."""
        try:
            while True:
                try:
                    return await call()
                except Exception as error:
                    if not await self.again(log, error):
                        raise
        except BaseException as error:
            self.failed(log, error)
            raise

    async def again(self, log: StreamLog, error: Exception | None = None) -> bool:
        """Wait for the next attempt and begin it, after `error` or after a failure that an event told.

        False at once where there is none: the failure is none of those that are tried again, or something of
        the answer has come already.
        """
        status, detail = (log.status, log.detail) if error is None else classify(error)
        broken = error is not None and status != "timed_out" and is_broken_connection(error)
        told = None if error is None else retry_after_s(error)
        wait_s = self.retry.wait_s(len(log.attempts), status, broken, told)
        if wait_s is None or log.deltas or log.tool_calls:
            return False
        await begin_again(log, status, detail, wait_s)
        return True

    def begin(self, model: str, asked: dict[str, Any]) -> StreamLog:
        """The log of a request that is made now, on its first attempt."""
        log = StreamLog(request_ns=now_ns(), asked=asked, model=model)
        log.attempts.append(AttemptLog(log.request_ns))
        self.streams.append(log)
        self.on_begin(log)
        self.on_change()
        return log

    def read(self, log: StreamLog, reader: Reader, event: Any) -> bool:
        """Read an event that arrived now. One that a vendor shaped unexpectedly is noted, and that is all.

        False for such a one: what can make nothing of it is better not handed it.
        """
        at_ns = now_ns()
        had_text, ran = log.first_text_ns is not None, log.running
        understood = event is not None and not isinstance(event, str | int | float | list)
        try:
            reader(log, event, at_ns)
        except Exception:
            understood = False
        if not understood:
            unread(log)
        if (not had_text and log.first_text_ns is not None) or (ran and not log.running):
            self.on_change()
        return understood

    def ended(self, log: StreamLog) -> None:
        """The stream ended properly: complete with its terminal marker, else truncated."""
        at_ns = now_ns()
        _hide_unseen_reasoning(log)
        if log.terminal:
            log.end(at_ns, "ok")
        else:
            log.end(at_ns, "truncated", "the stream ended without its terminal marker")
        self.on_change()

    def failed(self, log: StreamLog, error: BaseException) -> None:
        """The call or the stream raised `error`, or it was cancelled."""
        status, detail = classify(error)
        if log.request_id is None:
            log.request_id = request_id_of(error)
        if status == "failed" and log.first_token_ns is not None and is_broken_connection(error):
            # The connection broke in mid-answer: the stream ended without its terminal marker.
            status = "ok" if log.terminal else "truncated"
        _hide_unseen_reasoning(log)
        log.end(now_ns(), status, detail)
        self.on_change()

    def ended_by_us(self, log: StreamLog) -> None:
        """We left the stream: complete after its terminal marker, else cancelled."""
        if log.running:
            _hide_unseen_reasoning(log)
            log.end(now_ns(), "ok" if log.terminal else "cancelled")
            self.on_change()


class TappedStream:
    """An SDK stream that notes each event's arrival before handing it on."""

    def __init__(
        self,
        stream: Any,
        log: StreamLog,
        reader: Reader,
        tap: Tap,
        call: Callable[[], Awaitable[Any]] | None = None,
        opened: Opened | None = None,
    ) -> None:
        """`call` makes the request once more; without it a stream that fails is not tried again."""
        self._log = log
        self._reader = reader
        self._tap = tap
        self._call = call
        self._opened = opened
        self._take(stream)

    def _take(self, stream: Any) -> None:
        """Read this stream from now on."""
        skip_byte_order_mark(stream)
        self._stream = stream
        self._handed_on = None if self._opened is None else self._opened(stream, self._log)
        self._events: AsyncIterator[Any] = stream.__aiter__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> TappedStream:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                event = await self._events.__anext__()
            except StopAsyncIteration:
                self._tap.ended(self._log)
                raise
            except Exception as error:
                if await self._reopened(error):
                    continue
                self._tap.failed(self._log, error)
                raise
            except BaseException as error:
                self._tap.failed(self._log, error)
                raise
            ran = self._log.running
            understood = self._tap.read(self._log, self._reader, event)
            if (ran and not self._log.running and await self._reopened(None)) or not understood:
                continue
            try:
                return event if self._handed_on is None else self._handed_on(event)
            except Exception:
                unread(self._log)

    async def _reopened(self, error: Exception | None) -> bool:
        """Was the request made again after a failure within its stream?"""
        if self._call is None:
            return False
        try:
            if not await self._tap.again(self._log, error):
                return False
        except BaseException as cancelled:
            self._tap.failed(self._log, cancelled)
            raise
        with contextlib.suppress(Exception):
            await self._close_stream()
        self._take(await self._tap.called(self._call, self._log))
        return True

    async def aclose(self) -> None:
        """Close the event iterator; a stream closed before its end was cancelled by us."""
        closer = getattr(self._events, "aclose", None)
        if closer is not None:
            await closer()
        self._tap.ended_by_us(self._log)

    async def close(self) -> None:
        """Close the stream and its connection."""
        await self._close_stream()
        self._tap.ended_by_us(self._log)

    async def _close_stream(self) -> None:
        closer = getattr(self._stream, "close", None) or getattr(self._stream, "aclose", None)
        if closer is not None:
            await closer()

    async def __aenter__(self) -> TappedStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def classify(error: BaseException) -> tuple[StreamStatus, str]:
    """What an SDK's error means for the turn, and what it says in one line.

    By the HTTP status where there is one: 429 is `rate_limited`, 503 and 529 are `overloaded`; an error that
    calls itself so inside a 200 stream, in its text, its code or its type, is too.
    """
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "cancelled", ""
    text = _one_line(error)
    codes = _codes(error)
    busy = _busy(" ".join((type(error).__name__, text, *codes)), codes)
    if busy is not None:
        return busy, text
    if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
        return "timed_out", text
    return "failed", text


def typed_problem(told: Mapping[str, Any]) -> tuple[StreamStatus, str]:
    """What an error means that a stream tells in an event, by its `code`, `type`, `status` and `message`."""
    codes = {str(told[name]) for name in ("code", "type", "status") if told.get(name)}
    words = " ".join([*sorted(codes), str(told.get("message") or "no text")])
    text = redact(" ".join(words.split()))[:300]
    return _busy(text, codes) or "failed", text


def _busy(words: str, codes: set[str]) -> StreamStatus | None:
    """Does an error say that the provider is busy, with this account or with all?"""
    lowered = words.lower()
    if "429" in codes or "rate_limit" in lowered or "rate limit" in lowered:
        return "rate_limited"
    if codes & {"503", "529"} or "overloaded" in lowered:
        return "overloaded"
    return None


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
    """The error's class and text, its cause where the text alone says little, and no key."""
    text = " ".join(str(error).split()) or "no text"
    cause = _root_cause(error) if is_broken_connection(error) else None
    if cause is not None:
        told = " ".join(str(cause).split())
        text = text if told in text else f"{text.rstrip('.')}: {told}"
    retry = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
    if retry:
        text = f"{text} (retry after {retry} s)"
    return redact(f"{type(error).__name__}: {text}")[:300]


def _root_cause(error: BaseException) -> BaseException | None:
    """The first cause in the chain of causes that says something; None where none does."""
    found, seen = None, error.__cause__ or error.__context__
    for _ in range(8):
        if seen is None:
            break
        if str(seen).strip():
            found = seen
        seen = seen.__cause__ or seen.__context__
    return found


def request_id_of(answer: Any) -> str | None:
    """The request's id in the headers of an SDK's stream or error; None where there is none."""
    headers = getattr(getattr(answer, "response", None), "headers", None)
    if headers is None:
        return None
    found = headers.get("x-request-id") or headers.get("request-id")
    return redact(str(found))[:200] if found else None


def field_of(value: Any, name: str) -> Any:
    """A field of an event, whether the SDK parsed it or not; None where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def unread(log: StreamLog) -> None:
    """Note that an event could not be read."""
    if UNREAD not in log.caveats:
        log.caveats.append(UNREAD)


def word_of(value: Any, name: str) -> str | None:
    """A field of an event that is a text; None where it is none, or of another kind."""
    found = field_of(value, name)
    return found if isinstance(found, str) else None


def saw_token(log: StreamLog, at_ns: int) -> None:
    """A token of some kind arrived."""
    if log.first_token_ns is None:
        log.first_token_ns = at_ns


def saw_reasoning(log: StreamLog, at_ns: int) -> None:
    """A token of the model's reasoning arrived."""
    log.reasoning_streamed = True
    saw_token(log, at_ns)


def saw_text(log: StreamLog, at_ns: int, text: str) -> None:
    """A delta of the answer's text arrived; an empty one is none. Raises TypeError for what is no text."""
    if text:
        if not isinstance(text, str):
            raise TypeError(f"a delta of {type(text).__name__}")
        saw_token(log, at_ns)
        log.deltas.append((at_ns, text))


def _hide_unseen_reasoning(log: StreamLog) -> None:
    """Leave the first token empty where the model reasoned unseen: it came before any that was sent."""
    hidden = log.usage is not None and bool(log.usage.reasoning_tokens) and not log.reasoning_streamed
    if hidden and log.running:
        log.first_token_ns = None
        log.caveats.append("hidden_reasoning")
