"""OpenAI Chat Completions and whatever speaks like it, through pipecat's service and the stream tap."""

from __future__ import annotations

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
        self.create = tap.wrap(client.chat.completions.create, read_chat, asked_options)


def asked_options(request: dict[str, Any]) -> dict[str, Any]:
    """The request's options that make a mode."""
    flat = {**request, **(request.get("extra_body") or {})}
    return {name: flat[name] for name in MODE_OPTIONS if isinstance(flat.get(name), str | int | float)}


def read_chat(log: StreamLog, chunk: Any, at_ns: int) -> None:
    """Read one chat completion chunk into the log.

    A role chunk and a usage chunk carry no text and move no mark. `finish_reason` is the terminal marker.
    """
    if chunk.usage is not None:
        log.usage = _usage(chunk.usage)
    if getattr(chunk, "service_tier", None):
        log.served["service_tier"] = chunk.service_tier
    if chunk.model:
        log.served["model"] = chunk.model
    for name in ("time_info", "x_groq"):
        extra = (chunk.model_extra or {}).get(name)
        if extra:
            log.served[name] = extra
    for choice in chunk.choices or ():
        delta = choice.delta
        if delta is not None:
            reasoning = (delta.model_extra or {}).get("reasoning_content") or (delta.model_extra or {}).get(
                "reasoning"
            )
            if reasoning and log.first_token_ns is None:
                log.first_token_ns = at_ns
            if delta.tool_calls:
                log.tool_calls += sum(1 for call in delta.tool_calls if call.function and call.function.name)
                if log.first_token_ns is None:
                    log.first_token_ns = at_ns
            if delta.content:
                if log.first_token_ns is None:
                    log.first_token_ns = at_ns
                log.deltas.append((at_ns, delta.content))
        if choice.finish_reason:
            log.finish_reason = choice.finish_reason
            log.terminal = True


def _usage(usage: Any) -> Usage:
    prompt = usage.prompt_tokens_details
    completion = usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        reasoning_tokens=completion.reasoning_tokens if completion else None,
        cache_read_tokens=prompt.cached_tokens if prompt else None,
    )


CHAT = Plugin(
    settings=ChatSettings, build=build_chat, needs=chat_needs, title="OpenAI Chat Completions or compatible"
)
