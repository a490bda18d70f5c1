"""OpenAI's Responses API over a WebSocket: one connection, many responses, one after the other on each
lane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import WSMsgType, web

from voicebench.clock import now_ns
from voicebench.emulator.asked import parse_json
from voicebench.emulator.delivery import Gone, Link, hang, send
from voicebench.emulator.pacing import sleep_until
from voicebench.emulator.problems import Problem, Refused, invalid
from voicebench.emulator.service import Admitted, Service, planted_problem
from voicebench.emulator.staging import PING, PONG, TEXT, websocket_frame
from voicebench.emulator.wire import Event, dumps
from voicebench.emulator.wire_responses import ResponsesWire
from voicebench.emulator.writelog import Record

_MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_MAX_LANES = 16
_WIRE = ResponsesWire(websocket=True)


async def serve_websocket(
    request: web.Request, service: Service, headers: Mapping[str, str]
) -> web.WebSocketResponse:
    """Serve one connection until the client closes it or a fault ends it."""
    socket = web.WebSocketResponse(
        autoping=False, compress=False, max_msg_size=_MAX_MESSAGE_BYTES, timeout=1.0
    )
    await socket.prepare(request)
    if request.transport is not None:
        session = _Session(service, headers, socket, Link(request.transport))
        try:
            await session.receive()
        finally:
            await session.end()
    return socket


class _Session:
    """One connection: a queue of `response.create` messages for each lane (`stream_id`), and what is being
    sent."""

    def __init__(
        self, service: Service, headers: Mapping[str, str], socket: web.WebSocketResponse, link: Link
    ) -> None:
        self._service = service
        self._headers = headers
        self._socket = socket
        self._link = link
        self._lanes: dict[str | None, asyncio.Queue[Mapping[str, Any]]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[str] = set()

    async def receive(self) -> None:
        """Take messages until the connection is closed."""
        async for message in self._socket:
            try:
                if message.type is WSMsgType.PING:
                    await self._link.write((websocket_frame(message.data, PONG),))
                elif message.type is WSMsgType.TEXT:
                    await self._take(parse_json(message.data))
                elif message.type is WSMsgType.BINARY:
                    raise invalid("Send text messages.")
            except Refused as refused:
                await self._refuse(refused.problem, {})
            except Gone:
                return

    async def end(self) -> None:
        """Stop whatever is still being sent."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _take(self, message: Mapping[str, Any]) -> None:
        """Act on one message of the client. Raises `Refused` for one that is not understood."""
        kind = message.get("type")
        if kind == "response.create":
            lane = message.get("stream_id")
            if lane is not None and not isinstance(lane, str):
                raise invalid("stream_id: expected a string", "stream_id")
            if lane not in self._lanes:
                if len(self._lanes) >= _MAX_LANES:
                    raise invalid(f"At most {_MAX_LANES} lanes are served.", "stream_id")
                self._lanes[lane] = asyncio.Queue()
                self._workers.append(asyncio.create_task(self._work(self._lanes[lane])))
            self._lanes[lane].put_nowait(message)
        elif kind == "response.cancel":
            response = str(message.get("response_id"))
            if response in self._sending:
                self._cancelled.add(response)
                self._sending[response].cancel()
        elif kind == "response.steer":
            raise invalid("Steering is not supported.", code="steering_not_supported")
        else:
            raise invalid(f"Unknown message type {kind!r}.", "type", "unknown_event_type")

    async def _work(self, lane: asyncio.Queue[Mapping[str, Any]]) -> None:
        """Answer one lane's requests in their order. A request counts as received when its turn comes."""
        try:
            while True:
                body = await lane.get()
                record = self._service.log.begin(now_ns(), "responses", "websocket")
                record.asked = {"retry_count": None, "key_present": True}
                try:
                    await self._answer(record, body)
                except Refused as refused:
                    record.status = refused.problem.status
                    self._service.log.finish(record, "refused")
                    await self._refuse(refused.problem, body)
                except (Gone, asyncio.CancelledError):
                    self._service.log.finish(record, "client_gone")
                    raise
                except BaseException:
                    self._service.log.finish(record, "failed")
                    raise
        except Gone:
            return

    async def _answer(self, record: Record, body: Mapping[str, Any]) -> None:
        """One response. Raises `Refused` for what is not served."""
        create = {key: value for key, value in body.items() if key != "type"}
        admitted = self._service.admit(record, create, self._headers)
        record.asked["stream"] = True
        fault = admitted.fault
        problem = planted_problem(fault, admitted.reply.asked, record.ordinal)
        if problem is not None:
            await sleep_until(record.received_ns + admitted.reply.plan.headers_ns)
            raise Refused(problem)
        if fault is not None and fault.name == "hang-headers":
            await hang(self._link, b"", 0.0)
        self._service.plan_known(admitted)
        response = f"resp_{admitted.reply.key[:48]}"
        sending = asyncio.create_task(self._send(admitted))
        self._sending[response] = sending
        try:
            await sending
        except asyncio.CancelledError:
            if response not in self._cancelled:
                sending.cancel()
                raise
            self._cancelled.discard(response)
            await self._end_cancelled(admitted)
        finally:
            del self._sending[response]

    async def _send(self, admitted: Admitted) -> None:
        """The events of one response and the ending that its fault plants."""
        record, fault, log = admitted.record, admitted.fault, self._service.log
        staged, parcels = await admitted.packed()
        await send(parcels, self._link, record)
        if staged.ending == "complete":
            self._service.keep(admitted)
        elif staged.ending == "hang":
            ping_ms = fault.values.get("ping_ms", 0.0) if fault else 0.0
            await hang(self._link, websocket_frame(b"", PING), ping_ms)
        log.finish(record, staged.ending)
        if staged.ending == "clean" and staged.events[-1].kind not in ("error", "finish"):
            await self._socket.close()
        self._link.cut(staged.ending)

    async def _end_cancelled(self, admitted: Admitted) -> None:
        """Tell the client that its response has ended, after the last event that went out whole."""
        record = admitted.record
        events = admitted.staged().events[: len(record.events)]
        event = _WIRE.cancelled_event(admitted.reply, events[-1] if events else None)
        await self._link.write((_frame(event),))
        self._service.log.finish(record, "cancelled")

    async def _refuse(self, problem: Problem, body: Mapping[str, Any]) -> None:
        """Send an `error` event, on the lane of the message that caused it."""
        data = _WIRE.problem_body(problem, "")
        if isinstance(body.get("stream_id"), str):
            data["stream_id"] = body["stream_id"]
        await self._link.write((_frame(Event(0, "error", "error", dumps(data))),))


def _frame(event: Event) -> bytes:
    return websocket_frame(event.data.encode(), TEXT)
