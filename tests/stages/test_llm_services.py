"""pipecat's language model services, built by our stages: what they speak, and what the tap saw of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stages.asked import ANSWER, APIS, QUESTION, through_pipecat
from voicebench.emulator.process import EmulatorProcess
from voicebench.plan.modes import Mode
from voicebench.turns.records import Flag
from voicebench.turns.stream_fields import stream_flags

EACH = pytest.mark.parametrize("api", APIS)
SPIDER = "How many legs does a spider have?"


@EACH
async def test_two_turns_are_spoken_and_seen(emulator: EmulatorProcess, api: str) -> None:
    """Each reply goes out as text, and the tap has one complete log of it with the server's counts."""
    spoken = await through_pipecat(emulator, api, prompts=(QUESTION, SPIDER))
    assert spoken.errors == []
    assert spoken.replies == [ANSWER, "A spider has eight legs."]
    assert [log.text for log in spoken.streams] == spoken.replies
    for log in spoken.streams:
        assert log.status == "ok"
        assert log.usage is not None
        assert log.usage.visible_tokens is not None
        assert log.first_text_ns is not None
        assert len(log.attempts) == 1


@EACH
async def test_an_interruption_cancels_the_stream(emulator: EmulatorProcess, api: str) -> None:
    """A reply that is broken off by the person is cancelled, not left open, and the next one is healthy."""
    spoken = await through_pipecat(emulator, api, "slow", prompts=(QUESTION, SPIDER), interrupt_at=3)
    first, second = spoken.streams
    assert first.status == "cancelled"
    assert 0 < len(first.text) < len(ANSWER)
    assert second.status == "ok"
    assert second.text == "A spider has eight legs."


@EACH
@pytest.mark.parametrize(
    ("fault", "status"), [("429", "rate_limited"), ("529", "overloaded"), ("500", "failed")]
)
async def test_a_refusal_is_typed_and_told(
    emulator: EmulatorProcess, api: str, fault: str, status: str
) -> None:
    """A refused request is asked once, reaches the pipeline as an error, and its log says what it was."""
    before = len(emulator.requests())
    spoken = await through_pipecat(emulator, api, f"quick!{fault}")
    assert spoken.replies == [""]
    assert spoken.errors
    assert [log.status for log in spoken.streams] == [status]
    assert len(emulator.requests()) == before + 1


@EACH
async def test_an_early_end_is_truncated(emulator: EmulatorProcess, api: str) -> None:
    """A clean end in mid-answer is seen by the tap, though the SDK says nothing."""
    spoken = await through_pipecat(emulator, api, "quick!no-terminal")
    assert spoken.streams[0].status == "truncated"
    assert spoken.replies == [spoken.streams[0].text]


@EACH
async def test_a_broken_connection_is_asked_for_once(emulator: EmulatorProcess, api: str) -> None:
    """No retry of pipecat's or the SDK's hides in the latency: one request, and the next turn is served."""
    before = len(emulator.requests())
    spoken = await through_pipecat(emulator, api, "quick!drop;after=3", prompts=(QUESTION, QUESTION))
    assert [log.status for log in spoken.streams] == ["truncated", "truncated"]
    assert [len(log.attempts) for log in spoken.streams] == [1, 1]
    assert spoken.replies == ["The capital of", "The capital of"]
    assert len(emulator.requests()) == before + 2


@EACH
async def test_a_token_limit_is_no_error(emulator: EmulatorProcess, api: str) -> None:
    """A reply that reached its limit is spoken, and the pipeline hears of no error."""
    spoken = await through_pipecat(emulator, api, max_tokens=3)
    assert (spoken.replies, spoken.errors) == (["The capital of"], [])
    assert spoken.streams[0].status == "ok"


@EACH
async def test_an_empty_reply_is_no_error(emulator: EmulatorProcess, api: str) -> None:
    """A complete reply without text ends the turn without an error; its log is complete and empty."""
    spoken = await through_pipecat(emulator, api, "quick!empty")
    assert (spoken.replies, spoken.errors) == ([""], [])
    assert (spoken.streams[0].status, spoken.streams[0].text) == ("ok", "")


@EACH
async def test_the_mode_is_asked_for(emulator: EmulatorProcess, api: str) -> None:
    """Speed and tier of a mode go out through pipecat, too, and are kept as asked."""
    options = {"speed": "fast"} if api == "anthropic" else {"service_tier": "priority"}
    spoken = await through_pipecat(emulator, api, "sprinter", options=options)
    asked = emulator.record(emulator.requests()[-1])["asked"]
    for name, value in options.items():
        assert asked[name] == value
        assert spoken.streams[0].asked[name] == value
        assert spoken.streams[0].served[name] == value


async def test_a_request_that_pipecat_repeats_is_one_stream_with_two_attempts(
    emulator: EmulatorProcess,
) -> None:
    """Over the WebSocket pipecat asks again where the server has lost the conversation: the time runs from
    the first attempt, and the second is there to be seen."""

    def forget(service: Any) -> None:
        if service._previous_response_id is not None:
            service._previous_response_id = "resp_lost"

    first = [{"role": "user", "content": QUESTION}]
    spoken = await through_pipecat(
        emulator,
        "openai-responses-ws",
        conversations=(
            first,
            [*first, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": SPIDER}],
        ),
        before_each=forget,
    )
    assert spoken.replies == [ANSWER, "A spider has eight legs."]
    assert spoken.errors == []
    once, again = spoken.streams
    assert [attempt.status for attempt in once.attempts] == ["ok"]
    assert [attempt.status for attempt in again.attempts] == ["failed", "ok"]
    assert again.attempts[0].request_ns == again.request_ns
    assert again.attempts[1].request_ns > again.request_ns
    mode = Mode(id="x/y", kind="live", provider="x", api="openai-responses-ws", model="y")
    assert stream_flags(mode, again, False) == (Flag.RETRIED,)
