"""A vendor that repeats the key it was given, wherever it can: in statuses, bodies, headers and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

FAULTS = ("success", "told", "401", "429", "429-again", "500", "in-stream", "garbage", "hang", "crash")
"""What becomes of a request, named as its model; `told` is a success whose reply says the key,
`429-again` is asked a second time."""
OVER = web.AppKey("over", asyncio.Event)
"""Set when the vendor goes: who was left waiting is let go."""

APIS = ("anthropic", "openai-chat", "openai-responses", "openai-responses-ws")


def _key(request: web.Request) -> str:
    given = request.headers.get("x-api-key") or request.headers.get("authorization") or ""
    return str(given).removeprefix("Bearer ")


def events_of(path: str, key: str, fault: str) -> list[bytes]:
    """The events of a reply in the protocol of this path; `in-stream` ends in an error that names the key."""
    reply = f"It is {key}. Really." if fault == "told" else "It is Paris."
    model = f"echo {key}"
    wrong = {"type": "authentication_error", "code": "invalid_api_key", "message": f"bad key {key}"}
    if path.endswith("/messages"):
        usage = {"input_tokens": 3, "output_tokens": 0}
        start = {"id": "m", "type": "message", "role": "assistant", "model": model, "content": []}
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {**start, "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": reply},
            },
        ]
        if fault == "in-stream":
            events.append({"type": "error", "error": wrong})
        else:
            delta = {"stop_reason": "end_turn"}
            events += [
                {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 4}},
                {"type": "message_stop"},
            ]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    if path.endswith("/chat/completions"):
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
        chunks: list[dict[str, object]] = [
            {**base, "choices": [{"index": 0, "delta": {"content": reply}, "finish_reason": None}]}
        ]
        if fault == "in-stream":
            chunks.append({"error": wrong})
        else:
            chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    body = {"id": "r", "object": "response", "model": model, "status": "in_progress", "output": []}
    told: list[dict[str, object]] = [
        {"type": "response.created", "sequence_number": 0, "response": body},
        {
            "type": "response.output_text.delta",
            "sequence_number": 1,
            "item_id": "i",
            "output_index": 0,
            "content_index": 0,
            "delta": reply,
            "logprobs": [],
        },
    ]
    if fault == "in-stream":
        told.append({**wrong, "type": "error", "sequence_number": 2, "error": wrong})
    else:
        told.append(
            {"type": "response.completed", "sequence_number": 2, "response": {**body, "status": "completed"}}
        )
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in told]


async def _answer(request: web.Request) -> web.StreamResponse:
    key = _key(request)
    asked = await request.json()
    fault = str(asked["model"]).removesuffix("-again")
    echo = {"x-request-id": f"req_{key}", "request-id": f"req_{key}", "retry-after": "0"}
    if fault == "hang":
        await request.app[OVER].wait()
    if fault in ("hang", "crash"):
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    if fault in ("401", "429", "500"):
        told = {"type": "error", "error": {"type": "bad", "code": "bad", "message": f"Incorrect key {key}."}}
        return web.json_response(told, status=int(fault), headers=echo)
    answer = web.StreamResponse(headers={"content-type": "text/event-stream", **echo})
    await answer.prepare(request)
    if fault == "garbage":
        await answer.write(f'data: {{"type": "error", "key": "{key}"\n\ndata: {key}\n\n'.encode())
    else:
        for event in events_of(request.path, key, fault):
            await answer.write(event)
    await answer.write_eof()
    return answer


async def _socket(request: web.Request) -> web.StreamResponse:
    key = _key(request)
    socket = web.WebSocketResponse()
    socket.headers["x-request-id"] = key
    await socket.prepare(request)
    async for message in socket:
        fault = str(json.loads(message.data)["model"]).removesuffix("-again")
        if fault == "hang":
            continue
        if fault in ("401", "429", "500"):
            wrong = {"type": "bad", "code": fault, "message": f"Incorrect key {key}."}
            await socket.send_json({"type": "error", "status": int(fault), "error": wrong})
        elif fault == "garbage":
            await socket.send_str(f'{{"type": "error", "key": "{key}"')
            break
        elif fault == "crash":
            await socket.close(code=1011, message=key.encode())
            break
        else:
            for event in events_of("/responses", key, fault):
                await socket.send_str(event.decode().split("data: ", 1)[1].strip())
    await socket.close()
    return socket


@asynccontextmanager
async def vendor() -> AsyncIterator[int]:
    """The vendor's port on this machine."""
    app = web.Application()
    app[OVER] = asyncio.Event()
    app.router.add_post("/{path:.*}", _answer)
    app.router.add_get("/v1/responses", _socket)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        app[OVER].set()
        await runner.cleanup()


def mode_lines(port: int, faults: tuple[str, ...], apis: tuple[str, ...] = APIS) -> str:
    """The modes of a configuration: one for each protocol and fault, the key in CANARY_KEY."""
    rows, ids = [], []
    for api in apis:
        for fault in faults:
            ids.append(f"echo/{api}-{fault}")
            url = f"http://127.0.0.1:{port}" + ("" if api == "anthropic" else "/v1")
            rows.append(
                f"  - {{id: {ids[-1]}, kind: live, provider: echo, api: {api}, model: '{fault}',\n"
                f"     attempts: {2 if fault.endswith('-again') else 1},\n"
                f"     settings: {{base_url: '{url}', api_key_env: CANARY_KEY, timeout_s: 0.4}}}}\n"
            )
    return f"modes: [{', '.join(ids)}]\nown_modes:\n" + "".join(rows)
