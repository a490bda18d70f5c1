"""OpenAI Chat Completions and whatever speaks like it: through pipecat's service, or asked directly. Both
through the stream tap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import Asker, Tap, field_of, saw_reasoning, saw_text, saw_token, word_of
from voicebench.stages.llm_ask import StreamAsker
from voicebench.stages.llm_http import client_options
from voicebench.stages.llm_keys import NO_KEY, Endpoint, endpoint_needs, key_for
from voicebench.stages.llm_light import chat_text, opening
from voicebench.stages.llm_warm import warm
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.records import Usage
from voicebench.turns.stream import StreamLog

MODE_OPTIONS = ("service_tier", "reasoning_effort", "verbosity", "speed")
"""Request options that make a mode, as they are kept in `asked`."""

SERVER_TIMES = {"queue_time": "queue", "prompt_time": "prompt", "completion_time": "completion"}
"""What Cerebras (`time_info`) and Groq (`x_groq.usage`) call their own times, in seconds."""


class ChatSettings(Endpoint):
    """Where the endpoint is, and which variable holds its key."""

    base_url: str = "https://api.openai.com/v1"
    tokens_field: str = "max_completion_tokens"
    """The field that limits the reply: `max_tokens` for servers that know no other."""


def chat_needs(settings: ChatSettings) -> Needs:
    """The key, where the endpoint wants one."""
    return endpoint_needs(settings)


def build_chat(
    mode: Mode, settings: ChatSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """pipecat's OpenAI service for this mode. Its SDK does not retry; connections live through the run."""
    return chat_service(mode, settings, conversation, tap, shared_client(settings, shared))


def shared_client(settings: Endpoint, shared: Shared) -> Any:
    """The run's SDK client for this endpoint."""
    variable = settings.key_variable
    return shared.get(
        ("openai", settings.base_url, variable, settings.timeout_s),
        lambda: endpoint_client(settings, key_for(settings, shared)),
    )


def make_client(base_url: str, key: str, timeout_s: float, kept_s: float | None = None) -> Any:
    """An SDK client for a server whose key was made for it alone; `kept_s` as in `client_options`."""
    return endpoint_client(ChatSettings(base_url=base_url, api_key_env="", timeout_s=timeout_s), key, kept_s)


def endpoint_client(settings: Endpoint, key: str, kept_s: float | None = None) -> Any:
    """An SDK client without retries of its own: a retry would hide in the latency."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    return AsyncOpenAI(
        base_url=settings.base_url,
        api_key=key or NO_KEY,
        max_retries=0,
        timeout=settings.timeout_s,
        http_client=DefaultAsyncHttpxClient(**client_options(settings, kept_s)),
    )


def chat_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """A mode's options as fields of a Chat request."""
    fields = {**options}
    if "effort" in fields:
        fields["reasoning_effort"] = fields.pop("effort")
    return fields


def chat_service(
    mode: Mode, settings: ChatSettings, conversation: Conversation, tap: Tap, client: Any
) -> Any:
    """pipecat's service on a given SDK client, observed by the tap."""
    hush_pipecat()
    from pipecat.services.openai.llm import OpenAILLMService

    warm("chat")
    options: dict[str, Any] = {**chat_fields(mode.options), **settings.extra}
    tier = options.pop("service_tier", None)
    service = OpenAILLMService(
        api_key="unused, the client is replaced",
        service_tier=tier,
        settings=OpenAILLMService.Settings(
            model=settings.model or mode.model,
            system_instruction=conversation.system_prompt,
            extra={**options, settings.tokens_field: conversation.max_tokens},
        ),
    )
    service._client = _Observed(client, tap)
    return service


def ask_chat(
    mode: Mode, settings: ChatSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Asker:
    """Asks this mode without a pipeline, over a connection of its own."""
    client = endpoint_client(settings, key_for(settings, shared))
    return chat_asker(mode, settings, conversation, tap, client)


def chat_asker(
    mode: Mode, settings: ChatSettings, conversation: Conversation, tap: Tap, client: Any
) -> Asker:
    """Asks with a given SDK client, which it closes in the end."""
    warm("chat")
    fields = {
        **chat_fields(mode.options),
        **settings.extra,
        "model": settings.model or mode.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        settings.tokens_field: conversation.max_tokens,
    }

    def request(prompt: str) -> dict[str, Any]:
        system = {"role": "system", "content": conversation.system_prompt}
        return {**fields, "messages": [system, {"role": "user", "content": prompt}]}

    return StreamAsker(_Observed(client, tap, plain=True).create, request, tap, client.close)


class _Observed:
    """The parts of an SDK client that the service calls, with `create` seen by the tap.

    `plain` streams give JSON; others what pipecat's service reads.
    """

    def __init__(self, client: Any, tap: Tap, *, plain: bool = False) -> None:
        self.chat = self
        self.completions = self

        light = opening(chat_text, plain=plain)

        def opened(stream: Any, log: StreamLog) -> Callable[[Any], Any] | None:
            watch_done(stream, log)
            return light(stream, log)

        self.create: Callable[..., Any] = tap.wrap(
            client.chat.completions.create, read_chat, asked_options, opened
        )


def asked_options(request: dict[str, Any]) -> dict[str, Any]:
    """The request's options that make a mode."""
    flat = {**request, **(request.get("extra_body") or {})}
    return {name: flat[name] for name in MODE_OPTIONS if isinstance(flat.get(name), str | int | float)}


def read_chat(log: StreamLog, chunk: Any, at_ns: int) -> None:
    """Read one chat completion chunk into the log, as the SDK parsed it or as plain JSON.

    A role chunk and a usage chunk carry no text and move no mark. `finish_reason` is the terminal marker.
    """
    usage = field_of(chunk, "usage")
    if usage is not None:
        log.usage = _usage(usage)
    said = {name: word_of(chunk, name) for name in ("service_tier", "model")}
    log.served.update((name, value) for name, value in said.items() if value)
    _read_server_times(log, chunk)
    for choice in field_of(chunk, "choices") or ():
        _read_delta(log, field_of(choice, "delta"), at_ns)
        if field_of(choice, "finish_reason"):
            log.finish_reason = word_of(choice, "finish_reason")
            log.terminal = True


def _read_delta(log: StreamLog, delta: Any, at_ns: int) -> None:
    """Read what one choice of a chunk adds: reasoning, a tool call, text."""
    calls = field_of(delta, "tool_calls") or ()
    text = field_of(delta, "content")
    if field_of(delta, "reasoning_content") or field_of(delta, "reasoning"):
        saw_reasoning(log, at_ns)
    if calls:
        saw_token(log, at_ns)
        log.tool_calls += sum(1 for call in calls if field_of(field_of(call, "function"), "name"))
    if text:
        saw_text(log, at_ns, text)


def _read_server_times(log: StreamLog, chunk: Any) -> None:
    """What the provider says of its own time, as milliseconds."""
    told = field_of(chunk, "time_info") or field_of(field_of(chunk, "x_groq"), "usage")
    if not isinstance(told, Mapping):
        return
    for field, name in SERVER_TIMES.items():
        value = told.get(field)
        if isinstance(value, int | float):
            log.server_ms[name] = 1000.0 * value


def watch_done(stream: Any, log: StreamLog) -> None:
    """Note the `[DONE]` that the SDK keeps to itself: it is a terminal marker where no finish_reason came.

    The SDK's stream reads its server-sent events from a method of its own, when iteration begins. Where an
    SDK has no such method, `finish_reason` alone ends a stream.
    """
    events = getattr(stream, "_iter_events", None)
    if events is None:
        return

    async def noted() -> AsyncIterator[Any]:
        async for event in events():
            if event.data.startswith("[DONE]") and not log.terminal:
                log.terminal = True
                log.caveats.append("no_finish_reason")
            yield event

    stream._iter_events = noted


def _usage(usage: Any) -> Usage:
    prompt = field_of(usage, "prompt_tokens_details")
    completion = field_of(usage, "completion_tokens_details")
    return Usage(
        input_tokens=field_of(usage, "prompt_tokens"),
        output_tokens=field_of(usage, "completion_tokens"),
        reasoning_tokens=field_of(completion, "reasoning_tokens"),
        cache_read_tokens=field_of(prompt, "cached_tokens"),
    )


CHAT = Plugin(
    settings=ChatSettings,
    build=build_chat,
    needs=chat_needs,
    ask=ask_chat,
    retries=True,
    title="OpenAI Chat Completions or compatible",
)
