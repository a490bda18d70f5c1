"""OpenAI's Chat Completions API on the wire, as Cerebras, Groq and local servers speak it, too."""

from __future__ import annotations

from typing import Any

from voicebench.emulator.problems import Problem
from voicebench.emulator.wire import Event, Reply, Tally, dumps, padding, quote

_ERROR_TYPES = {
    "invalid_request": "invalid_request_error",
    "authentication": "invalid_request_error",
    "permission": "invalid_request_error",
    "not_found": "invalid_request_error",
    "too_large": "invalid_request_error",
    "timeout": "server_error",
    "rate_limit": "rate_limit_exceeded",
    "server": "server_error",
    "unavailable": "service_unavailable_error",
    "overloaded": "service_unavailable_error",
}
_FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "stop_sequence": "stop",
    "tool": "tool_calls",
    "filtered": "content_filter",
}


def problem_fields(problem: Problem) -> dict[str, Any]:
    """The `error` object of OpenAI's APIs."""
    kind = _ERROR_TYPES[problem.kind]
    return {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code}


class ChatWire:
    """`POST /v1/chat/completions`: `data:` lines alone, `[DONE]` at the end."""

    content_type = "text/event-stream; charset=utf-8"

    def events(self, reply: Reply) -> list[Event]:
        """A role chunk, the content chunks, a chunk with finish_reason, usage where asked for, `[DONE]`.

        Reasoning is hidden: it only takes its time, and shows in the usage.
        """
        plan, tally = reply.plan, Tally()
        head, tail, pads = self._frame(reply)
        role = '{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}'
        tally.add(plan.preamble_ns, "preamble", "", f"{head}{role}{tail}}}")
        tally.hide(plan.usage.reasoning)
        for delta, pad in zip(plan.text, pads, strict=True):
            choice = f'{{"index":0,"delta":{{"content":{quote(delta.text)}}},"finish_reason":null}}'
            tally.add(delta.at_ns, "text", "", f"{head}{choice}{tail}{pad}}}", delta)
        if plan.call is not None:
            for position, delta in enumerate(plan.call.arguments):
                function: dict[str, Any] = {"arguments": delta.text}
                call: dict[str, Any] = {"index": 0, "function": function}
                if position == 0:
                    call |= {"id": f"call_{reply.key[:24]}", "type": "function"}
                    function["name"] = plan.call.name
                choice = dumps({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None})
                tally.add(delta.at_ns, "tool", "", f"{head}{choice}{tail}}}", delta)
        self._end(reply, tally, plan.end_ns, _FINISH_REASONS[plan.finish])
        return tally.events

    def body(self, reply: Reply) -> dict[str, Any]:
        """The completion with one choice."""
        plan = reply.plan
        message: dict[str, Any] = {
            "role": "assistant",
            "content": plan.reply,
            "refusal": None,
            "annotations": [],
        }
        if plan.call is not None:
            function = {"name": plan.call.name, "arguments": plan.call.arguments_text}
            message["tool_calls"] = [
                {"id": f"call_{reply.key[:24]}", "type": "function", "function": function}
            ]
            if not plan.text:
                message["content"] = None
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH_REASONS[plan.finish],
        }
        return {
            "id": f"chatcmpl-{reply.key[:29]}",
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [choice],
            "usage": _usage(reply),
            "service_tier": reply.service_tier,
            "system_fingerprint": "fp_emulated",
        }

    def problem_body(self, problem: Problem, request_id: str) -> dict[str, Any]:
        """`{"error": {"message", "type", "param", "code"}}`."""
        return {"error": problem_fields(problem)}

    def problem_events(
        self, reply: Reply, problem: Problem, after: Event | None, failed: bool
    ) -> list[Event]:
        """A `data:` line with an `error` object; nothing follows it."""
        at_ns = after.at_ns if after else reply.plan.preamble_ns
        counts = (after.tokens, after.text_tokens, after.characters) if after else (0, 0, 0)
        return [Event(at_ns, "error", "", dumps(self.problem_body(problem, reply.request_id)), *counts)]

    def filtered_events(self, reply: Reply, kept: list[Event]) -> list[Event]:
        """The end with finish_reason `content_filter`, without usage."""
        tally = Tally()
        self._end(reply, tally, kept[-1].at_ns, _FINISH_REASONS["filtered"], usage=False)
        return tally.events

    def _frame(self, reply: Reply) -> tuple[str, str, list[str]]:
        """What stands before and after each chunk's choice, and each text chunk's obfuscation."""
        options = reply.asked.part("stream_options")
        head = dumps(
            {
                "id": f"chatcmpl-{reply.key[:29]}",
                "object": "chat.completion.chunk",
                "created": reply.created,
                "model": reply.model,
                "service_tier": reply.service_tier,
                "system_fingerprint": "fp_emulated",
            }
        )
        tail = "]" + (',"usage":null' if options.get("include_usage") else "")
        if options.get("include_obfuscation") is False:
            pads = [""] * len(reply.plan.text)
        else:
            pads = [
                f',"obfuscation":"{pad}"'
                for pad in padding(reply.key, (len(delta.text) for delta in reply.plan.text))
            ]
        return f'{head[:-1]},"choices":[', tail, pads

    def _end(self, reply: Reply, tally: Tally, at_ns: int, finish_reason: str, usage: bool = True) -> None:
        head, tail, _ = self._frame(reply)
        choice = f'{{"index":0,"delta":{{}},"finish_reason":"{finish_reason}"}}'
        tally.add(at_ns, "finish", "", f"{head}{choice}{tail}}}")
        if usage and reply.asked.part("stream_options").get("include_usage"):
            tally.add(at_ns, "usage", "", f'{head}],"usage":{dumps(_usage(reply))}}}')
        tally.add(at_ns, "done", "", "[DONE]")


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.plan.usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
