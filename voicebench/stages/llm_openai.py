"""OpenAI Chat Completions and whatever speaks like it: through pipecat's service, or asked directly. Both
through the stream tap."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import Asker, Tap, saw_reasoning, saw_text, saw_token
from voicebench.stages.llm_ask import StreamAsker
from voicebench.stages.llm_http import client_options
from voicebench.stages.llm_keys import NO_KEY, Endpoint, endpoint_needs, key_for
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


def make_client(base_url: str, key: str, timeout_s: float) -> Any:
    """An SDK client for a server whose key was made for it alone."""
    return endpoint_client(ChatSettings(base_url=base_url, api_key_env="", timeout_s=timeout_s), key)


def endpoint_client(settings: Endpoint, key: str) -> Any:
    """An SDK client without retries of its own: a retry would hide in the latency."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    return AsyncOpenAI(
        base_url=settings.base_url,
        api_key=key or NO_KEY,
        max_retries=0,
        timeout=settings.timeout_s,
        http_client=DefaultAsyncHttpxClient(**client_options(settings)),
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

    return StreamAsker(_Observed(client, tap).create, request, tap, client.close)


class _Observed:
    """The parts of an SDK client that the service calls, with `create` seen by the tap."""

    def __init__(self, client: Any, tap: Tap) -> None:
        self.chat = self
        self.completions = self
        self.create: Callable[..., Any] = tap.wrap(
            client.chat.completions.create, read_chat, asked_options, watch_done
        )


def asked_options(request: dict[str, Any]) -> dict[str, Any]:
    """The request's options that make a mode."""
    flat = {**request, **(request.get("extra_body") or {})}
    return {name: flat[name] for name in MODE_OPTIONS if isinstance(flat.get(name), str | int | float)}


def read_chat(log: StreamLog, chunk: Any, at_ns: int) -> None:
    """Read one chat completion chunk into the log.

    A role chunk and a usage chunk carry no text and move no mark. `finish_reason` is the terminal marker.
    """
    usage = getattr(chunk, "usage", None)
    if usage is not None:
        log.usage = _usage(usage)
    said = {name: getattr(chunk, name, None) for name in ("service_tier", "model")}
    log.served.update((name, value) for name, value in said.items() if value)
    extra = getattr(chunk, "model_extra", None)
    if extra:
        _read_server_times(log, extra)
    for choice in getattr(chunk, "choices", None) or ():
        _read_delta(log, getattr(choice, "delta", None), at_ns)
        finish = getattr(choice, "finish_reason", None)
        if finish:
            log.finish_reason = finish
            log.terminal = True


def _read_delta(log: StreamLog, delta: Any, at_ns: int) -> None:
    """Read what one choice of a chunk adds: reasoning, a tool call, text."""
    extra = getattr(delta, "model_extra", None) or {}
    calls = getattr(delta, "tool_calls", None) or ()
    text = getattr(delta, "content", None)
    if extra.get("reasoning_content") or extra.get("reasoning"):
        saw_reasoning(log, at_ns)
    if calls:
        saw_token(log, at_ns)
        log.tool_calls += sum(1 for call in calls if call.function and call.function.name)
    if text:
        saw_text(log, at_ns, text)


def _read_server_times(log: StreamLog, extra: Mapping[str, Any]) -> None:
    """What the provider says of its own time, as milliseconds."""
    groq = extra.get("x_groq")
    told = extra.get("time_info") or (groq.get("usage") if isinstance(groq, Mapping) else None)
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
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        reasoning_tokens=getattr(completion, "reasoning_tokens", None),
        cache_read_tokens=getattr(prompt, "cached_tokens", None),
    )


CHAT = Plugin(
    settings=ChatSettings,
    build=build_chat,
    needs=chat_needs,
    ask=ask_chat,
    retries=True,
    title="OpenAI Chat Completions or compatible",
)
