"""OpenAI's Responses API on the wire: the same events over server-sent events and over a WebSocket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voicebench.emulator.problems import Problem
from voicebench.emulator.wire import Event, Kind, Reply, Tally, dumps, padding, quote
from voicebench.emulator.wire_chat import problem_fields

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Fields of a request that come back in the response object, with what stands there if not given."""


class ResponsesWire:
    """`POST /v1/responses`: type and sequence_number in every event, the usage in the last one; no `[DONE]`.

    On a WebSocket an error is nested as the SDK's WebSocket events have it; on server-sent events it is flat.
    """

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, websocket: bool = False) -> None:
        self.websocket = websocket

    def events(self, reply: Reply) -> list[Event]:
        """created, in_progress, the items one after the other, and completed or incomplete."""
        plan, tally = reply.plan, _Numbered(reply)
        opening = _response(reply, "in_progress", [])
        tally.emit(plan.preamble_ns, "preamble", "response.created", {"response": opening})
        tally.emit(plan.preamble_ns, "preamble", "response.in_progress", {"response": opening})
        output: list[dict[str, Any]] = []
        if plan.reasoning:
            output.append(_tell_reasoning(reply, tally))
        if plan.text:
            output.append(_tell_text(reply, tally, len(output)))
        if plan.call is not None:
            output.append(_tell_call(reply, tally, len(output)))
        status = "incomplete" if plan.finish == "length" else "completed"
        response = _response(reply, status, output, reply.plan.usage.output)
        tally.emit(plan.end_ns, "finish", f"response.{status}", {"response": response})
        return tally.events

    def body(self, reply: Reply) -> dict[str, Any]:
        """The response object with all its items."""
        plan = reply.plan
        output: list[dict[str, Any]] = []
        if plan.reasoning:
            output.append(_reasoning_item(reply, "".join(delta.text for delta in plan.reasoning)))
        if plan.text:
            output.append(_message_item(reply, "completed", plan.reply))
        if plan.call is not None:
            output.append(_call_item(reply, "completed", plan.call.arguments_text))
        status = "incomplete" if plan.finish in ("length", "filtered") else "completed"
        response = _response(reply, status, output, plan.usage.output)
        if plan.finish == "filtered":
            response["incomplete_details"] = {"reason": "content_filter"}
        return response

    def problem_body(self, problem: Problem, request_id: str) -> dict[str, Any]:
        """`{"error": ...}`; on a WebSocket an event of type `error` with the status beside it."""
        if not self.websocket:
            return {"error": problem_fields(problem)}
        error = {**problem_fields(problem), "headers": dict(problem.headers) or None}
        return {"type": "error", "status": problem.status, "error": error}

    def problem_events(
        self, reply: Reply, problem: Problem, after: Event | None, failed: bool
    ) -> list[Event]:
        """An `error` event, or `response.failed`; nothing follows it."""
        at_ns = after.at_ns if after else reply.plan.preamble_ns
        counts = (after.tokens, after.text_tokens, after.characters) if after else (0, 0, 0)
        fields = problem_fields(problem)
        data: dict[str, Any]
        if failed:
            code = "rate_limit_exceeded" if problem.kind == "rate_limit" else "server_error"
            response = _response(reply, "failed", [])
            response["error"] = {"code": code, "message": problem.message}
            name, data = "response.failed", {"response": response}
        elif self.websocket:
            name, data = "error", {"status": problem.status, "error": fields}
        else:
            name = "error"
            data = {
                "code": fields["code"] or fields["type"],
                "message": problem.message,
                "param": problem.param,
            }
        return [Event(at_ns, "error", name, _numbered(reply, name, _next_number(after), data), *counts)]

    def filtered_events(self, reply: Reply, kept: list[Event]) -> list[Event]:
        """`response.incomplete` for the reason `content_filter`."""
        last = kept[-1]
        text = reply.plan.reply[: last.characters]
        output = [_message_item(reply, "incomplete", text)] if text else []
        response = _response(reply, "incomplete", output, last.tokens)
        response["incomplete_details"] = {"reason": "content_filter"}
        data = _numbered(reply, "response.incomplete", _next_number(last), {"response": response})
        counts = (last.tokens, last.text_tokens, last.characters)
        return [Event(last.at_ns, "finish", "response.incomplete", data, *counts)]

    def cancelled_event(self, reply: Reply, after: Event | None) -> Event:
        """The end of a response that the client cancelled on its WebSocket."""
        at_ns = after.at_ns if after else 0
        counts = (after.tokens, after.text_tokens, after.characters) if after else (0, 0, 0)
        response = _response(reply, "cancelled", [], counts[0])
        data = _numbered(reply, "response.incomplete", _next_number(after), {"response": response})
        return Event(at_ns, "finish", "response.incomplete", data, *counts)


class _Numbered(Tally):
    """Events with a type, a running sequence_number and, on a WebSocket lane, its stream_id."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply

    def emit(self, at_ns: int, kind: Kind, name: str, data: Mapping[str, Any]) -> None:
        self.add(at_ns, kind, name, _numbered(self._reply, name, len(self.events), data))


def _numbered(reply: Reply, name: str, number: int, data: Mapping[str, Any]) -> str:
    return dumps({"type": name, "sequence_number": number, **data, **_lane(reply)})


def _lane(reply: Reply) -> dict[str, Any]:
    stream_id = reply.asked.body.get("stream_id")
    return {"stream_id": stream_id} if isinstance(stream_id, str) else {}


def _next_number(after: Event | None) -> int:
    """The sequence_number behind an event's own, read from its data's fixed beginning."""
    if after is None:
        return 0
    return int(after.data.split('"sequence_number":', 1)[1].split(",", 1)[0].rstrip("}")) + 1


def _tell_reasoning(reply: Reply, tally: _Numbered) -> dict[str, Any]:
    """The reasoning item, with a summary where one was asked for."""
    plan = reply.plan
    item_id = f"rs_{reply.key[:32]}"
    start_ns, end_ns = plan.reasoning[0].at_ns, plan.reasoning[-1].at_ns
    text = "".join(delta.text for delta in plan.reasoning)
    item = _reasoning_item(reply, text)
    added = {"output_index": 0, "item": {"id": item_id, "type": "reasoning", "summary": []}}
    tally.emit(start_ns, "preamble", "response.output_item.added", added)
    place = {"item_id": item_id, "output_index": 0, "summary_index": 0}
    summed = bool(item["summary"])
    if summed:
        part = {**place, "part": {"type": "summary_text", "text": ""}}
        tally.emit(start_ns, "preamble", "response.reasoning_summary_part.added", part)
    else:
        tally.hide(plan.usage.reasoning)
    for delta in plan.reasoning if summed else ():
        name = "response.reasoning_summary_text.delta"
        data = _numbered(reply, name, len(tally.events), {**place, "delta": delta.text})
        tally.add(delta.at_ns, "reasoning", name, data, delta)
    if summed:
        tally.emit(end_ns, "close", "response.reasoning_summary_text.done", {**place, "text": text})
        part = {**place, "part": {"type": "summary_text", "text": text}}
        tally.emit(end_ns, "close", "response.reasoning_summary_part.done", part)
    tally.emit(end_ns, "close", "response.output_item.done", {"output_index": 0, "item": item})
    return item


def _tell_text(reply: Reply, tally: _Numbered, output_index: int) -> dict[str, Any]:
    """The message item with its one part of text."""
    plan = reply.plan
    item_id = f"msg_{reply.key[:32]}"
    start_ns = plan.text[0].at_ns if plan.reasoning else plan.preamble_ns
    end_ns = plan.text[-1].at_ns
    added = {"output_index": output_index, "item": _message_item(reply, "in_progress", None)}
    tally.emit(start_ns, "preamble", "response.output_item.added", added)
    place = {"item_id": item_id, "output_index": output_index, "content_index": 0}
    tally.emit(start_ns, "preamble", "response.content_part.added", {**place, "part": _part("")})
    if reply.asked.part("stream_options").get("include_obfuscation") is False:
        pads = [""] * len(plan.text)
    else:
        lengths = (len(delta.text) for delta in plan.text)
        pads = [f',"obfuscation":"{pad}"' for pad in padding(reply.key, lengths)]
    name = "response.output_text.delta"
    tail = f',"logprobs":[],{dumps({**place, **_lane(reply)})[1:-1]}'
    for delta, pad in zip(plan.text, pads, strict=True):
        number = len(tally.events)
        head = f'{{"type":"{name}","sequence_number":{number},"delta":{quote(delta.text)}'
        tally.add(delta.at_ns, "text", name, f"{head}{tail}{pad}}}", delta)
    done = {**place, "text": plan.reply, "logprobs": []}
    tally.emit(end_ns, "close", "response.output_text.done", done)
    tally.emit(end_ns, "close", "response.content_part.done", {**place, "part": _part(plan.reply)})
    status = "incomplete" if plan.finish == "length" else "completed"
    item = _message_item(reply, status, plan.reply)
    tally.emit(end_ns, "close", "response.output_item.done", {"output_index": output_index, "item": item})
    return item


def _tell_call(reply: Reply, tally: _Numbered, output_index: int) -> dict[str, Any]:
    """The function call item."""
    call = reply.plan.call
    assert call is not None
    start_ns, end_ns = call.arguments[0].at_ns, call.arguments[-1].at_ns
    added = {"output_index": output_index, "item": _call_item(reply, "in_progress", "")}
    tally.emit(start_ns, "preamble", "response.output_item.added", added)
    place = {"item_id": f"fc_{reply.key[:32]}", "output_index": output_index}
    for delta in call.arguments:
        name = "response.function_call_arguments.delta"
        data = _numbered(reply, name, len(tally.events), {**place, "delta": delta.text})
        tally.add(delta.at_ns, "tool", name, data, delta)
    done = {**place, "name": call.name, "arguments": call.arguments_text}
    tally.emit(end_ns, "close", "response.function_call_arguments.done", done)
    item = _call_item(reply, "completed", call.arguments_text)
    tally.emit(end_ns, "close", "response.output_item.done", {"output_index": output_index, "item": item})
    return item


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message_item(reply: Reply, status: str, text: str | None) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.key[:32]}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [] if text is None else [_part(text)],
    }


def _reasoning_item(reply: Reply, text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if reply.asked.part("reasoning").get("summary") else []
    item: dict[str, Any] = {"id": f"rs_{reply.key[:32]}", "type": "reasoning", "summary": summary}
    if "reasoning.encrypted_content" in (reply.asked.body.get("include") or ()):
        item["encrypted_content"] = f"emulated-{reply.key}"
    return item


def _call_item(reply: Reply, status: str, arguments: str) -> dict[str, Any]:
    call = reply.plan.call
    assert call is not None
    return {
        "id": f"fc_{reply.key[:32]}",
        "type": "function_call",
        "status": status,
        "arguments": arguments,
        "call_id": f"call_{reply.key[:24]}",
        "name": call.name,
    }


def _response(
    reply: Reply, status: str, output: list[dict[str, Any]], output_tokens: int | None = None
) -> dict[str, Any]:
    body = reply.asked.body
    over = status in ("completed", "incomplete")
    return {
        "id": f"resp_{reply.key[:48]}",
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "completed_at": reply.created if status == "completed" else None,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": reply.model,
        "output": output,
        "reasoning": {"effort": None, "summary": None, **reply.asked.part("reasoning")},
        "service_tier": reply.service_tier if over else body.get("service_tier") or "auto",
        "text": {"format": {"type": "text"}, "verbosity": "medium", **reply.asked.part("text")},
        "usage": None if output_tokens is None else _usage(reply, output_tokens),
        **{name: body[name] if body.get(name) is not None else default for name, default in _ECHOED.items()},
    }


def _usage(reply: Reply, output_tokens: int) -> dict[str, Any]:
    usage = reply.plan.usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": min(usage.reasoning, output_tokens)},
        "total_tokens": prompt + output_tokens,
    }
