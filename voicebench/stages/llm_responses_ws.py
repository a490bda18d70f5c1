"""OpenAI's Responses API over a WebSocket that stays open: through pipecat's service, or asked directly.

pipecat's service speaks to the socket itself, without the SDK. The tap stands where it sends a request and
where it receives an event.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

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
from voicebench.stages.llm_socket import (
    connect_options,
    in_time,
    is_closed,
    is_open,
    is_unanswered,
    socket_address,
    with_status,
)
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.stream import AttemptLog, StreamLog

ASKED_AGAIN = ("previous_response_not_found", "websocket_connection_limit_reached")
"""Errors upon which pipecat's service sends the request again, with the whole conversation."""

DRAIN_S = 1.0
"""So long may a reply that was broken off take to end; after that the socket is given up, as what is left of
the reply would be taken for the next one."""


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
        _refusal: Exception | None = None
        _connect_ns: int | None = None

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

        async def _drain_cancelled_response(self) -> None:
            socket = self._websocket
            try:
                await in_time(super()._drain_cancelled_response(), min(DRAIN_S, timeout_s))
            except TimeoutError:
                if socket is not None:
                    socket.transport.abort()
                await self._disconnect_websocket()

        async def _websocket_connect(self, uri: str, **more: Any) -> Any:
            self._refusal, begun = None, now_ns()
            try:
                opened = await super()._websocket_connect(uri, **options, **more)
            except Exception as error:
                self._refusal = with_status(error)
                raise
            self._connect_ns = now_ns() - begun
            return opened

        async def _try_reconnect(self, *_: Any, **__: Any) -> bool:
            # Once, and at once: what is tried again is the mode's to say, and stands in the log.
            if self._disconnecting or not self._is_service_usable:
                return False
            await self._disconnect_websocket()
            await self._connect_websocket()
            return self._websocket is not None

        async def _ensure_connected(self) -> None:
            log = self._log
            if log is None:
                log = self._log = tap.begin(str(self._settings.model), {})
            else:
                log.attempts.append(AttemptLog(now_ns()))
            before = self._websocket
            await self._connected(log)
            log.new_connection = self._websocket is not before
            if log.new_connection:
                log.connect_ns = self._connect_ns

        async def _connected(self, log: StreamLog) -> None:
            """See that the socket is open. Raises why it could not be opened, which is in the log then."""
            while True:
                try:
                    return await in_time(super()._ensure_connected(), timeout_s)
                except Exception as error:
                    why = error if isinstance(error, TimeoutError) else self._refusal or error
                    if not await _again(tap, log, why):
                        tap.failed(log, why)
                        raise why from None
                except BaseException as cancelled:
                    tap.failed(log, cancelled)
                    raise

        async def _ws_send(self, message: dict[str, Any]) -> None:
            if self._log is not None and message.get("type") == "response.create":
                self._log.asked, self._sent = asked_options(message), message
            await in_time(super()._ws_send(message), timeout_s)

        async def _ws_recv(self) -> Any:
            log, socket = self._log, self._websocket
            if log is None or socket is None:
                return await super()._ws_recv()
            event = None
            while event is None:
                event = await self._event(log, socket)
            return event

        async def _event(self, log: StreamLog, socket: Any) -> Any:
            """The next event; None for one that nothing can be made of."""
            try:
                event = json.loads(await in_time(socket.recv(), timeout_s))
            except ConnectionClosed as closed:
                if self._sent is None or not await _again(tap, log, _why(closed)):
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
            if not _take(tap, log, event):
                return None
            if log.running or self._sent is None or not await _again(tap, log):
                return event
            return await self._sent_again()

        async def _sent_again(self) -> Any:
            """The first event after the request was sent once more."""
            if self._log is not None:
                await self._connected(self._log)
            await in_time(super()._ws_send(self._sent), timeout_s)
            return await self._ws_recv()

    Tapped.__name__ = Tapped.__qualname__ = service_class.__name__
    return Tapped


def _take(tap: Tap, log: StreamLog, event: Any) -> bool:
    """Read an event; the terminal one ends the log, as the socket stays open behind it. Was it understood?"""
    understood = tap.read(log, read_responses, event)
    if log.request_id is None:
        told = word_of(field_of(event, "response"), "id")
        log.request_id = redact(told)[:200] if told else None
    if log.terminal and log.running:
        tap.ended(log)
    return understood


def _why(closed: Exception) -> Exception:
    """What a broken connection is: one whose other side answers no ping has fallen silent."""
    if is_unanswered(closed):
        return TimeoutError("the endpoint answered no ping")
    return ConnectionError(str(closed))


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

    heard = isinstance(closed, ConnectionClosedOK) or log.first_token_ns is not None
    if heard and not is_unanswered(closed):
        tap.ended(log)
    else:
        tap.failed(log, _why(closed))


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
            if is_closed(error):
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
            broken = is_closed(error) or is_broken_connection(error)
            if isinstance(error, TimeoutError):
                self._abort()
            await self._drop()
            if not await _again(self._tap, log, _why(error) if broken else error):
                raise
        else:
            await _again(self._tap, log)

    async def _connected(self, log: StreamLog) -> None:
        """Open the socket where there is none, or where the other side has closed it."""
        log.new_connection = False
        if self._socket is not None and is_open(self._socket):
            return
        await self._drop()
        begun = now_ns()
        manager = self._client.responses.connect(websocket_connection_options=self._options)
        try:
            self._socket = await in_time(manager.enter(), self._timeout_s)
        except Exception as error:
            with_status(error)
            raise
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
