"""Let each SDK build what it builds at its first use, before anything is measured.

The SDKs make their data models when a first answer is parsed: 25 to 350 ms, and for the end of a response
nearly a second, which would stand in the first request's latency. A canned stream through a transport that
opens no connection pays it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

Event = tuple[str, Mapping[str, Any]]
"""Name and data of a server-sent event; an empty name leaves the `event:` line out."""

_USAGE = {"input_tokens": 1, "output_tokens": 1}


def warm(path: str) -> None:
    """Send a canned stream through an SDK's path, once in a process; see `PATHS` for their names.

    It costs up to a second. What goes wrong in it harms nothing: the first request then pays.
    """
    with _lock:
        if path in _warmed:
            return
        _warmed.add(path)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(PATHS[path]())
            except Exception as error:
                errors.append(error)

        # A thread of its own, as the caller may be running an event loop.
        worker = threading.Thread(target=run, name=f"warm-{path}")
        worker.start()
        worker.join()
        failures[path] = errors[0] if errors else None


_lock = threading.Lock()
_warmed: set[str] = set()
failures: dict[str, BaseException | None] = {}
"""What went wrong on each path that was warmed, None where nothing did."""


def _transport(events: Sequence[Event]) -> Any:
    """A transport that answers every request with these events."""
    import httpx2

    body = "".join(
        (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events
    )

    def answer(request: Any) -> Any:
        return httpx2.Response(200, text=body, headers={"content-type": "text/event-stream"})

    return httpx2.MockTransport(answer)


async def _drain(create: Callable[..., Any], **request: Any) -> None:
    stream = await create(**request, stream=True)
    async for _ in stream:
        pass


async def _chat() -> None:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, {"content": "a"}, {}]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
    ]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    events: list[Event] = [("", chunk) for chunk in [*chunks, {**head, "choices": [], "usage": usage}]]
    http = DefaultAsyncHttpxClient(transport=_transport(events))
    async with AsyncOpenAI(base_url="http://warm/v1", api_key="none", max_retries=0, http_client=http) as sdk:
        await _drain(sdk.chat.completions.create, model="m", messages=[{"role": "user", "content": "a"}])


async def _responses() -> None:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    item: dict[str, Any] = {"id": "m", "type": "message", "status": "completed", "role": "assistant"}
    full = {**item, "content": [{**part, "text": "a"}]}
    response = {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed"}
    response |= {"output": [full], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {**_USAGE, "total_tokens": 2, **details}
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    told: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": {**response, "output": []}}),
        ("response.in_progress", {"response": {**response, "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
        ("response.content_part.added", {**place, "part": part}),
        ("response.output_text.delta", {**place, "delta": "a", "logprobs": []}),
        ("response.output_text.done", {**place, "text": "a", "logprobs": []}),
        ("response.content_part.done", {**place, "part": {**part, "text": "a"}}),
        ("response.output_item.done", {"output_index": 0, "item": full}),
        ("response.completed", {"response": {**response, "usage": usage}}),
    ]
    events: list[Event] = [
        (name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in enumerate(told)
    ]
    http = DefaultAsyncHttpxClient(transport=_transport(events))
    async with AsyncOpenAI(base_url="http://warm/v1", api_key="none", max_retries=0, http_client=http) as sdk:
        await _drain(sdk.responses.create, model="m", input=[{"role": "user", "content": "a"}])


def _messages(beta: bool) -> Callable[[], Coroutine[Any, Any, None]]:
    async def run() -> None:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        message: dict[str, Any] = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
        }
        message |= {"stop_reason": None, "stop_sequence": None, "usage": _USAGE}
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        text = {"type": "text", "text": ""}
        told: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": text},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        http = DefaultAsyncHttpxClient(transport=_transport([(event["type"], event) for event in told]))
        async with AsyncAnthropic(
            base_url="http://warm", api_key="none", max_retries=0, http_client=http
        ) as sdk:
            create = sdk.beta.messages.create if beta else sdk.messages.create
            messages = [{"role": "user", "content": "a"}]
            await _drain(create, model="m", max_tokens=1, messages=messages)

    return run


PATHS: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _messages(beta=False),
    "anthropic-beta": _messages(beta=True),
}
"""The paths through the SDKs that measured requests take, by name."""
