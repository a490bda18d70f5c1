"""What a request asks for, read from each protocol's body into one neutral form.

Reads what the emulator acts on and checks it as strictly as the vendor does; everything else is let
through, as new parameters appear all the time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from voicebench.emulator.problems import Problem, Refused, invalid

Protocol = Literal["anthropic", "chat", "responses"]


@dataclass(frozen=True)
class Tool:
    """A function that the model may call: its name and the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request. `body` is the whole of it; `digest` its SHA-256 in canonical form (keys sorted)."""

    protocol: Protocol
    body: Mapping[str, Any]
    digest: bytes
    model: str
    stream: bool
    question: str
    """The text of the last message by the user."""
    instructions: str
    """The system prompt, of whichever form."""
    prompt: str
    """All text of the request, tools included, in its order: what the input tokens are counted on."""
    max_tokens: int | None = None
    """The limit on output tokens, reasoning included. None: none was given."""
    stop: tuple[str, ...] = ()
    speed: str | None = None
    service_tier: str | None = None
    thinking: bool | None = None
    """False where the request turns reasoning off, True where it asks for it, None where it says nothing."""
    tools: tuple[Tool, ...] = ()
    answers_a_tool: bool = False
    """The last message is the result of a tool."""

    def part(self, name: str) -> Mapping[str, Any]:
        """The object under `name` in the body; an empty one where there is none."""
        value = self.body.get(name)
        return value if isinstance(value, Mapping) else {}


def parse_json(raw: bytes | str) -> Mapping[str, Any]:
    """The JSON object in a request body. Raises `Refused` (400) for anything else."""
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise invalid("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise invalid("The body of your request is not a JSON object.")
    return body


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def read(protocol: Protocol, body: Mapping[str, Any], earlier: str = "") -> Asked:
    """What `body` asks for. `earlier` is the text of a stored conversation that it continues.

    Raises `Refused` with status 400 for what the vendor refuses, too.
    """
    readers = {"anthropic": _read_anthropic, "chat": _read_chat, "responses": _read_responses}
    return readers[protocol](body, earlier)


def _read_anthropic(body: Mapping[str, Any], earlier: str) -> Asked:
    model = _model(body, "model: Field required")
    messages = _messages(body, "messages", "messages: at least one message is required")
    max_tokens = body.get("max_tokens")
    if not _is_count(max_tokens):
        raise invalid("max_tokens: Field required" if max_tokens is None else "max_tokens: must be 0 or more")
    speed = body.get("speed")
    if speed not in (None, "standard", "fast"):
        raise invalid("speed: Input should be 'standard' or 'fast'", "speed")
    thinking = body.get("thinking")
    system = " ".join(_texts(body.get("system")))
    tools = tuple(
        Tool(str(tool["name"]), _mapping(tool.get("input_schema"))) for tool in _rows(body, "tools", "name")
    )
    last = messages[-1].get("content")
    return Asked(
        protocol="anthropic",
        body=body,
        digest=_digest(body),
        model=model,
        stream=bool(body.get("stream")),
        question=_last_user_text(messages),
        instructions=system,
        prompt=_prompt([system], messages, body.get("tools")),
        max_tokens=max_tokens,
        stop=_strings(body.get("stop_sequences")),
        speed=speed,
        service_tier=_text(body.get("service_tier")),
        thinking=None if not isinstance(thinking, Mapping) else thinking.get("type") != "disabled",
        tools=tools,
        answers_a_tool=isinstance(last, list)
        and any(isinstance(block, Mapping) and block.get("type") == "tool_result" for block in last),
    )


def _read_chat(body: Mapping[str, Any], earlier: str) -> Asked:
    model = _model(body, "you must provide a model parameter")
    messages = _messages(body, "messages", "Missing required parameter: 'messages'.")
    if body.get("n") not in (None, 1):
        raise invalid("Unsupported value: 'n' must be 1 here.", "n", "unsupported_value")
    limit = body.get("max_completion_tokens")
    name = "max_completion_tokens"
    if limit is None:
        limit, name = body.get("max_tokens"), "max_tokens"
    if limit is not None and not (_is_count(limit) and limit >= 1):
        raise invalid(f"Invalid '{name}': integer below minimum value 1.", name, "integer_below_min_value")
    stop = body.get("stop")
    tools = tuple(
        Tool(str(_mapping(tool.get("function")).get("name")), _mapping(tool["function"].get("parameters")))
        for tool in _rows(body, "tools", "type")
        if isinstance(tool.get("function"), Mapping)
    )
    system = [message for message in messages if message.get("role") in ("system", "developer")]
    return Asked(
        protocol="chat",
        body=body,
        digest=_digest(body),
        model=model,
        stream=bool(body.get("stream")),
        question=_last_user_text(messages),
        instructions=" ".join(text for message in system for text in _texts(message.get("content"))),
        prompt=_prompt([], messages, body.get("tools")),
        max_tokens=limit,
        stop=(stop,) if isinstance(stop, str) else _strings(stop),
        service_tier=_text(body.get("service_tier")),
        thinking=_effort(body.get("reasoning_effort")),
        tools=tools,
        answers_a_tool=messages[-1].get("role") == "tool",
    )


def _read_responses(body: Mapping[str, Any], earlier: str) -> Asked:
    model = _model(body, "Missing required parameter: 'model'.")
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if given is None and not earlier and body.get("generate") is not False:
        raise invalid("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    items = _rows({"input": given or []}, "input", "")
    limit = body.get("max_output_tokens")
    if limit is not None and not (_is_count(limit) and limit >= 1):
        raise invalid(
            "Invalid 'max_output_tokens': integer below minimum value.",
            "max_output_tokens",
            "integer_below_min_value",
        )
    instructions = body.get("instructions")
    system = [instructions] if isinstance(instructions, str) else []
    for item in items:
        if item.get("role") in ("system", "developer"):
            system.extend(_texts(item.get("content")))
    tools = tuple(
        Tool(str(tool.get("name")), _mapping(tool.get("parameters")))
        for tool in _rows(body, "tools", "type")
        if tool.get("type") == "function"
    )
    reasoning = body.get("reasoning")
    return Asked(
        protocol="responses",
        body=body,
        digest=_digest(body),
        model=model,
        stream=bool(body.get("stream")),
        question=_last_user_text(items),
        instructions=" ".join(system),
        prompt="\n".join(
            part for part in (earlier, _prompt([str(instructions or "")], items, body.get("tools"))) if part
        ),
        max_tokens=limit,
        service_tier=_text(body.get("service_tier")),
        thinking=_effort(reasoning.get("effort")) if isinstance(reasoning, Mapping) else None,
        tools=tools,
        answers_a_tool=bool(items) and items[-1].get("type") == "function_call_output",
    )


def unknown_model(asked: Asked) -> Refused:
    """The refusal of a model that nobody serves, in the asked protocol's words."""
    if asked.protocol == "anthropic":
        return Refused(Problem(404, "not_found", f"model: {asked.model}"))
    message = f"The model `{asked.model}` does not exist or you do not have access to it."
    return Refused(Problem(404, "not_found", message, None, "model_not_found"))


def _digest(body: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")).digest()


def _model(body: Mapping[str, Any], missing: str) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid(missing, "model", "missing_required_parameter")
    return model


def _messages(body: Mapping[str, Any], name: str, missing: str) -> Sequence[Mapping[str, Any]]:
    messages = _rows(body, name, "role")
    if not messages:
        raise invalid(missing, name, "missing_required_parameter")
    return messages


def _rows(body: Mapping[str, Any], name: str, needed: str) -> Sequence[Mapping[str, Any]]:
    """The list of objects under `name`, each with the key `needed`. Raises `Refused` for anything else."""
    rows = body.get(name)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise invalid(f"{name}: expected an array", name, "invalid_type")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or (needed and needed not in row):
            raise invalid(
                f"{name}.{index}: expected an object" + (f" with {needed}" if needed else ""),
                f"{name}[{index}]",
            )
    return rows


def _last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            text = " ".join(_texts(message.get("content"), tool_results=False))
            if text.strip():
                return text
    return ""


def _prompt(system: Sequence[str], messages: Sequence[Mapping[str, Any]], tools: Any) -> str:
    parts = [text for text in system if text]
    for message in messages:
        parts.extend(_texts(message.get("content")))
        parts.extend(str(message[key]) for key in ("name", "arguments", "output") if message.get(key))
        if message.get("tool_calls"):
            parts.append(json.dumps(message["tool_calls"]))
    if tools:
        parts.append(json.dumps(tools))
    return "\n".join(parts)


def _texts(content: Any, tool_results: bool = True) -> Iterator[str]:
    """The text in a message's content: a string, or a list of blocks."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield block
            elif isinstance(block, Mapping):
                if block.get("type") == "tool_result":
                    if tool_results:
                        yield from _texts(block.get("content"))
                elif isinstance(block.get("text"), str):
                    yield block["text"]
                elif block.get("type") == "tool_use":
                    yield json.dumps(block.get("input"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _effort(value: Any) -> bool | None:
    return None if value is None else value != "none"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
