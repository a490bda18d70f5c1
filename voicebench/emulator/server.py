"""The HTTP side of the emulator: routes, keys, Host and Origin checks, and the replies over server-sent
events."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import HttpVersion11, web

from voicebench.clock import now_ns
from voicebench.emulator.asked import Protocol, parse_json
from voicebench.emulator.delivery import Gone, Link, hang, send
from voicebench.emulator.pacing import sleep_until
from voicebench.emulator.problems import Problem, Refused, invalid
from voicebench.emulator.service import WIRES, Admitted, Service, planted_problem
from voicebench.emulator.staging import OVERLOADED, SERVER_ERROR, Parcel, http_chunk, sse
from voicebench.emulator.websocket import serve_websocket
from voicebench.emulator.wire import Event, dumps
from voicebench.emulator.writelog import Record

MAX_BODY_BYTES = 8 * 1024 * 1024
"""The largest request body; a voice turn takes a few kilobytes."""

_NO_KEY = Problem(401, "authentication", "You did not provide an API key.", code="invalid_api_key")
_WRONG_KEY = Problem(401, "authentication", "The API key is invalid.", code="invalid_api_key")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """The routes of one emulator."""

    def __init__(self, service: Service, token: str, key: str | None, allowed_hosts: frozenset[str]) -> None:
        """`token` opens `/emulator/...`; `key` is the only API key that is taken (None: any that is not
        empty); `allowed_hosts` are the Host headers, `name:port` in lower case, that are answered."""
        self._service = service
        self._token = token
        self._key = key
        self._allowed_hosts = allowed_hosts

    def app(self) -> web.Application:
        """The application to serve."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_get("/v1/responses", self._websocket)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{model}", self._model)
        app.router.add_get("/health", self._health)
        app.router.add_get("/emulator/log", self._log)
        app.router.add_get("/emulator/statistics", self._statistics)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer only requests that name this server exactly, so that no web page can reach it by another
        name."""
        hosts = request.headers.getall("Host", [])
        origins = request.headers.getall("Origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._allowed_hosts:
            return _refusal(403, "The Host header does not name this server.")
        if any(origin.lower().removeprefix("http://") not in self._allowed_hosts for origin in origins):
            return _refusal(403, "The Origin header does not name this server.")
        if request.version < HttpVersion11:
            return _refusal(505, "Speak HTTP/1.1: a stream is sent in chunks.")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _refusal(error.status, f"{error.reason} ({request.method} {request.path})")

    def authorise(self, headers: Mapping[str, str]) -> None:
        """Raise `Refused` (401) where the API key is missing or, if one is set, is another one."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        key = (bearer if scheme.lower() == "bearer" else "").strip() or headers.get("x-api-key", "").strip()
        if not key:
            raise Refused(_NO_KEY)
        if self._key is not None and not hmac.compare_digest(key.encode(), self._key.encode()):
            raise Refused(_WRONG_KEY)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "anthropic")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "chat")

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "responses")

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        headers = lowered(request)
        try:
            self.authorise(headers)
            fault = self._service.handshake_fault(headers)
            if fault is not None and fault.name == "401":
                raise Refused(_WRONG_KEY)
        except Refused as refused:
            return _problem_response("responses", refused.problem, "req_handshake")
        if fault is not None and fault.name == "redirect" and "redirected" not in request.query:
            return _redirect(request, fault.texts.get("to"))
        return await serve_websocket(request, self._service, headers)

    async def _serve(self, request: web.Request, protocol: Protocol) -> web.StreamResponse:
        """One request from its body to the end of its reply."""
        headers = lowered(request)
        log = self._service.log
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            problem = Problem(413, "too_large", f"The request is larger than {MAX_BODY_BYTES} bytes.")
            return _problem_response(protocol, problem, "req_too_large")
        record = log.begin(now_ns(), protocol, "http")
        record.asked = {
            "retry_count": headers.get("x-stainless-retry-count"),
            "key_present": bool(headers.get("authorization") or headers.get("x-api-key")),
        }
        try:
            self.authorise(headers)
            if protocol == "anthropic" and "anthropic-version" not in headers:
                raise invalid("anthropic-version: header is required")
            if "redirected" in request.query:
                headers.pop("x-emulate-fault", None)
            admitted = self._service.admit(record, parse_json(raw), headers)
            return await self._answer(request, admitted)
        except Refused as refused:
            record.status = refused.problem.status
            log.finish(record, "refused")
            return _problem_response(protocol, refused.problem, record.request)
        except (Gone, ConnectionError, asyncio.CancelledError):
            log.finish(record, "client_gone")
            raise asyncio.CancelledError from None
        except BaseException:
            log.finish(record, "failed")
            raise

    async def _answer(self, request: web.Request, admitted: Admitted) -> web.StreamResponse:
        """The reply, or the planted problem in its place. Raises `Refused`."""
        record, fault, plan = admitted.record, admitted.fault, admitted.reply.plan
        problem = planted_problem(fault, admitted.reply.asked, record.ordinal)
        if problem is not None:
            await sleep_until(record.received_ns + plan.headers_ns)
            raise Refused(problem)
        if fault is not None and fault.name == "redirect" and "redirected" not in request.query:
            record.status = 307
            self._service.log.finish(record, "complete")
            return _redirect(request, fault.texts.get("to"))
        if fault is not None and fault.name == "hang-headers":
            await hang(_link(request), b"", 0.0)
        self._service.plan_known(admitted)
        if admitted.reply.asked.stream:
            return await self._stream(request, admitted)
        return await self._whole(request, admitted)

    async def _stream(self, request: web.Request, admitted: Admitted) -> web.StreamResponse:
        """The reply as server-sent events."""
        record, log = admitted.record, self._service.log
        staged, parcels = await admitted.packed()
        response = web.StreamResponse(
            headers={
                "content-type": admitted.wire.content_type,
                "cache-control": "no-cache",
                **request_id_headers(admitted.reply.asked.protocol, record.request),
            }
        )
        response.enable_chunked_encoding()
        await _prepare_at(response, request, record, admitted.reply.plan.headers_ns)
        link = _link(request)
        await send(parcels, link, record)
        if staged.ending == "hang":
            ping_ms = admitted.fault.values.get("ping_ms", 0.0) if admitted.fault else 0.0
            await hang(link, http_chunk(sse(admitted.ping())), ping_ms)
        if staged.ending in ("drop", "reset"):
            log.finish(record, staged.ending)
            link.cut(staged.ending)
            return response
        await response.write_eof()
        if staged.ending == "complete":
            self._service.keep(admitted)
        log.finish(record, staged.ending)
        return response

    async def _whole(self, request: web.Request, admitted: Admitted) -> web.StreamResponse:
        """The reply as one JSON body, when its last token is due."""
        record, fault = admitted.record, admitted.fault
        name = fault.name if fault else ""
        reply = admitted.reply
        if name in ("hang-first-text", "hang-mid"):
            await hang(_link(request), b"", 0.0)
        if name in ("error-in-stream", "failed-in-stream", "overloaded-in-stream"):
            await sleep_until(record.received_ns + reply.plan.end_ns)
            raise Refused(OVERLOADED if name == "overloaded-in-stream" else SERVER_ERROR)
        if name == "filtered-in-stream":
            reply = replace(reply, plan=replace(reply.plan, finish="filtered"))
        body = dumps(admitted.wire.body(reply)).encode()
        cut = name in ("no-terminal", "drop", "reset", "half-event")
        usage = reply.plan.usage
        counts = (0, 0, 0) if cut else (usage.output, usage.text, len(reply.plan.reply))
        event = Event(reply.plan.end_ns, "body", "", "", *counts)
        parts: tuple[bytes, ...] = (body[: len(body) // 2] if cut else body,)
        gap_ns = 0
        if fault is not None and name == "drip":
            parts = tuple(body[at : at + 1] for at in range(len(body)))
            gap_ns = round(fault.values["gap_ms"] * 1e6)
        response = web.StreamResponse(
            headers={
                "content-type": "application/json",
                "content-length": str(len(body)),
                **request_id_headers(reply.asked.protocol, record.request),
            }
        )
        await _prepare_at(response, request, record, reply.plan.end_ns)
        link = _link(request)
        await send([Parcel(event, parts, gap_ns)], link, record)
        if cut:
            ending = "reset" if name == "reset" else "drop"
            self._service.log.finish(record, ending)
            link.cut("reset" if name == "reset" else "drop")
            return response
        self._service.keep(admitted)
        self._service.log.finish(record, "complete")
        return response

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return self._listed(request, None)

    async def _model(self, request: web.Request) -> web.StreamResponse:
        return self._listed(request, request.match_info["model"])

    def _listed(self, request: web.Request, model: str | None) -> web.StreamResponse:
        """The models, or one of them, in the shape of the vendor whose headers the request has."""
        headers = lowered(request)
        protocol: Protocol = "anthropic" if "anthropic-version" in headers else "chat"
        try:
            self.authorise(headers)
            names = self._service.catalogue.names()
            if model is not None and model not in names:
                raise Refused(Problem(404, "not_found", f"model: {model}", None, "model_not_found"))
        except Refused as refused:
            return _problem_response(protocol, refused.problem, "req_models")
        if protocol == "anthropic":
            rows = [_anthropic_model(name) for name in names]
            listing: dict[str, Any] = {"has_more": False, "first_id": names[0], "last_id": names[-1]}
        else:
            rows = [{"id": name, "object": "model", "created": 0, "owned_by": "voicebench"} for name in names]
            listing = {"object": "list"}
        if model is not None:
            return _json(rows[names.index(model)])
        return _json({**listing, "data": rows})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return _json({"status": "ok"})

    def _opens(self, request: web.Request) -> bool:
        """Whether the request carries the emulator's own token."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())

    async def _log(self, request: web.Request) -> web.StreamResponse:
        """The record of `?request=ID`, as far as it has come; without it the ids of the kept records."""
        if not self._opens(request):
            return _refusal(401, "The emulator's token is missing or wrong.")
        wanted = request.query.get("request")
        if wanted is None:
            return _json({"requests": self._service.log.requests()})
        record = self._service.log.find(wanted)
        if record is None:
            return _refusal(404, "There is no record of this request.")
        return web.Response(text=await record.render(), content_type="application/json")

    async def _statistics(self, request: web.Request) -> web.StreamResponse:
        if not self._opens(request):
            return _refusal(401, "The emulator's token is missing or wrong.")
        return _json(self._service.log.statistics())


def lowered(request: web.Request) -> dict[str, str]:
    """The request's headers with names in lower case; of a repeated one the first."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers.setdefault(name.lower(), value)
    return headers


def request_id_headers(protocol: Protocol, request_id: str) -> dict[str, str]:
    """The header that carries the request id, by the vendor's name."""
    return {"request-id" if protocol == "anthropic" else "x-request-id": request_id}


async def _prepare_at(
    response: web.StreamResponse, request: web.Request, record: Record, headers_ns: int
) -> None:
    """Send the response's headers at their instant and write it down."""
    due_ns = record.received_ns + headers_ns
    await sleep_until(due_ns)
    before_ns = now_ns()
    await response.prepare(request)
    record.headers = (due_ns, before_ns, now_ns())


def _link(request: web.Request) -> Link:
    if request.transport is None:
        raise Gone
    return Link(request.transport)


def _problem_response(protocol: Protocol, problem: Problem, request_id: str) -> web.Response:
    body = WIRES[protocol, "sse"].problem_body(problem, request_id)
    headers = {**problem.headers, **request_id_headers(protocol, request_id)}
    return web.json_response(body, status=problem.status, headers=headers)


def _redirect(request: web.Request, to: str | None) -> web.Response:
    """307 to `to`, or to this server by its other name; the marker in the query keeps it from going round."""
    if to is None:
        host, _, port = request.host.rpartition(":")
        other = "127.0.0.1" if host == "localhost" else "localhost"
        to = f"http://{other}:{port}{request.path}?redirected=1"
    return web.Response(status=307, headers={"location": to})


def _refusal(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def _json(value: Any) -> web.Response:
    return web.Response(text=json.dumps(value), content_type="application/json")


def _anthropic_model(name: str) -> dict[str, Any]:
    created = "1970-01-01T00:00:00Z"
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": created,
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": 128_000,
    }
