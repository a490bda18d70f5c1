"""What Cerebras and Groq say of their own time, and how it comes into a record."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from tests.stages.asked import a_mode
from tests.stages.made_streams import chunk, drained
from voicebench.turns.stream_fields import stream_fields, stream_work_ms


def last_chunk(**extra: Any) -> ChatCompletionChunk:
    """The last chunk as the SDK parses it, with a vendor's own fields beside the counts."""
    usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
    raw: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
    }
    return ChatCompletionChunk.construct(**raw, usage=usage, **extra)


@pytest.mark.parametrize(
    "extra",
    [
        {"time_info": {"queue_time": 0.002, "prompt_time": 0.01, "completion_time": 0.5, "created": 17}},
        {"x_groq": {"usage": {"queue_time": 0.002, "prompt_time": 0.01, "completion_time": 0.5}}},
    ],
)
async def test_a_vendors_own_times_are_kept_in_ms(extra: dict[str, Any]) -> None:
    """Queue, prompt and completion time come into the work of the turn, and not into what was served."""
    log = await drained(chunk("Paris."), chunk(finish="stop"), last_chunk(**extra))
    assert log.server_ms == {"queue": 2.0, "prompt": 10.0, "completion": 500.0}
    assert log.served == {"model": "m"}
    work = stream_work_ms(log)
    assert work["llm_server_queue"] == 2.0
    assert work["llm_total"] >= 0


@pytest.mark.parametrize("extra", [{"time_info": None}, {"x_groq": "id"}, {"time_info": {"queue_time": "?"}}])
async def test_times_of_another_shape_are_passed_over(extra: dict[str, Any]) -> None:
    """A field that is empty or of another kind adds nothing and breaks nothing."""
    log = await drained(chunk("Paris."), chunk(finish="stop"), last_chunk(**extra))
    assert (log.server_ms, log.status, log.caveats) == ({}, "ok", [])


async def test_options_carry_one_name_in_a_record() -> None:
    """What a protocol calls `reasoning_effort` is told as the mode's `effort`."""
    log = await drained(chunk("Paris."), chunk(finish="stop"), last_chunk())
    log.asked = {"reasoning_effort": "low", "service_tier": "fast"}
    fields, estimated = stream_fields(a_mode("openai-chat"), log, log.request_ns, log.request_ns)
    assert fields["asked"] == {"effort": "low", "service_tier": "fast"}
    assert estimated is False
    assert fields["attempts"][0].request_ns == 0
