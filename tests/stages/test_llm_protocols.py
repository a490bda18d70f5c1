"""Every protocol, asked directly: marks, text, counts, and one status for each way to go wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stages.asked import ANSWER, APIS, QUESTION, asked
from voicebench.emulator.process import EmulatorProcess
from voicebench.turns.stream import StreamLog

EACH = pytest.mark.parametrize("api", APIS)


async def one(emulator: EmulatorProcess, api: str, model: str = "quick", **more: Any) -> StreamLog:
    """The log of one request."""
    return (await asked(emulator, api, model, **more))[0]


@EACH
async def test_a_complete_reply(emulator: EmulatorProcess, api: str) -> None:
    """Text, usage, model and end of a plain reply are what the server sent, and it was the first attempt."""
    log = await one(emulator, api)
    assert (log.text, log.status, log.detail, log.caveats) == (ANSWER, "ok", "", [])
    assert log.terminal
    assert log.finish_reason in ("end_turn", "stop", "completed")
    assert log.usage is not None
    assert (log.usage.output_tokens, log.usage.visible_tokens) == (12, 12)
    assert log.usage.input_tokens is not None
    assert log.usage.input_tokens > 5
    assert log.served["model"] == "quick"
    assert [attempt.status for attempt in log.attempts] == ["ok"]


@EACH
async def test_marks_wait_for_text_not_for_the_opening(emulator: EmulatorProcess, api: str) -> None:
    """With headers at 20, opening events at 40 and text at 150 ms, both first marks come at 150 ms: on a new
    connection and, as a request of its own, on the same one again."""
    first, second = await asked(emulator, api, "steady", prompts=(QUESTION, QUESTION))
    assert (first.new_connection, second.new_connection) == (True, False)
    assert first.end_ns is not None
    assert second.request_ns >= first.end_ns
    for log in (first, second):
        assert log.first_text_ns is not None
        assert log.first_token_ns == log.first_text_ns
        assert log.first_text_ns - log.request_ns >= 150e6
        assert log.end_ns is not None
        assert log.end_ns >= log.first_text_ns


@EACH
async def test_reasoning_is_not_the_answer(emulator: EmulatorProcess, api: str) -> None:
    """Reasoning that is shown sets the first token alone; reasoning that is hidden leaves it empty, told."""
    options: dict[str, Any] = {"reasoning": {"summary": "auto"}} if "responses" in api else {}
    shown = await one(emulator, api, "thinker", options=options)
    assert shown.usage is not None
    assert shown.usage.reasoning_tokens == 12
    assert shown.usage.visible_tokens == 12
    assert shown.text == ANSWER
    assert shown.first_text_ns is not None
    if api == "openai-chat":
        # Nothing of the reasoning comes over this API.
        hidden = shown
    else:
        assert shown.first_token_ns is not None
        assert shown.first_text_ns - shown.first_token_ns >= 20e6
        quiet: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "omitted"}}
        hidden = await one(emulator, api, "thinker", options=quiet if api == "anthropic" else {})
    assert hidden.first_token_ns is None
    assert hidden.first_text_ns is not None
    assert "hidden_reasoning" in hidden.caveats


@EACH
async def test_cached_prompt_tokens_are_input_tokens(emulator: EmulatorProcess, api: str) -> None:
    """Input counts every prompt token, whether the provider counts cached ones apart or not."""
    log = await one(emulator, api, "cached")
    record = emulator.record(log.request_id) if log.request_id in emulator.requests() else None
    assert log.usage is not None
    assert log.usage.cache_read_tokens == 40
    if record is not None:
        sent = record["usage"]
        assert log.usage.input_tokens == sent["input"] + sent["cache_read"] + sent["cache_write"]
    if api != "openai-chat":
        assert log.usage.cache_write_tokens == 7


FAULTS = {
    "429": "rate_limited",
    "503": "overloaded",
    "529": "overloaded",
    "500": "failed",
    "401": "failed",
    "404": "failed",
    "error-in-stream": "failed",
    "overloaded-in-stream": "overloaded",
    "failed-in-stream": "failed",
    "no-terminal": "truncated",
    "drop": "truncated",
    "reset": "truncated",
    "half-event": "truncated",
    "drop;after=0": "failed",
    "done-without-finish": "ok",
    "finish-without-done": "ok",
    "filtered-in-stream": "ok",
    "empty": "ok",
    "blank-only": "ok",
    "tool-call": "ok",
    "text-then-tool-call": "ok",
    "utf8-split": "ok",
    "crlf": "ok",
    "comments": "ok",
}
"""What each fault makes of a stream, over every protocol alike, but for those in `OTHERWISE`."""

OTHERWISE = {
    ("done-without-finish", "openai-responses"): "truncated",
    ("done-without-finish", "openai-responses-ws"): "truncated",
}
"""The Responses API has one terminal event, so nothing else can stand for it."""


@EACH
@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_has_one_status(emulator: EmulatorProcess, api: str, fault: str) -> None:
    """A refusal, an error in a 200 stream, a broken connection and an early end are told apart everywhere."""
    log = await one(emulator, api, f"quick!{fault}")
    assert log.status == OTHERWISE.get((fault, api), FAULTS[fault])
    assert log.end_ns is not None
    assert [attempt.status for attempt in log.attempts] == [log.status]
    if log.status != "ok":
        assert log.detail
        assert "\n" not in log.detail
    if fault in ("no-terminal", "drop", "reset", "error-in-stream", "overloaded-in-stream"):
        assert ANSWER.startswith(log.text)
        assert 0 < len(log.text) < len(ANSWER)
        assert log.usage is None or log.usage.output_tokens is None
    if fault in ("utf8-split", "crlf", "comments"):
        assert log.text
    if fault in ("done-without-finish", "finish-without-done"):
        # The first is complete by its marker alone, which is told; the second by its reason, which is enough.
        unmarked = fault == "done-without-finish" and log.status == "ok"
        assert ("no_finish_reason" in log.caveats) is unmarked
        assert (log.finish_reason is None) is (fault == "done-without-finish")


@EACH
async def test_a_refusal_says_when_to_come_back(emulator: EmulatorProcess, api: str) -> None:
    """The detail of a 429 names its cause, over HTTP with the seconds to wait."""
    log = await one(emulator, api, "quick!429;retry_after=7")
    assert log.status == "rate_limited"
    if api != "openai-responses-ws":
        assert "retry after 7 s" in log.detail
        assert log.request_id is not None


@EACH
async def test_the_next_request_after_a_fault_is_healthy(emulator: EmulatorProcess, api: str) -> None:
    """A broken stream takes its connection along, and the next request is served over a new one."""
    plain, dropped = await asked(emulator, api, "quick", prompts=(QUESTION, QUESTION))
    assert (plain.new_connection, dropped.new_connection) == (True, False)
    assert plain.connect_ns is not None
    assert plain.connect_ns > 0
    assert dropped.connect_ns is None
    broken, healthy = await asked(
        emulator, api, "quick!drop;after=3", prompts=(QUESTION, QUESTION), max_tokens=400
    )
    assert (broken.status, healthy.status) == ("truncated", "truncated")
    assert healthy.new_connection is True


@EACH
async def test_what_ends_in_nothing_or_in_a_tool_call(emulator: EmulatorProcess, api: str) -> None:
    """An empty reply has no marks; a tool call is counted and is no text; white space is no text either."""
    empty = await one(emulator, api, "quick!empty")
    assert (empty.text, empty.first_token_ns, empty.first_text_ns, empty.tool_calls) == ("", None, None, 0)
    blank = await one(emulator, api, "quick!blank-only")
    assert blank.deltas
    assert blank.first_text_ns is None
    call = await one(emulator, api, "quick!tool-call")
    assert (call.text, call.tool_calls) == ("", 1)
    assert call.first_token_ns is not None
    both = await one(emulator, api, "quick!text-then-tool-call")
    assert (both.text, both.tool_calls) == (ANSWER, 1)


@EACH
async def test_a_token_limit_is_a_complete_reply(emulator: EmulatorProcess, api: str) -> None:
    """A reply that was cut by the limit ended properly, and its reason says so."""
    log = await one(emulator, api, max_tokens=3)
    assert (log.status, log.text) == ("ok", "The capital of")
    assert log.finish_reason in ("max_tokens", "length", "max_output_tokens")


@EACH
async def test_the_asked_options_reach_the_server(emulator: EmulatorProcess, api: str) -> None:
    """A mode's speed, tier and effort are in the request and are kept as asked; what was served is kept."""
    options: dict[str, Any] = (
        {"speed": "fast", "thinking": "disabled"}
        if api == "anthropic"
        else {"service_tier": "priority", "effort": "none"}
    )
    log = await one(emulator, api, "sprinter", options=options)
    assert log.status == "ok"
    record = emulator.record(emulator.requests()[-1])
    assert record["asked"]["thinking"] is False
    if api == "anthropic":
        assert record["asked"]["speed"] == "fast"
        assert log.asked == {"speed": "fast", "thinking": "disabled"}
        assert log.served["speed"] == "fast"
    else:
        assert record["asked"]["service_tier"] == "priority"
        assert log.asked["service_tier"] == "priority"
        assert "none" in log.asked.values()
        assert log.served["service_tier"] == "priority"


@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "openai-responses"])
async def test_a_redirect_is_not_followed(emulator: EmulatorProcess, api: str) -> None:
    """The key stays with the address that it was meant for: a redirect ends the request."""
    before = len(emulator.requests())
    log = await one(emulator, api, "quick!redirect")
    assert log.status == "failed"
    seen = [emulator.record(request) for request in emulator.requests()[before:]]
    assert [record["status"] for record in seen] == [307]


@EACH
async def test_an_endpoint_that_is_not_there(api: str, emulator: EmulatorProcess) -> None:
    """A refused connection is a failed request with the system's own words, not an exception."""

    class Nowhere:
        port = 9

    log = (await asked(Nowhere(), api))[0]  # type: ignore[arg-type] # only the port is looked at
    assert log.status == "failed"
    assert "onnect" in log.detail
    assert log.first_token_ns is None
