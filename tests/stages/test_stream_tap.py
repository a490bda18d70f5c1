"""The stream tap: which event moves which mark, and what each way to end a stream means."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from tests.stages.made_streams import chunk, drained, opened, texts, usage_chunk
from voicebench.stages.llm import Tap, classify
from voicebench.stages.llm_openai import _Observed, asked_options, read_chat
from voicebench.turns.stream import StreamStatus

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")


def status_error(status: int, message: str = "no") -> openai.APIStatusError:
    """What the SDK raises for an HTTP error."""
    response = httpx2.Response(status, request=REQUEST)
    kinds = {401: openai.AuthenticationError, 429: openai.RateLimitError}
    kind = kinds.get(status, openai.InternalServerError)
    return kind(message, response=response, body={"message": message})


def error_in_stream(body: dict[str, Any]) -> openai.APIError:
    """What the SDK raises for an error event inside a 200 stream."""
    return openai.APIError(str(body.get("message", "")), REQUEST, body=body)


async def test_a_role_chunk_moves_no_mark() -> None:
    """The preamble that only names the role is neither a token nor text: the marks wait for the text."""
    stream, log = await opened(
        chunk(role="assistant", content=""), chunk(), chunk("Paris"), chunk(finish="stop")
    )
    assert log.request_ns > 0
    for _ in range(2):
        await anext(stream)
        assert log.first_token_ns is None
        assert log.first_text_ns is None
    await anext(stream)
    assert log.first_token_ns == log.first_text_ns
    assert log.first_text_ns is not None
    assert log.first_text_ns >= log.request_ns


async def test_a_usage_chunk_without_choices_is_read_and_moves_no_mark() -> None:
    """The last chunk crashes nothing, adds no delta, and its counts are kept."""
    log = await drained(
        chunk("Paris."),
        chunk(finish="stop"),
        usage_chunk(
            9,
            completion_tokens_details={"reasoning_tokens": 4},
            prompt_tokens_details={"cached_tokens": 16},
        ),
    )
    assert texts(log) == ["Paris."]
    assert log.usage is not None
    assert (log.usage.input_tokens, log.usage.output_tokens) == (20, 9)
    assert (log.usage.reasoning_tokens, log.usage.cache_read_tokens) == (4, 16)
    assert log.usage.visible_tokens == 5
    assert log.status == "ok"
    assert log.last_text_ns == log.first_text_ns


async def test_a_reply_without_any_token_has_no_first_token() -> None:
    """Role, finish and usage alone leave both marks empty, never 0."""
    log = await drained(chunk(role="assistant"), chunk(finish="stop"), usage_chunk(0))
    assert (log.first_token_ns, log.first_text_ns, log.last_text_ns) == (None, None, None)
    assert log.status == "ok"


async def test_white_space_is_a_token_but_no_text() -> None:
    """Blank deltas set the first token; the first text is the first visible character."""
    stream, log = await opened(chunk("\n"), chunk(" "), chunk(" Paris"), chunk(finish="stop"))
    await anext(stream)
    await anext(stream)
    assert log.first_token_ns is not None
    assert log.first_text_ns is None
    await anext(stream)
    assert log.first_text_ns == log.deltas[2][0]
    assert log.text == "\n  Paris"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_sets_the_first_token_only(field: str) -> None:
    """Hidden thinking is a token of some kind, and no text of the answer."""
    thinking: dict[str, Any] = {field: "Hmm."}
    stream, log = await opened(
        chunk(role="assistant"), chunk(**thinking), chunk("Paris"), chunk(finish="stop")
    )
    await anext(stream)
    assert log.first_token_ns is None
    await anext(stream)
    thought = log.first_token_ns
    assert thought is not None
    assert log.first_text_ns is None
    await anext(stream)
    assert log.first_token_ns == thought
    assert log.first_text_ns is not None
    assert texts(log) == ["Paris"]


async def test_a_tool_call_is_counted_once_and_is_no_text() -> None:
    """A call whose arguments come in pieces is one call; two names are two."""

    def call(**function: str) -> Any:
        return chunk(tool_calls=[{"index": 0, "id": "x", "type": "function", "function": function}])

    log = await drained(
        call(name="weather", arguments=""),
        call(arguments='{"city"'),
        call(name="time"),
        chunk(finish="tool_calls"),
    )
    assert log.tool_calls == 2
    assert log.first_token_ns is not None
    assert log.first_text_ns is None
    assert log.finish_reason == "tool_calls"
    assert log.status == "ok"


async def test_a_stream_that_ends_in_mid_answer_is_truncated() -> None:
    """Without a terminal marker a clean end is no success, and what came is kept."""
    log = await drained(chunk("The capital of"), chunk(" France"))
    assert log.status == "truncated"
    assert "terminal marker" in log.detail
    assert log.text == "The capital of France"
    assert log.end_ns is not None


async def test_a_finish_reason_alone_is_complete() -> None:
    """Some servers leave out `[DONE]`: the finish reason is enough."""
    log = await drained(chunk("Paris."), chunk(finish="stop"))
    assert (log.status, log.finish_reason, log.caveats) == ("ok", "stop", [])


async def test_done_without_a_finish_reason_is_complete_with_a_caveat() -> None:
    """The SDK swallows `[DONE]`; the tap sees it all the same, through the SDK's real stream."""
    body = (
        b'data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m",'
        b'"choices":[{"index":0,"delta":{"content":"Paris."},"finish_reason":null}]}\n\n'
    )
    for ending, status, caveats in (
        (b"data: [DONE]\n\n", "ok", ["no_finish_reason"]),
        (b"", "truncated", []),
    ):
        log = await over_http(body + ending)
        assert log.text == "Paris."
        assert (log.status, log.caveats) == (status, caveats)


async def over_http(body: bytes, status: int = 200) -> Any:
    """The log of a request that the real SDK makes of a transport which answers with `body`."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": "text/event-stream"})

    tap = Tap()
    async with openai.AsyncOpenAI(
        api_key="none",
        base_url="http://127.0.0.1:1/v1",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answer)),
    ) as client:
        observed = _Observed(client, tap)
        try:
            stream = await observed.create(model="m", messages=[], stream=True)
            async for _ in stream:
                pass
        except openai.APIError:
            pass
    return tap.streams[0]


async def test_an_error_inside_a_200_stream_is_typed() -> None:
    """Overload told inside a stream that began well is `overloaded`, and the partial text is kept."""
    text = (
        b'data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m",'
        b'"choices":[{"index":0,"delta":{"content":"The"},"finish_reason":null}]}\n\n'
    )
    log = await over_http(text + b'data: {"error":{"message":"busy","type":"overloaded_error"}}\n\n')
    assert log.status == "overloaded"
    assert log.text == "The"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (status_error(429), "rate_limited"),
        (status_error(503), "overloaded"),
        (status_error(529), "overloaded"),
        (status_error(500), "failed"),
        (status_error(401), "failed"),
        (error_in_stream({"message": "Overloaded"}), "overloaded"),
        (error_in_stream({"message": "try later", "type": "overloaded_error"}), "overloaded"),
        (error_in_stream({"message": "try later", "code": "rate_limit_exceeded"}), "rate_limited"),
        (error_in_stream({"message": "try later", "code": 429}), "rate_limited"),
        (error_in_stream({"message": "try later", "error": {"code": 529}}), "overloaded"),
        (error_in_stream({"message": "something else", "type": "server_error"}), "failed"),
        (openai.APITimeoutError(REQUEST), "timed_out"),
        (TimeoutError(), "timed_out"),
        (openai.APIConnectionError(request=REQUEST), "failed"),
        (ConnectionResetError("gone"), "failed"),
        (ValueError("what is this"), "failed"),
        (asyncio.CancelledError(), "cancelled"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{type(value).__name__}: {value}"[:60],
)
def test_an_error_means_one_thing(error: BaseException, status: StreamStatus) -> None:
    """Each error of an SDK has one status, and a detail of one line that names its class."""
    found, detail = classify(error)
    assert found == status
    assert "\n" not in detail
    assert len(detail) <= 300
    assert detail.startswith(type(error).__name__) or status == "cancelled"


@pytest.mark.parametrize("error", [openai.APIConnectionError(request=REQUEST), ConnectionResetError("gone")])
async def test_a_connection_that_breaks_in_mid_answer_truncates_it(error: Exception) -> None:
    """Before the first token a broken connection is a failure; after it the answer is truncated; after the
    terminal marker it is complete."""
    assert (await drained(chunk(role="assistant"), error)).status == "failed"
    broken = await drained(chunk("The capital"), error)
    assert broken.status == "truncated"
    assert type(error).__name__ in broken.detail
    assert broken.text == "The capital"
    assert (await drained(chunk("Paris"), chunk(finish="stop"), error)).status == "ok"


@pytest.mark.parametrize(
    ("error", "status"), [(status_error(429), "rate_limited"), (status_error(500), "failed")]
)
async def test_a_call_that_is_refused_is_a_stream_without_events(error: Exception, status: str) -> None:
    """A request that never got a stream is logged with its end and its reason, and the error goes on."""
    tap = Tap()

    async def create(**_: Any) -> Any:
        raise error

    call = tap.wrap(create, read_chat, asked_options)
    with pytest.raises(type(error)):
        await call(stream=True, model="m")
    [log] = tap.streams
    assert log.status == status
    assert log.end_ns is not None
    assert log.end_ns >= log.request_ns
    assert log.deltas == []
    assert [attempt.status for attempt in log.attempts] == [status]


async def test_a_cancelled_read_is_cancelled() -> None:
    """A reader that is interrupted while it waits leaves a cancelled stream, not a failed one."""
    stream, log = await opened(chunk("The"), 60_000, chunk(" end"))
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in stream:
            begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.status == "cancelled"
    assert log.text == "The"


@pytest.mark.parametrize(
    ("events", "status"),
    [([chunk("The"), chunk(" end")], "cancelled"), ([chunk(finish="stop"), usage_chunk(3)], "ok")],
)
async def test_a_stream_closed_early_was_ended_by_us(events: list[Any], status: str) -> None:
    """Closing before the terminal marker cancels; closing after it leaves a complete answer."""
    stream, log = await opened(*events)
    await anext(stream)
    await stream.aclose()
    await stream.close()
    assert log.status == status
    assert stream._stream.closed


async def test_leaving_the_context_closes_the_connection() -> None:
    """`async with` over a tapped stream ends its log and releases the connection."""
    stream, log = await opened(chunk("The"), chunk(" end"))
    async with stream as events:
        await anext(events)
    assert log.status == "cancelled"
    assert stream._stream.closed


async def test_events_are_handed_on_unchanged() -> None:
    """What reads the tapped stream gets the very events of the SDK, in order, and its other attributes."""
    events = [chunk(role="assistant"), chunk("a"), chunk("b"), chunk(finish="stop"), usage_chunk(2)]
    stream, _ = await opened(*events)
    read = [event async for event in stream]
    assert all(one is other for one, other in zip(read, events, strict=True))
    assert stream.given == len(events)


async def test_an_event_of_an_unknown_shape_is_passed_on_with_a_caveat() -> None:
    """A chunk that lacks everything, or is no chunk at all, ends no reply; it is noted once."""
    sparse = ChatCompletionChunk.construct(id="a", usage={"total_tokens": 3})
    log = await drained({"no": "chunk"}, sparse, chunk("Paris"), chunk(finish="stop"))
    assert (log.status, log.text, log.caveats) == ("ok", "Paris", [])
    assert log.usage is not None
    assert log.usage.output_tokens is None
    odd = ChatCompletionChunk.construct(id="a", choices=["no choice"], usage={"completion_tokens": "many"})
    log = await drained(odd, odd, chunk("Paris"), chunk(finish="stop"))
    assert (log.status, log.text, log.caveats) == ("ok", "Paris", ["event_not_understood"])


async def test_a_request_without_streaming_is_not_tapped() -> None:
    """A call that asks for no stream goes straight through and leaves no log."""
    tap = Tap()

    async def create(**request: Any) -> Any:
        return request

    call = tap.wrap(create, read_chat, asked_options)
    assert await call(model="m") == {"model": "m"}
    assert tap.streams == []


async def test_what_makes_the_mode_is_kept() -> None:
    """Tier, effort and speed are taken from the request and from its extra body; messages are not."""
    _, log = await opened(
        chunk(finish="stop"),
        messages=[{"role": "user", "content": "secret"}],
        service_tier="priority",
        reasoning_effort="low",
        extra_body={"speed": "fast", "other": 1},
        verbosity=None,
    )
    assert log.asked == {"service_tier": "priority", "reasoning_effort": "low", "speed": "fast"}
    assert log.model == "made-1"


async def test_what_was_served_is_kept() -> None:
    """The tier and the model that the provider names stand in the log."""
    first = chunk("Paris")
    first.service_tier = "default"
    log = await drained(first, chunk(finish="stop"))
    assert log.served == {"service_tier": "default", "model": "made-1"}


async def test_a_change_is_told_at_request_first_text_and_end() -> None:
    """Whoever waits is woken when the request goes out, at the first visible text, and at the end."""
    tap = Tap()
    told: list[tuple[int, str]] = []
    tap.on_change = lambda: told.append((len(tap.streams[-1].deltas), tap.streams[-1].status))
    stream, _ = await opened(chunk("\n"), chunk("Paris"), chunk("."), chunk(finish="stop"), tap=tap)
    async for _ in stream:
        pass
    assert told == [(0, "running"), (2, "running"), (3, "ok")]


async def test_a_log_is_closed_once() -> None:
    """What comes after the end changes neither status nor instant."""
    log = await drained(chunk("Paris"), chunk(finish="stop"))
    end = log.end_ns
    log.end(1, "failed", "late")
    assert (log.status, log.end_ns, log.detail) == ("ok", end, "")


async def test_taking_the_streams_leaves_none() -> None:
    """The streams of a turn are taken once; the next turn begins with none."""
    tap = Tap()
    await opened(chunk(finish="stop"), tap=tap)
    assert len(tap.take()) == 1
    assert tap.take() == []
