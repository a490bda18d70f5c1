"""The official SDKs, synchronous and not, streaming and not, read whole replies."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from tests.emulator.readers import (
    ANSWER,
    PROTOCOLS,
    QUESTION,
    Clients,
    seen_anthropic,
    seen_chat,
    seen_responses,
    text_of,
)
from voicebench.emulator.process import EmulatorProcess
from voicebench.emulator.tokens import count

FINISHED = {"anthropic": "end_turn", "chat": "stop", "responses": "completed"}
LIMITED = {"anthropic": "max_tokens", "chat": "length", "responses": "incomplete"}
LIMIT_NAME = {"anthropic": "max_tokens", "chat": "max_completion_tokens", "responses": "max_output_tokens"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_streamed_reply_is_whole(clients: Clients, emulator: EmulatorProcess, protocol: str) -> None:
    """Text, finish and token counts of a stream equal those that the emulator wrote down."""
    seen = clients.stream(protocol)
    assert (seen.text, seen.finish) == (ANSWER, FINISHED[protocol])
    assert seen.output_tokens == count(ANSWER) == len(seen.deltas)
    assert seen.input_tokens == count(QUESTION)
    record = emulator.record(seen.request)
    assert record["outcome"] == "complete"
    assert record["usage"]["output"] == seen.output_tokens
    assert record["events"][-1]["tokens"] == seen.output_tokens
    assert text_of(record) == seen.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_without_streaming_is_the_same(clients: Clients, protocol: str) -> None:
    """Without streaming the same question gets the same text, finish and counts."""
    whole, streamed = clients.whole(protocol), clients.stream(protocol)
    assert (whole.text, whole.finish) == (ANSWER, FINISHED[protocol])
    assert (whole.input_tokens, whole.output_tokens) == (streamed.input_tokens, streamed.output_tokens)


async def test_the_asynchronous_anthropic_client(async_claude: anthropic.AsyncAnthropic) -> None:
    """Anthropic's asynchronous client reads a stream and a whole message, through `messages` and `beta`."""
    question: list[anthropic.types.MessageParam] = [{"role": "user", "content": QUESTION}]
    async with await async_claude.messages.create(
        model="quick", max_tokens=100, messages=question, stream=True
    ) as stream:
        seen = seen_anthropic([event async for event in stream])
    assert (seen.text, seen.finish) == (ANSWER, "end_turn")
    message = await async_claude.messages.create(model="quick", max_tokens=100, messages=question)
    assert message.content[0].type == "text"
    assert message.content[0].text == ANSWER
    async with await async_claude.beta.messages.create(
        model="claude-opus-4-6",
        max_tokens=100,
        messages=[{"role": "user", "content": QUESTION}],
        speed="fast",
        betas=["fast-mode-2026-02-01"],
        stream=True,
    ) as beta:
        seen = seen_anthropic([event async for event in beta])
    assert (seen.text, seen.served) == (ANSWER, "fast")


async def test_the_asynchronous_openai_client(async_gpt: openai.AsyncOpenAI) -> None:
    """OpenAI's asynchronous client reads streams and whole replies of both its APIs."""
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    async with await async_gpt.chat.completions.create(
        model="quick", messages=messages, stream=True
    ) as chunks:
        chat = seen_chat([chunk async for chunk in chunks])
    assert (chat.text, chat.finish) == (ANSWER, "stop")
    assert chat.output_tokens is None, "usage comes only where include_usage asks for it"
    completion = await async_gpt.chat.completions.create(model="quick", messages=messages)
    assert completion.choices[0].message.content == ANSWER
    async with await async_gpt.responses.create(model="quick", input=QUESTION, stream=True) as events:
        responses = seen_responses([event async for event in events])
    assert (responses.text, responses.finish) == (ANSWER, "completed")
    assert (await async_gpt.responses.create(model="quick", input=QUESTION)).output_text == ANSWER


async def test_the_asynchronous_websocket(async_gpt: openai.AsyncOpenAI, emulator: EmulatorProcess) -> None:
    """Several responses in a row arrive over one asynchronous WebSocket."""
    async with async_gpt.responses.connect() as connection:
        for question in (QUESTION, "How many legs does a spider have?"):
            await connection.response.create(model="quick", input=question)
            events = []
            async for event in connection:
                events.append(event)
                if event.type == "response.completed":
                    break
            seen = seen_responses(events)
            assert seen.finish == "completed"
            record = emulator.record(emulator.requests()[-1])
            assert (record["transport"], record["usage"]["output"]) == ("websocket", seen.output_tokens)
            assert record["reply"] == seen.text
    assert seen.text == "A spider has eight legs."


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # the SDK's own call of websockets
def test_the_websocket(gpt: openai.OpenAI) -> None:
    """A response arrives over a synchronous WebSocket, numbered from 0 without a gap."""
    with gpt.responses.connect() as connection:
        connection.response.create(model="quick", input=QUESTION)
        events = []
        for event in connection:
            events.append(event)
            if event.type == "response.completed":
                break
    assert seen_responses(events).text == ANSWER
    numbers = [getattr(event, "sequence_number", None) for event in events]
    assert numbers == list(range(len(events)))


def test_the_sdks_own_accumulators(clients: Clients) -> None:
    """The SDKs' helpers that collect a stream accept it and end with the whole reply."""
    with clients.claude.messages.stream(
        model="thinker", max_tokens=100, messages=[{"role": "user", "content": QUESTION}]
    ) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    with clients.gpt.responses.stream(model="thinker", input=QUESTION) as responses:
        response = responses.get_final_response()
    assert response.output_text == ANSWER
    with clients.gpt.chat.completions.stream(
        model="thinker", messages=[{"role": "user", "content": QUESTION}]
    ) as chat:
        assert chat.get_final_completion().choices[0].message.content == ANSWER


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_token_limit_is_kept(clients: Clients, protocol: str) -> None:
    """A limit of tokens cuts the reply there, and the finish says so."""
    limit: dict[str, Any] = {LIMIT_NAME[protocol]: 4}
    seen = clients.stream(protocol, **limit)
    assert seen.text == "The capital of France"
    assert (seen.finish, seen.output_tokens) == (LIMITED[protocol], 4)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_limit_that_reasoning_uses_up_leaves_no_text(clients: Clients, protocol: str) -> None:
    """Reasoning counts against the limit: where it takes all of it, there is no text and no terminal lie."""
    limit: dict[str, Any] = {LIMIT_NAME[protocol]: 10}
    seen = clients.stream(protocol, model="thinker", **limit)
    assert (seen.text, seen.finish, seen.output_tokens) == ("", LIMITED[protocol], 10)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reasoning_is_counted_and_shown_as_the_vendor_shows_it(
    clients: Clients, emulator: EmulatorProcess, protocol: str
) -> None:
    """Reasoning tokens are in the usage; Anthropic shows them, Responses only a summary, Chat nothing."""
    more: dict[str, Any] = {"responses": {"reasoning": {"effort": "low", "summary": "auto"}}}.get(
        protocol, {}
    )
    seen = clients.stream(protocol, model="thinker", **more)
    assert seen.text == ANSWER
    assert seen.output_tokens == count(ANSWER) + 12
    assert bool(seen.reasoning) == (protocol != "chat")
    record = emulator.record(seen.request)
    assert record["usage"]["reasoning"] == 12
    assert record["events"][-1]["tokens"] == seen.output_tokens
    if protocol == "responses":
        assert clients.stream(protocol, model="thinker").reasoning == ""


def test_reasoning_can_be_turned_off(clients: Clients) -> None:
    """A request that disables thinking gets none, and no thinking tokens."""
    seen = clients.stream("anthropic", model="thinker", thinking={"type": "disabled"})
    assert (seen.reasoning, seen.output_tokens) == ("", count(ANSWER))
    chat = clients.stream("chat", model="thinker", reasoning_effort="none")
    assert chat.output_tokens == count(ANSWER)


def test_stop_sequences_end_the_reply(clients: Clients) -> None:
    """Text ends before the first stop sequence; Anthropic names it."""
    chat = clients.stream("chat", stop=[","])
    assert (chat.text, chat.finish) == ("The capital of France is Paris", "stop")
    claude = clients.stream("anthropic", stop_sequences=[" Paris"])
    assert (claude.text, claude.finish) == ("The capital of France is", "stop_sequence")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_answer_is_long(clients: Clients, protocol: str) -> None:
    """A question that asks for it at length gets plain prose of more than 700 tokens."""
    seen = clients.stream(protocol, question="Please tell me at length about anything you like.")
    assert seen.output_tokens is not None
    assert seen.output_tokens >= 700
    assert seen.text.endswith(".")
    assert seen.output_tokens == count(seen.text)


def test_speed_and_tier_are_told_as_served(clients: Clients) -> None:
    """The reply names the speed and tier that were served, also where another one was asked for."""
    model = "claude-opus-4-6"
    assert clients.stream("anthropic", model=model).served == "standard"
    assert clients.stream("anthropic", model=model, speed="fast").served == "fast"
    standard = {"x-emulate-served-speed": "standard"}
    assert clients.stream("anthropic", model=model, speed="fast", headers=standard).served == "standard"
    unserved = {"x-emulate-fault": "asked-not-served"}
    assert clients.stream("anthropic", model=model, speed="fast", headers=unserved).served == "standard"
    for protocol in ("chat", "responses"):
        assert clients.stream(protocol).served == "default"
        assert clients.stream(protocol, service_tier="priority").served == "priority"
        assert clients.stream(protocol, service_tier="fast").served == "priority"
        assert clients.stream(protocol, service_tier="priority", headers=unserved).served == "default"


def test_asked_fast_and_served_standard_is_slow(clients: Clients, emulator: EmulatorProcess) -> None:
    """What is served as standard is paced as standard: the record names that script."""
    fast = clients.stream("anthropic", model="claude-opus-4-6", speed="fast")
    assert emulator.record(fast.request)["script"] == "opus-4.6-fast"
    unserved = {"x-emulate-fault": "asked-not-served"}
    slow = clients.stream("anthropic", model="claude-opus-4-6", speed="fast", headers=unserved)
    assert emulator.record(slow.request)["script"] == "opus-4.6"
    assert emulator.record(slow.request)["asked"]["speed"] == "fast"


def test_cache_counts_come_from_headers(clients: Clients) -> None:
    """Cached prompt tokens are reported as each vendor does: beside the input, or as a part of it."""
    headers = {"x-emulate-cache-read-tokens": "100", "x-emulate-cache-write-tokens": "20"}
    message = clients.claude.messages.create(
        model="quick", max_tokens=50, messages=[{"role": "user", "content": QUESTION}], extra_headers=headers
    )
    assert (message.usage.cache_read_input_tokens, message.usage.cache_creation_input_tokens) == (100, 20)
    assert message.usage.input_tokens == count(QUESTION)
    response = clients.gpt.responses.create(model="quick", input=QUESTION, extra_headers=headers)
    assert response.usage is not None
    assert response.usage.input_tokens == count(QUESTION) + 120
    assert response.usage.input_tokens_details.cached_tokens == 100


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # the SDK's own call of websockets
def test_a_prompt_cache_can_be_warmed(clients: Clients) -> None:
    """Anthropic's max_tokens 0 and the WebSocket's generate false say nothing, and end in order."""
    message = clients.claude.messages.create(
        model="quick", max_tokens=0, messages=[{"role": "user", "content": QUESTION}]
    )
    assert (message.content, message.stop_reason, message.usage.output_tokens) == ([], "max_tokens", 0)
    with clients.gpt.responses.connect() as connection:
        connection.response.create(model="quick", input=QUESTION, generate=False)
        types = []
        for event in connection:
            types.append(event.type)
            if event.type == "response.completed":
                break
    assert types == ["response.created", "response.in_progress", "response.completed"]


def test_models_are_listed_in_each_vendors_shape(clients: Clients) -> None:
    """Both SDKs list the models and retrieve one; an unknown one is not found."""
    assert "claude-opus-4-6" in [model.id for model in clients.claude.models.list()]
    assert clients.claude.models.retrieve("opus-4.6").type == "model"
    assert "gpt-5.3-codex-spark" in [model.id for model in clients.gpt.models.list()]
    assert clients.gpt.models.retrieve("gpt-5.3-codex").object == "model"
    with pytest.raises(openai.NotFoundError):
        clients.gpt.models.retrieve("nobody")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unknown_model_is_not_found(clients: Clients, protocol: str) -> None:
    """A model that nobody serves gets the vendor's own 404."""
    with pytest.raises((anthropic.NotFoundError, openai.NotFoundError)) as caught:
        clients.stream(protocol, model="nobody")
    assert "nobody" in str(caught.value)


def test_a_continued_response_knows_what_came_before(gpt: openai.OpenAI) -> None:
    """previous_response_id counts the earlier turns as input; an unknown one is refused by its code."""
    first = gpt.responses.create(model="quick", input=QUESTION)
    second = gpt.responses.create(model="quick", input="Thanks.", previous_response_id=first.id)
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens + count("Thanks.")
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.responses.create(model="quick", input="Thanks.", previous_response_id="resp_unknown")
    assert caught.value.code == "previous_response_not_found"
    forgotten = gpt.responses.create(model="quick", input="Hello", store=False)
    with pytest.raises(openai.BadRequestError):
        gpt.responses.create(model="quick", input="Thanks.", previous_response_id=forgotten.id)
