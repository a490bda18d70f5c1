"""OpenAI's Responses API over a WebSocket that stays open: through pipecat's service, or asked directly.

pipecat's service speaks to the socket itself, without the SDK. The tap stands where it sends a request and
where it receives an event.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from voicebench.clock import now_ns
from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Plugin
from voicebench.stages.llm import Asker, Tap, field_of, is_broken_connection, word_of
from voicebench.stages.llm_keys import Endpoint, key_for, redact
from voicebench.stages.llm_openai import endpoint_client
from voicebench.stages.llm_responses import (
    ResponsesSettings,
    asked_options,
    error_of,
    fields_of,
    needs,
    read_responses,
    replies_are_no_errors,
    request_fields,
)
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.stream import AttemptLog, StreamLog

ASKED_AGAIN = ("previous_response_not_found", "websocket_connection_limit_reached")
"""Errors upon which pipecat's service sends the request again, with the whole conversation."""

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


def build(
    mode: Mode, settings: ResponsesSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """pipecat's Responses service over its own WebSocket for this mode, observed by the tap."""
    hush_pipecat()
    from pipecat.services.openai.responses.llm import OpenAIResponsesLLMService

    service_class = _tapped(replies_are_no_errors(OpenAIResponsesLLMService), tap, settings)
    return service_class(
        api_key=key_for(settings, shared),
        base_url=settings.base_url,
        ws_url=socket_address(settings),
        settings=OpenAIResponsesLLMService.Settings(
            model=settings.model or mode.model,
            system_instruction=conversation.system_prompt,
            max_completion_tokens=conversation.max_tokens,
            extra={**fields_of(mode.options), **settings.extra},
        ),
    )


def _tapped(service_class: type[Any], tap: Tap, settings: Endpoint) -> type[Any]:
    """pipecat's service with the tap at its socket."""
    from websockets.exceptions import ConnectionClosed

    options, timeout_s = connect_options(settings), settings.timeout_s

    class Tapped(service_class):  # type: ignore[misc]  # the base is known at run time only
        """Keeps a StreamLog of each request.

        A request begins before the socket is looked at, so that a connection which has to be made anew is in
        its time. A connection that closes in mid-answer ends the answer; it is not asked for again. One that
        falls silent is cut, so that nothing of its answer reaches the next request.
        """

        _log: StreamLog | None = None
        _sent: dict[str, Any] | None = None

        async def _process_context(self, context: Any) -> None:
            try:
                await super()._process_context(context)
            except Exception as error:
                if self._log is not None:
                    tap.failed(self._log, error)
                raise
            finally:
                log, self._log = self._log, None
                if log is not None:
                    tap.ended_by_us(log)

        async def _websocket_connect(self, uri: str, **more: Any) -> Any:
            return await super()._websocket_connect(uri, **options, **more)

        async def _ensure_connected(self) -> None:
            log = self._log
            if log is None:
                log = self._log = tap.begin(str(self._settings.model), {})
            else:
                log.attempts.append(AttemptLog(now_ns()))
            before = self._websocket
            begun = now_ns()
            try:
                await in_time(super()._ensure_connected(), timeout_s)
            except BaseException as error:
                tap.failed(log, error)
                raise
            log.new_connection = self._websocket is not before
            if log.new_connection:
                log.connect_ns = now_ns() - begun

        async def _ws_send(self, message: dict[str, Any]) -> None:
            if self._log is not None and message.get("type") == "response.create":
                self._log.asked, self._sent = asked_options(message), message
            await super()._ws_send(message)

        async def _ws_recv(self) -> Any:
            log, socket = self._log, self._websocket
            if log is None or socket is None:
                return await super()._ws_recv()
            try:
                event = json.loads(await in_time(socket.recv(), timeout_s))
            except ConnectionClosed as closed:
                if self._sent is None or not await _again(tap, log, ConnectionError(str(closed))):
                    _closed(tap, log, closed)
                    raise
                return await self._sent_again()
            except BaseException as error:
                tap.failed(log, error)
                if isinstance(error, TimeoutError):
                    socket.transport.abort()
                raise
            if field_of(event, "type") == "error" and error_of(event)["code"] in ASKED_AGAIN:
                last = log.attempts[-1]
                last.end_ns, last.status, last.detail = now_ns(), "failed", str(error_of(event)["code"])
                return event
            _take(tap, log, event)
            if log.running or self._sent is None or not await _again(tap, log):
                return event
            return await self._sent_again()

        async def _sent_again(self) -> Any:
            """The first event after the request was sent once more."""
            try:
                await in_time(super()._ensure_connected(), timeout_s)
                await super()._ws_send(self._sent)
            except (OSError, ConnectionClosed) as error:
                if self._log is not None:
                    tap.failed(self._log, error)
                raise
            return await self._ws_recv()

    Tapped.__name__ = Tapped.__qualname__ = service_class.__name__
    return Tapped


def _take(tap: Tap, log: StreamLog, event: Any) -> None:
    """Read an event; the terminal one ends the log, as the socket stays open behind it."""
    tap.read(log, read_responses, event)
    if log.request_id is None:
        told = word_of(field_of(event, "response"), "id")
        log.request_id = redact(told)[:200] if told else None
    if log.terminal and log.running:
        tap.ended(log)


async def _again(tap: Tap, log: StreamLog, error: Exception | None = None) -> bool:
    """Is the request to be sent again, after `error` or an error event? The wait for it is over then."""
    try:
        return await tap.again(log, error)
    except BaseException as cancelled:
        tap.failed(log, cancelled)
        raise


def _closed(tap: Tap, log: StreamLog, closed: Exception) -> None:
    """The socket closed before the terminal event."""
    from websockets.exceptions import ConnectionClosedOK

    if _is_unanswered(closed):
        tap.failed(log, TimeoutError("the endpoint answered no ping"))
    elif isinstance(closed, ConnectionClosedOK) or log.first_token_ns is not None:
        tap.ended(log)
    else:
        tap.failed(log, ConnectionError(str(closed)))


class SocketAsker:
    """Asks over one socket of the SDK, which is opened for the first request and after a broken one.

    A request ends as `timed_out` where the endpoint is silent for as long as its settings allow.
    """

    def __init__(self, client: Any, fields: dict[str, Any], settings: Endpoint, tap: Tap) -> None:
        self._client = client
        self._fields = fields
        self._options = connect_options(settings)
        self._timeout_s = settings.timeout_s
        self._tap = tap
        self._socket: Any = None

    async def ask(self, prompt: str) -> StreamLog:
        """Put `prompt` to the model and read its events to the end; what goes wrong is in the log."""
        request = {**self._fields, "input": [{"role": "user", "content": prompt}]}
        log = self._tap.begin(str(request["model"]), asked_options(request))
        clean = False
        try:
            while log.running:
                await self._exchange(log, {"type": "response.create", **request})
            clean = log.status == "ok"
        except asyncio.CancelledError as error:
            self._tap.failed(log, error)
            raise
        except Exception as error:
            if _is_closed(error):
                _closed(self._tap, log, error)
            else:
                self._tap.failed(log, error)
        finally:
            if not clean:
                await self._drop()
        return log

    async def close(self) -> None:
        """Close the socket and the client."""
        await self._drop()
        await self._client.close()

    async def _exchange(self, log: StreamLog, message: dict[str, Any]) -> None:
        """Send the request and read its events until its end, or until it is to be sent again."""
        try:
            await self._connected(log)
            await in_time(self._socket.send(message), self._timeout_s)
            while log.running:
                event = await in_time(self._socket.recv_bytes(), self._timeout_s)
                _take(self._tap, log, json.loads(event))
        except Exception as error:
            broken = _is_closed(error) or is_broken_connection(error)
            if isinstance(error, TimeoutError):
                self._abort()
            await self._drop()
            if not broken or not await _again(self._tap, log, ConnectionError(str(error))):
                raise
        else:
            await _again(self._tap, log)

    async def _connected(self, log: StreamLog) -> None:
        """Open the socket where there is none, or where the other side has closed it."""
        log.new_connection = False
        if self._socket is not None and _is_open(self._socket):
            return
        await self._drop()
        begun = now_ns()
        manager = self._client.responses.connect(websocket_connection_options=self._options)
        self._socket = await in_time(manager.enter(), self._timeout_s)
        log.new_connection, log.connect_ns = True, now_ns() - begun

    def _abort(self) -> None:
        """Cut the connection, from whose other side no farewell is to be expected."""
        transport = getattr(getattr(self._socket, "_connection", None), "transport", None)
        if transport is not None:
            transport.abort()

    async def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()


def _is_open(socket: Any) -> bool:
    from websockets.protocol import State

    inner = getattr(socket, "_connection", None)
    return getattr(inner, "state", State.OPEN) is State.OPEN


def _is_closed(error: BaseException) -> bool:
    """Did the socket close: as websockets raises it, or as the SDK words it?"""
    from websockets.exceptions import ConnectionClosed

    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, ConnectionClosed):
            return True
        chain = chain.__cause__ or chain.__context__
    return False


def _is_unanswered(error: BaseException) -> bool:
    """Was the socket closed by us, as its other side answered no ping?"""
    sent = getattr(error, "sent", None)
    return getattr(sent, "reason", None) == UNANSWERED


def ask(
    mode: Mode, settings: ResponsesSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Asker:
    """Asks this mode without a pipeline, over a socket of its own."""
    client = endpoint_client(settings, key_for(settings, shared))
    return SocketAsker(client, request_fields(mode, settings, conversation), settings, tap)


WEBSOCKET = Plugin(
    settings=ResponsesSettings,
    build=build,
    needs=needs,
    ask=ask,
    retries=True,
    title="OpenAI's Responses API over a WebSocket",
)
