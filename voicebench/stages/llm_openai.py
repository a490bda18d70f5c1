"""OpenAI Chat Completions and whatever speaks like it, through pipecat's service and the stream tap."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from voicebench.plan.config import Conversation, Settings
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import Tap
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.records import Usage
from voicebench.turns.stream import StreamLog

MODE_OPTIONS = ("service_tier", "reasoning_effort", "verbosity", "speed")
"""Request options that make a mode, as they are kept in `asked`."""


class ChatSettings(Settings):
    """Where the endpoint is, and which variable holds its key."""

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str | None = None
    """None: OPENAI_API_KEY for OpenAI's own address, no key for one on this machine."""
    timeout_s: float = Field(60.0, gt=0)
    extra: dict[str, Any] = Field(default_factory=dict)
    """More request fields, as the SDK's `create` takes them."""
    tokens_field: str = "max_completion_tokens"
    """The field that limits the reply: `max_tokens` for servers that know no other."""


def key_variable(settings: ChatSettings) -> str | None:
    """The environment variable that holds the key, None where the endpoint is on this machine."""
    if settings.api_key_env is not None:
        return settings.api_key_env
    host = urlsplit(settings.base_url).hostname or ""
    if host in ("127.0.0.1", "localhost", "::1"):
        return None
    return "OPENAI_API_KEY"


def chat_needs(settings: ChatSettings) -> Needs:
    """The key, unless the endpoint is on this machine."""
    variable = key_variable(settings)
    return Needs(keys=(variable,) if variable else ())


def build_chat(
    mode: Mode, settings: ChatSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """pipecat's OpenAI service for this mode. Its SDK does not retry; connections live through the run."""
    variable = key_variable(settings)
    key = shared.environment.get(variable, "") if variable else "none"
    client = shared.get(
        ("openai", settings.base_url, variable, settings.timeout_s),
        lambda: make_client(settings.base_url, key, settings.timeout_s),
    )
    return chat_service(mode, settings, conversation, tap, client)


def make_client(base_url: str, key: str, timeout_s: float) -> Any:
    """An SDK client without retries of its own: a retry would hide in the latency."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=timeout_s)


def chat_service(
    mode: Mode, settings: ChatSettings, conversation: Conversation, tap: Tap, client: Any
) -> Any:
    """pipecat's service on a given SDK client, observed by the tap."""
    hush_pipecat()
    from pipecat.services.openai.llm import OpenAILLMService

    options: dict[str, Any] = {**mode.options, **settings.extra}
    tier = options.pop("service_tier", None)
    service = OpenAILLMService(
        api_key="unused, the client is replaced",
        service_tier=tier,
        settings=OpenAILLMService.Settings(
            model=mode.model,
            system_instruction=conversation.system_prompt,
            extra={**options, settings.tokens_field: conversation.max_tokens},
        ),
    )
    service._client = _Observed(client, tap)
    return service


class _Observed:
    """The parts of an SDK client that the service calls, with `create` seen by the tap."""

    def __init__(self, client: Any, tap: Tap) -> None:
        self.chat = self
        self.completions = self
        self.create = tap.wrap(client.chat.completions.create, read_chat, asked_options, watch_done)


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
    extra = getattr(chunk, "model_extra", None) or {}
    said = {name: getattr(chunk, name, None) for name in ("service_tier", "model")}
    said.update((name, extra.get(name)) for name in ("time_info", "x_groq"))
    log.served.update((name, value) for name, value in said.items() if value)
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
    reasoning = extra.get("reasoning_content") or extra.get("reasoning")
    if (reasoning or calls or text) and log.first_token_ns is None:
        log.first_token_ns = at_ns
    log.tool_calls += sum(1 for call in calls if call.function and call.function.name)
    if text:
        log.deltas.append((at_ns, text))


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
    settings=ChatSettings, build=build_chat, needs=chat_needs, title="OpenAI Chat Completions or compatible"
)
