"""The small objects that stand in for an SDK's models say what those say, and stand in for nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from voicebench.stages.llm_light import anthropic_text, chat_text, light_events, responses_text

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion with one choice."""
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def test_a_piece_of_chat_text_reads_as_the_sdk_s_model() -> None:
    """What pipecat's service reads of a chunk is the same of both."""
    from openai.types.chat import ChatCompletionChunk

    event = chunk({"content": " Paris"})
    light, model = chat_text(event), ChatCompletionChunk.construct(None, **event)
    assert light is not None
    for one in (light, model):
        assert (one.usage, one.model, len(one.choices)) == (None, "m-1", 1)
        delta = one.choices[0].delta
        assert (delta.content, delta.tool_calls) == (" Paris", None)


@pytest.mark.parametrize(
    "event",
    [
        chunk({"role": "assistant", "content": ""}),
        chunk({}, "stop"),
        chunk({"content": "a"}, "length"),
        chunk({"content": None, "tool_calls": [{"index": 0}]}),
        chunk({"content": "a", "tool_calls": [{"index": 0}]}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "a", "audio": {"transcript": "a"}}),
        chunk({"content": "a"}, usage={"prompt_tokens": 1}),
        chunk(None),
        {**HEAD, "choices": []},
        {**HEAD},
    ],
)
def test_what_is_more_than_text_is_left_to_the_sdk(event: dict[str, Any]) -> None:
    """A role, an end, a tool call, reasoning, audio or usage makes the chunk none of plain text."""
    assert chat_text(event) is None


def test_a_piece_of_anthropic_s_text_has_text_and_nothing_else() -> None:
    """pipecat tells deltas apart by the attributes that they have."""
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    light = anthropic_text(event)
    assert light is not None
    assert (light.type, light.delta.text) == ("content_block_delta", "Hi")
    assert not any(hasattr(light.delta, name) for name in ("partial_json", "thinking", "signature"))
    thinking = {**event, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    assert anthropic_text(thinking) is None
    assert anthropic_text({"type": "message_stop"}) is None


def test_a_piece_of_a_response_s_text_is_of_the_sdk_s_class() -> None:
    """pipecat tells these events apart by their class."""
    from openai.types.responses import ResponseTextDeltaEvent

    event = {"type": "response.output_text.delta", "delta": "Hi", "item_id": "i", "output_index": 0}
    light = responses_text(event)
    assert isinstance(light, ResponseTextDeltaEvent)
    assert (light.delta, light.item_id) == ("Hi", "i")
    assert responses_text({"type": "response.completed", "response": {}}) is None


def test_other_events_become_what_the_sdk_makes_of_them() -> None:
    """The SDK builds its model of every event that is not taken; a stream built otherwise is left alone."""
    built: list[Any] = []

    def build(**given: Any) -> str:
        built.append(given)
        return "a model"

    stream = SimpleNamespace(
        _client=SimpleNamespace(_process_response_data=build), _cast_to=int, response="the response"
    )
    handed_on = light_events(stream, chat_text)
    assert stream._cast_to is object
    assert handed_on(chunk({"content": "a"})).choices[0].delta.content == "a"
    assert handed_on(chunk({}, "stop")) == "a model"
    assert built == [{"data": chunk({}, "stop"), "cast_to": int, "response": "the response"}]
    already = SimpleNamespace(type="x")
    assert handed_on(already) is already
    other = SimpleNamespace()
    assert light_events(other, chat_text)(already) is already
