"""OpenAI's Responses API over HTTP: through pipecat's service, or asked directly. Both through the stream
tap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import (
    Asker,
    Tap,
    field_of,
    saw_reasoning,
    saw_text,
    saw_token,
    typed_problem,
    word_of,
)
from voicebench.stages.llm_ask import StreamAsker
from voicebench.stages.llm_keys import Endpoint, endpoint_needs, key_for
from voicebench.stages.llm_light import opening, responses_text
from voicebench.stages.llm_openai import endpoint_client, shared_client
from voicebench.stages.llm_warm import warm
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.records import Usage
from voicebench.turns.stream import StreamLog

TOKEN_LIMIT = "max_output_tokens"  # noqa: S105 - a reason, not a secret
"""Why a response is incomplete whose token limit was reached: a reply all the same."""


class ResponsesSettings(Endpoint):
    """Where the endpoint is, and which variable holds its key."""

    base_url: str = "https://api.openai.com/v1"


def needs(settings: ResponsesSettings) -> Needs:
    """The key, where the endpoint wants one."""
    return endpoint_needs(settings)


def build(
    mode: Mode, settings: ResponsesSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """pipecat's Responses service over HTTP for this mode. Connections live through the run."""
    hush_pipecat()
    from pipecat.services.openai.responses.llm import OpenAIResponsesHttpLLMService

    warm("responses")
    service = replies_are_no_errors(OpenAIResponsesHttpLLMService)(
        api_key="unused, the client is replaced",
        settings=OpenAIResponsesHttpLLMService.Settings(
            model=settings.model or mode.model,
            system_instruction=conversation.system_prompt,
            max_completion_tokens=conversation.max_tokens,
            extra={**UNPADDED, **fields_of(mode.options), **settings.extra},
        ),
    )
    service._client = _Observed(shared_client(settings, shared), tap)
    return service


def ask(
    mode: Mode, settings: ResponsesSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Asker:
    """Asks this mode without a pipeline, over a connection of its own."""
    warm("responses")
    client = endpoint_client(settings, key_for(settings, shared))
    fields = {**UNPADDED, **request_fields(mode, settings, conversation), "stream": True}

    def request(prompt: str) -> dict[str, Any]:
        return {**fields, "input": [{"role": "user", "content": prompt}]}

    return StreamAsker(_Observed(client, tap, plain=True).create, request, tap, client.close)


UNPADDED = {"stream_options": {"include_obfuscation": False}}
"""Deltas without the padding that hides their length on the wire."""


def request_fields(mode: Mode, settings: Endpoint, conversation: Conversation) -> dict[str, Any]:
    """The fields of a request that are the same for every prompt of a mode."""
    return {
        **fields_of(mode.options),
        **settings.extra,
        "model": settings.model or mode.model,
        "instructions": conversation.system_prompt,
        "max_output_tokens": conversation.max_tokens,
        "store": False,
    }


def fields_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A mode's options as fields of a Responses request."""
    fields = {**options}
    for name, group, inner in (("effort", "reasoning", "effort"), ("verbosity", "text", "verbosity")):
        value = fields.pop(name, None)
        if value is not None:
            fields[group] = {inner: value, **fields.get(group, {})}
    return fields


def replies_are_no_errors(service_class: type[Any]) -> type[Any]:
    """pipecat's service, for which a reply that is empty or reached its token limit is a reply: no error."""

    class Service(service_class):  # type: ignore[misc]  # the base is known at run time only
        async def push_error(self, error_msg: str, *more: Any, **named: Any) -> None:
            if not error_msg.endswith(TOKEN_LIMIT):
                await super().push_error(error_msg, *more, **named)

        async def _report_empty_response(self, *told: Any, **named: Any) -> None:
            return

    Service.__name__ = Service.__qualname__ = service_class.__name__
    return Service


class _Observed:
    """The parts of an SDK client that the service calls, with `create` seen by the tap.

    `plain` streams give JSON; others what pipecat's service reads.
    """

    def __init__(self, client: Any, tap: Tap, *, plain: bool = False) -> None:
        self.responses = self
        self.create: Callable[..., Any] = tap.wrap(
            client.responses.create, read_responses, asked_options, opening(responses_text, plain=plain)
        )


def asked_options(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request's options that make a mode."""
    found: dict[str, Any] = {"service_tier": request.get("service_tier")}
    reasoning, text = request.get("reasoning"), request.get("text")
    found["effort"] = reasoning.get("effort") if isinstance(reasoning, Mapping) else None
    found["verbosity"] = text.get("verbosity") if isinstance(text, Mapping) else None
    return {name: value for name, value in found.items() if isinstance(value, str)}


def read_responses(log: StreamLog, event: Any, at_ns: int) -> None:
    """Read one event of a response into the log, as the SDK parsed it or as plain JSON.

    Openings (`response.created`, items and parts being added) are no tokens. `response.completed` is the
    terminal marker, and `response.incomplete` is one, too: it names why the reply went no further. An `error`
    event and `response.failed` end the stream here, as no exception tells of them.
    """
    kind = field_of(event, "type")
    if kind == "response.output_text.delta":
        saw_text(log, at_ns, field_of(event, "delta") or "")
    elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        if field_of(event, "delta"):
            saw_reasoning(log, at_ns)
    elif kind == "response.function_call_arguments.delta":
        saw_token(log, at_ns)
    elif kind == "response.refusal.delta":
        saw_token(log, at_ns)
        if "refused" not in log.caveats:
            log.caveats.append("refused")
    elif kind == "response.output_item.added":
        if field_of(field_of(event, "item"), "type") == "function_call":
            log.tool_calls += 1
            saw_token(log, at_ns)
    elif kind in ("response.completed", "response.incomplete", "response.failed"):
        _read_end(log, kind, field_of(event, "response"), at_ns)
    elif kind == "error":
        log.end(at_ns, *typed_problem(error_of(event)))


def error_of(event: Any) -> dict[str, Any]:
    """What an `error` event says: flat over HTTP, nested and with a status over a WebSocket."""
    inner = field_of(event, "error")
    found = {name: field_of(inner, name) or field_of(event, name) for name in ("code", "message", "status")}
    return {**found, "type": field_of(inner, "type")}


def _read_end(log: StreamLog, kind: str, response: Any, at_ns: int) -> None:
    usage = field_of(response, "usage")
    if usage is not None:
        log.usage = _usage(usage)
    for name in ("model", "service_tier"):
        value = word_of(response, name)
        if value:
            log.served[name] = value
    if kind == "response.failed":
        error = field_of(response, "error")
        told = {name: field_of(error, name) for name in ("code", "message")}
        log.end(at_ns, *typed_problem(told))
        return
    reason = word_of(field_of(response, "incomplete_details"), "reason")
    log.finish_reason = reason or word_of(response, "status") or kind.rpartition(".")[2]
    log.terminal = True


def _usage(usage: Any) -> Usage:
    prompt, output = field_of(usage, "input_tokens_details"), field_of(usage, "output_tokens_details")
    return Usage(
        input_tokens=field_of(usage, "input_tokens"),
        output_tokens=field_of(usage, "output_tokens"),
        reasoning_tokens=field_of(output, "reasoning_tokens"),
        cache_read_tokens=field_of(prompt, "cached_tokens"),
        cache_write_tokens=field_of(prompt, "cache_write_tokens"),
    )


HTTP = Plugin(
    settings=ResponsesSettings,
    build=build,
    needs=needs,
    ask=ask,
    retries=True,
    title="OpenAI's Responses API over HTTP",
)
