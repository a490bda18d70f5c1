"""What a client saw of a reply, read the way the SDKs' users read it, in one form for every protocol."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from voicebench.emulator.process import EmulatorProcess

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris, on the river Seine."
PROTOCOLS = ("anthropic", "chat", "responses")


@dataclass
class Seen:
    """What arrived. `finish` is the protocol's own word; counts are None where the client was told none."""

    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    deltas: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    request: str = ""
    tool: str = ""
    served: str | None = None


def seen_anthropic(events: Iterable[Any], request: str = "") -> Seen:
    """From the events of a Messages stream."""
    seen = Seen(request=request)
    for event in events:
        seen.types.append(event.type)
        if event.type == "message_start":
            seen.input_tokens = event.message.usage.input_tokens
            seen.served = event.message.usage.speed
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            seen.deltas.append(event.delta.text)
        elif event.type == "content_block_delta" and event.delta.type == "thinking_delta":
            seen.reasoning += event.delta.thinking
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            seen.tool += event.delta.partial_json
        elif event.type == "message_delta":
            seen.finish = event.delta.stop_reason
            seen.output_tokens = event.usage.output_tokens
    seen.text = "".join(seen.deltas)
    return seen


def seen_chat(chunks: Iterable[Any], request: str = "") -> Seen:
    """From the chunks of a Chat Completions stream."""
    seen = Seen(request=request)
    for chunk in chunks:
        seen.served = chunk.service_tier
        if chunk.usage is not None:
            seen.input_tokens = chunk.usage.prompt_tokens
            seen.output_tokens = chunk.usage.completion_tokens
        for choice in chunk.choices:
            if choice.delta.content:
                seen.deltas.append(choice.delta.content)
            for call in choice.delta.tool_calls or ():
                seen.tool += call.function.arguments or ""
            seen.finish = choice.finish_reason or seen.finish
    seen.text = "".join(seen.deltas)
    return seen


def seen_responses(events: Iterable[Any], request: str = "") -> Seen:
    """From the events of a Responses stream, over either transport."""
    seen = Seen(request=request)
    for event in events:
        seen.types.append(event.type)
        if event.type == "response.output_text.delta":
            seen.deltas.append(event.delta)
        elif event.type == "response.reasoning_summary_text.delta":
            seen.reasoning += event.delta
        elif event.type == "response.function_call_arguments.delta":
            seen.tool += event.delta
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            seen.finish = event.response.status
            seen.served = event.response.service_tier
            if event.response.usage is not None:
                seen.input_tokens = event.response.usage.input_tokens
                seen.output_tokens = event.response.usage.output_tokens
    seen.text = "".join(seen.deltas)
    return seen


@dataclass(frozen=True)
class Clients:
    """Both vendors' synchronous clients, asked in one form."""

    claude: anthropic.Anthropic
    gpt: openai.OpenAI

    def stream(
        self,
        protocol: str,
        question: str = QUESTION,
        model: str = "quick",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Seen:
        """The whole streamed reply. Raises what the SDK raises."""
        if protocol == "anthropic":
            reply = self.claude.messages.create(
                model=model,
                max_tokens=more.pop("max_tokens", 4000),
                messages=[{"role": "user", "content": question}],
                stream=True,
                extra_headers=headers,
                **more,
            )
            with reply:
                return seen_anthropic(reply, reply.response.headers["request-id"])
        if protocol == "chat":
            chunks = self.gpt.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": question}],
                stream=True,
                stream_options={"include_usage": True},
                extra_headers=headers,
                **more,
            )
            with chunks:
                return seen_chat(chunks, chunks.response.headers["x-request-id"])
        events = self.gpt.responses.create(
            model=model, input=question, stream=True, extra_headers=headers, **more
        )
        with events:
            return seen_responses(events, events.response.headers["x-request-id"])

    def whole(
        self,
        protocol: str,
        question: str = QUESTION,
        model: str = "quick",
        headers: Mapping[str, str] | None = None,
    ) -> Seen:
        """The reply to a request without streaming. Raises what the SDK raises."""
        if protocol == "anthropic":
            message = self.claude.messages.create(
                model=model,
                max_tokens=4000,
                messages=[{"role": "user", "content": question}],
                extra_headers=headers,
            )
            text = "".join(block.text for block in message.content if block.type == "text")
            usage = message.usage
            return Seen(text, "", message.stop_reason, usage.input_tokens, usage.output_tokens)
        if protocol == "chat":
            completion = self.gpt.chat.completions.create(
                model=model, messages=[{"role": "user", "content": question}], extra_headers=headers
            )
            choice = completion.choices[0]
            assert completion.usage is not None
            counts = completion.usage.prompt_tokens, completion.usage.completion_tokens
            return Seen(choice.message.content or "", "", choice.finish_reason, *counts)
        response = self.gpt.responses.create(model=model, input=question, extra_headers=headers)
        assert response.usage is not None
        counts = response.usage.input_tokens, response.usage.output_tokens
        return Seen(response.output_text, "", response.status, *counts)


def text_of(record: Mapping[str, Any]) -> str:
    """The text that a record of the write log says was written."""
    characters = max((event["characters"] for event in record["events"]), default=0)
    return str(record["reply"])[:characters]


def ended(emulator: EmulatorProcess, request: str) -> dict[str, Any]:
    """The record once the emulator has noticed that the client left."""
    give_up = time.monotonic() + 5
    while (record := emulator.record(request))["outcome"] is None:
        assert time.monotonic() < give_up, "the emulator did not notice that the client left"
    return record
