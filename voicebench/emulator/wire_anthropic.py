"""Anthropic's Messages API on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from voicebench.emulator.problems import Problem
from voicebench.emulator.wire import Event, Reply, Tally, dumps, quote

_ERROR_TYPES = {
    "invalid_request": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
    "timeout": "timeout_error",
    "rate_limit": "rate_limit_error",
    "server": "api_error",
    "unavailable": "api_error",
    "overloaded": "overloaded_error",
}
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool": "tool_use",
    "filtered": "refusal",
}


class AnthropicWire:
    """`POST /v1/messages`: every event has its `event:` line, and there is no `[DONE]`."""

    content_type = "text/event-stream; charset=utf-8"

    def events(self, reply: Reply) -> list[Event]:
        """message_start, one block after the other, message_delta, message_stop; a ping after the first
        start."""
        plan, tally = reply.plan, Tally()
        start = dumps(
            {"type": "message_start", "message": _message(reply, [], None, min(1, plan.usage.output))}
        )
        tally.add(plan.preamble_ns, "preamble", "message_start", start)
        index = 0
        if plan.reasoning:
            index = _thinking(reply, tally)
        text = list(plan.text)
        if text:
            at_ns = text[0].at_ns if plan.reasoning else plan.preamble_ns
            _start_block(tally, at_ns, index, {"type": "text", "text": ""})
            if not plan.reasoning:
                tally.add(at_ns, "ping", "ping", '{"type":"ping"}')
            head = f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":'
            for delta in text:
                tally.add(delta.at_ns, "text", "content_block_delta", f"{head}{quote(delta.text)}}}}}", delta)
            _stop_block(tally, text[-1].at_ns, index)
            index += 1
        if plan.call is not None:
            block = {"type": "tool_use", "id": f"toolu_{reply.key[:24]}", "name": plan.call.name, "input": {}}
            _start_block(tally, plan.call.arguments[0].at_ns, index, block)
            head = f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta",'
            for delta in plan.call.arguments:
                data = f'{head}"partial_json":{quote(delta.text)}}}}}'
                tally.add(delta.at_ns, "tool", "content_block_delta", data, delta)
            _stop_block(tally, plan.call.arguments[-1].at_ns, index)
        self._end(reply, tally, plan.end_ns, _STOP_REASONS[plan.finish], plan.usage.output)
        return tally.events

    def body(self, reply: Reply) -> dict[str, Any]:
        """The message with all its blocks."""
        plan = reply.plan
        content: list[dict[str, Any]] = []
        if plan.reasoning:
            thinking = "" if _omits_thinking(reply) else "".join(delta.text for delta in plan.reasoning)
            content.append({"type": "thinking", "thinking": thinking, "signature": _signature(reply)})
        if plan.text:
            content.append({"type": "text", "text": plan.reply})
        if plan.call is not None:
            arguments = json.loads(plan.call.arguments_text)
            content.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{reply.key[:24]}",
                    "name": plan.call.name,
                    "input": arguments,
                }
            )
        return _message(reply, content, _STOP_REASONS[plan.finish], plan.usage.output)

    def problem_body(self, problem: Problem, request_id: str) -> dict[str, Any]:
        """`{"type": "error", "error": {"type", "message"}, "request_id"}`."""
        error = {"type": _ERROR_TYPES[problem.kind], "message": problem.message}
        return {"type": "error", "error": error, "request_id": request_id}

    def problem_events(
        self, reply: Reply, problem: Problem, after: Event | None, failed: bool
    ) -> list[Event]:
        """One `error` event; nothing follows it."""
        data = dumps(self.problem_body(problem, reply.request_id))
        at_ns = after.at_ns if after else reply.plan.preamble_ns
        counts = (after.tokens, after.text_tokens, after.characters) if after else (0, 0, 0)
        return [Event(at_ns, "error", "error", data, *counts)]

    def filtered_events(self, reply: Reply, kept: list[Event]) -> list[Event]:
        """The end with stop_reason `refusal`."""
        last = kept[-1]
        tally = Tally()
        started = sum(event.name == "content_block_start" for event in kept)
        if started > sum(event.name == "content_block_stop" for event in kept):
            _stop_block(tally, last.at_ns, started - 1)
        self._end(reply, tally, last.at_ns, _STOP_REASONS["filtered"], last.tokens)
        return tally.events

    def _end(self, reply: Reply, tally: Tally, at_ns: int, stop_reason: str, output: int) -> None:
        usage = {"output_tokens": output, "output_tokens_details": _details(reply)}
        delta = {"stop_reason": stop_reason, "stop_sequence": reply.plan.stop_sequence}
        data = dumps({"type": "message_delta", "delta": delta, "usage": usage})
        tally.add(at_ns, "finish", "message_delta", data)
        tally.add(at_ns, "done", "message_stop", '{"type":"message_stop"}')


def _message(
    reply: Reply, content: list[dict[str, Any]], stop_reason: str | None, output: int
) -> dict[str, Any]:
    usage = reply.plan.usage
    return {
        "id": f"msg_{reply.key[:24]}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": reply.plan.stop_sequence if stop_reason else None,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": output,
            "output_tokens_details": _details(reply) if stop_reason else None,
            "service_tier": reply.service_tier,
            "speed": reply.speed,
        },
    }


def _details(reply: Reply) -> dict[str, int] | None:
    reasoning = reply.plan.usage.reasoning
    return {"thinking_tokens": reasoning} if reasoning else None


def _thinking(reply: Reply, tally: Tally) -> int:
    """The thinking block; gives the index of the block after it."""
    plan = reply.plan
    _start_block(tally, plan.preamble_ns, 0, {"type": "thinking", "thinking": "", "signature": ""})
    tally.add(plan.preamble_ns, "ping", "ping", '{"type":"ping"}')
    head = '{"type":"content_block_delta","index":0,"delta":{"type":'
    if _omits_thinking(reply):
        tally.hide(plan.usage.reasoning)
    else:
        for delta in plan.reasoning:
            data = f'{head}"thinking_delta","thinking":{quote(delta.text)}}}}}'
            tally.add(delta.at_ns, "reasoning", "content_block_delta", data, delta)
    at_ns = plan.reasoning[-1].at_ns
    data = f'{head}"signature_delta","signature":{quote(_signature(reply))}}}}}'
    tally.add(at_ns, "close", "content_block_delta", data)
    _stop_block(tally, at_ns, 0)
    return 1


def _start_block(tally: Tally, at_ns: int, index: int, block: Mapping[str, Any]) -> None:
    data = dumps({"type": "content_block_start", "index": index, "content_block": block})
    tally.add(at_ns, "preamble", "content_block_start", data)


def _stop_block(tally: Tally, at_ns: int, index: int) -> None:
    tally.add(at_ns, "close", "content_block_stop", f'{{"type":"content_block_stop","index":{index}}}')


def _omits_thinking(reply: Reply) -> bool:
    return reply.asked.part("thinking").get("display") == "omitted"


def _signature(reply: Reply) -> str:
    return f"emulated-{reply.key}"
