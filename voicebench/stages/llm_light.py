"""What pipecat's services are handed of an SDK's stream: a small object for a piece of text, which is nearly
every event, and the SDK's own model for the few others.

A model takes 200 to 330 us of processor time. From about 2000 events a second on, the loop that notes their
arrival would spend its time on building them, and notes them late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voicebench.stages.llm import Opened
from voicebench.stages.llm_ask import without_models
from voicebench.turns.stream import StreamLog

Light = Callable[[Mapping[str, Any]], Any]
"""What a service needs of an event that holds nothing but a piece of text; None for any other event."""


def opening(light: Light, *, plain: bool = False) -> Opened:
    """For `Tap.wrap`: streams that give JSON where they are `plain`, else what pipecat's service reads."""

    def opened(stream: Any, log: StreamLog) -> Callable[[Any], Any] | None:
        if plain:
            without_models(stream)
            return None
        return light_events(stream, light)

    return opened


def light_events(stream: Any, light: Light) -> Callable[[Any], Any]:
    """Let the SDK's stream give plain JSON; gives what makes of an event what the service is handed.

    An event that `light` does not take becomes what the SDK would have made of it. An SDK whose streams are
    built otherwise goes on as it is.
    """
    build = getattr(getattr(stream, "_client", None), "_process_response_data", None)
    cast_to = getattr(stream, "_cast_to", None)
    if build is None or cast_to is None:
        return lambda event: event
    without_models(stream)

    def handed_on(event: Any) -> Any:
        if not isinstance(event, Mapping):
            return event
        found = light(event)
        if found is not None:
            return found
        return build(data=event, cast_to=cast_to, response=stream.response)

    return handed_on


class _ChatDelta:
    __slots__ = ("content",)
    tool_calls = None
    audio = None
    role = None

    def __init__(self, content: str) -> None:
        self.content = content


class _ChatChoice:
    __slots__ = ("delta",)
    finish_reason = None
    index = 0

    def __init__(self, delta: _ChatDelta) -> None:
        self.delta = delta


class ChatText:
    """A chunk of a chat completion that holds a piece of text and nothing else."""

    __slots__ = ("choices", "model")
    usage = None

    def __init__(self, model: Any, text: str) -> None:
        self.model = model
        self.choices = [_ChatChoice(_ChatDelta(text))]


def chat_text(chunk: Mapping[str, Any]) -> ChatText | None:
    """The chunk, where it holds a piece of text and nothing else."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or chunk.get("usage"):
        return None
    delta = choices[0].get("delta")
    if not delta or choices[0].get("finish_reason") or not isinstance(delta.get("content"), str):
        return None
    if not delta["content"] or not delta.keys() <= {"content", "role"}:
        return None
    return ChatText(chunk.get("model"), delta["content"])


class _AnthropicDelta:
    __slots__ = ("text",)
    type = "text_delta"

    def __init__(self, text: str) -> None:
        self.text = text


class AnthropicText:
    """A `content_block_delta` with a piece of text."""

    __slots__ = ("delta", "index")
    type = "content_block_delta"

    def __init__(self, index: Any, text: str) -> None:
        self.index = index
        self.delta = _AnthropicDelta(text)


def anthropic_text(event: Mapping[str, Any]) -> AnthropicText | None:
    """The event, where it is a piece of text."""
    if event.get("type") != "content_block_delta":
        return None
    delta = event.get("delta")
    if not isinstance(delta, Mapping) or delta.get("type") != "text_delta":
        return None
    return AnthropicText(event.get("index"), delta["text"]) if isinstance(delta.get("text"), str) else None


def responses_text(event: Mapping[str, Any]) -> Any:
    """The event as the SDK's class, by which pipecat knows it; None where it is no piece of text."""
    if event.get("type") != "response.output_text.delta" or not isinstance(event.get("delta"), str):
        return None
    from openai.types.responses import ResponseTextDeltaEvent
    from pydantic import BaseModel

    # The SDK's own `construct` looks at each field's type, pydantic's does not.
    construct: Callable[..., Any] = BaseModel.model_construct.__func__  # type: ignore[attr-defined]
    return construct(ResponseTextDeltaEvent, **event)
