"""Anthropic's Messages API: through pipecat's service, or asked directly. Both through the stream tap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import Asker, Tap, field_of, saw_reasoning, saw_text, saw_token, word_of
from voicebench.stages.llm_ask import StreamAsker, without_models
from voicebench.stages.llm_http import client_options
from voicebench.stages.llm_keys import NO_KEY, Endpoint, endpoint_needs, key_for
from voicebench.stages.llm_light import anthropic_text, opening
from voicebench.stages.llm_warm import warm
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.records import Usage
from voicebench.turns.stream import StreamLog

LIBRARIES = (("anthropic", "anthropic"),)


class AnthropicSettings(Endpoint):
    """Where the endpoint is, and which variable holds its key."""

    base_url: str = "https://api.anthropic.com"
    beta: str | None = None
    """The value of the `anthropic-beta` header, for what needs one."""


def needs(settings: AnthropicSettings) -> Needs:
    """The SDK, and the key where the endpoint wants one."""
    return endpoint_needs(settings, LIBRARIES)


def build(
    mode: Mode, settings: AnthropicSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """pipecat's Anthropic service for this mode, observed by the tap. Connections live through the run."""
    hush_pipecat()
    from pipecat.services.anthropic.llm import AnthropicLLMService

    warm("anthropic-beta")
    client = shared.get(
        ("anthropic", settings.base_url, settings.key_variable, settings.timeout_s),
        lambda: endpoint_client(settings, key_for(settings, shared)),
    )

    class Service(AnthropicLLMService):
        """Closes a stream that an interruption leaves in the middle, which pipecat's own lets go."""

        _open: Any = None

        async def _create_message_stream(self, api_call: Any, params: Any) -> Any:
            opened = super()._create_message_stream(api_call, params)  # type: ignore[no-untyped-call]
            self._open = await opened
            return self._open

        async def _process_context(self, context: Any) -> None:
            try:
                await super()._process_context(context)
            finally:
                stream, self._open = self._open, None
                if stream is not None:
                    await stream.close()

    return Service(
        api_key="unused, the client is given",
        client=_Observed(client, tap),
        settings=AnthropicLLMService.Settings(
            model=settings.model or mode.model,
            system_instruction=conversation.system_prompt,
            max_tokens=conversation.max_tokens,
            extra=fields_of(mode.options, settings),
        ),
    )


def ask(
    mode: Mode, settings: AnthropicSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Asker:
    """Asks this mode without a pipeline, over a connection of its own."""
    warm("anthropic")
    client = endpoint_client(settings, key_for(settings, shared))
    fields = {
        **fields_of(mode.options, settings),
        "model": settings.model or mode.model,
        "max_tokens": conversation.max_tokens,
        "system": conversation.system_prompt,
        "stream": True,
    }

    def request(prompt: str) -> dict[str, Any]:
        return {**fields, "messages": [{"role": "user", "content": prompt}]}

    create = tap.wrap(
        client.messages.create, read_anthropic, asked_options, lambda stream, log: without_models(stream)
    )
    return StreamAsker(create, request, tap, client.close)


def endpoint_client(settings: AnthropicSettings, key: str) -> Any:
    """An SDK client without retries of its own: a retry would hide in the latency."""
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    return AsyncAnthropic(
        base_url=settings.base_url,
        api_key=key or NO_KEY,
        max_retries=0,
        timeout=settings.timeout_s,
        http_client=DefaultAsyncHttpxClient(**client_options(settings)),
    )


def fields_of(options: Mapping[str, Any], settings: AnthropicSettings) -> dict[str, Any]:
    """A mode's options as fields of a Messages request."""
    fields = {**options}
    effort = fields.pop("effort", None)
    if effort is not None:
        fields["output_config"] = {"effort": effort, **fields.get("output_config", {})}
    if isinstance(fields.get("thinking"), str):
        fields["thinking"] = {"type": fields["thinking"]}
    if settings.beta is not None:
        fields["extra_headers"] = {"anthropic-beta": settings.beta}
    return {**fields, **settings.extra}


class _Observed:
    """The parts of an SDK client that the service calls, with `create` seen by the tap."""

    def __init__(self, client: Any, tap: Tap) -> None:
        self.beta = self
        self.messages = self
        self.create: Callable[..., Any] = tap.wrap(
            client.beta.messages.create,
            read_anthropic,
            asked_options,
            opening(anthropic_text),
        )


def asked_options(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request's options that make a mode."""
    found: dict[str, Any] = {name: request.get(name) for name in ("speed", "service_tier")}
    thinking, output = request.get("thinking"), request.get("output_config")
    found["thinking"] = thinking.get("type") if isinstance(thinking, Mapping) else None
    found["effort"] = output.get("effort") if isinstance(output, Mapping) else None
    return {name: value for name, value in found.items() if isinstance(value, str)}


def read_anthropic(log: StreamLog, event: Any, at_ns: int) -> None:
    """Read one event of a Messages stream into the log, as the SDK parsed it or as plain JSON.

    `message_start` tells prompt tokens and the served speed, `content_block_start` opens a block: neither is
    a token. `message_stop` is the terminal marker; a stop reason without it is complete, too.
    """
    kind = field_of(event, "type")
    if kind == "content_block_delta":
        _read_delta(log, field_of(event, "delta"), at_ns)
    elif kind == "content_block_start":
        _read_block(log, field_of(event, "content_block"), at_ns)
    elif kind == "message_start":
        message = field_of(event, "message")
        usage = field_of(message, "usage")
        log.served["model"] = word_of(message, "model")
        _read_usage(log, usage, final=False)
        for name in ("speed", "service_tier"):
            value = word_of(usage, name)
            if value is not None:
                log.served[name] = value
    elif kind == "message_delta":
        _read_usage(log, field_of(event, "usage"), final=True)
        delta = field_of(event, "delta")
        if field_of(delta, "stop_reason") is not None:
            log.finish_reason = word_of(delta, "stop_reason")
            log.terminal = True
    elif kind == "message_stop":
        if log.finish_reason is None:
            log.caveats.append("no_finish_reason")
        log.terminal = True


def _read_delta(log: StreamLog, delta: Any, at_ns: int) -> None:
    kind = field_of(delta, "type")
    if kind == "text_delta":
        saw_text(log, at_ns, field_of(delta, "text"))
    elif kind == "thinking_delta" and field_of(delta, "thinking"):
        saw_reasoning(log, at_ns)
    elif kind == "input_json_delta" and field_of(delta, "partial_json"):
        saw_token(log, at_ns)


def _read_block(log: StreamLog, block: Any, at_ns: int) -> None:
    kind = field_of(block, "type")
    if kind == "text":
        saw_text(log, at_ns, field_of(block, "text"))
    elif kind == "tool_use":
        log.tool_calls += 1
        saw_token(log, at_ns)
    elif kind == "redacted_thinking":
        saw_reasoning(log, at_ns)


def _read_usage(log: StreamLog, usage: Any, *, final: bool) -> None:
    """Counts are cumulative, and one that an event leaves out keeps its earlier value.

    The output tokens of the opening event are those of a reply that has only begun: they do not count. The
    vendor counts cached prompt tokens apart; here `input_tokens` are all of them.
    """
    before = log.usage or Usage()
    read = _first(field_of(usage, "cache_read_input_tokens"), before.cache_read_tokens)
    written = _first(field_of(usage, "cache_creation_input_tokens"), before.cache_write_tokens)
    plain = field_of(usage, "input_tokens")
    details = field_of(usage, "output_tokens_details")
    log.usage = Usage(
        input_tokens=before.input_tokens if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=_first(field_of(usage, "output_tokens"), before.output_tokens) if final else None,
        reasoning_tokens=_first(field_of(details, "thinking_tokens"), before.reasoning_tokens),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _first(new: int | None, old: int | None) -> int | None:
    return old if new is None else new


PLUGIN = Plugin(
    settings=AnthropicSettings,
    build=build,
    needs=needs,
    ask=ask,
    retries=True,
    title="Anthropic's Messages API",
)
