"""The plan of one reply: every delta with the instant it is due, made before the first byte. Pure and
seeded."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.emulator import replies
from voicebench.emulator.asked import Asked, Tool
from voicebench.emulator.faults import Fault
from voicebench.emulator.replay import Replay
from voicebench.emulator.timing import TimingScript
from voicebench.emulator.tokens import Piece, count, cut, running_counts, take

Finish = Literal["stop", "length", "stop_sequence", "tool", "filtered"]


@dataclass(frozen=True, slots=True)
class Delta:
    """One event's text and o200k tokens, due `at_ns` after the request was fully received."""

    at_ns: int
    text: str
    tokens: int


@dataclass(frozen=True)
class ToolCall:
    """A call of a function: its name, and its arguments (JSON) in deltas."""

    name: str
    arguments: tuple[Delta, ...]

    @property
    def arguments_text(self) -> str:
        """The whole JSON of the arguments."""
        return "".join(delta.text for delta in self.arguments)


@dataclass(frozen=True)
class Usage:
    """Tokens of the request and of the whole reply. `input` leaves the cached ones out."""

    input: int
    cache_read: int
    cache_write: int
    reasoning: int
    text: int
    tool: int

    @property
    def output(self) -> int:
        """All output tokens, reasoning included."""
        return self.reasoning + self.text + self.tool


@dataclass(frozen=True)
class Plan:
    """What is said and when, in ns after the request was fully received; `end_ns` is due with the last
    delta."""

    headers_ns: int
    preamble_ns: int
    reasoning: tuple[Delta, ...]
    text: tuple[Delta, ...]
    call: ToolCall | None
    end_ns: int
    finish: Finish
    stop_sequence: str | None
    usage: Usage

    @property
    def reply(self) -> str:
        """The whole visible text."""
        return "".join(delta.text for delta in self.text)


def seeded(*parts: object) -> random.Random:
    """A generator that depends on `parts` alone, the same on every machine."""
    data = "\x1f".join(part.hex() if isinstance(part, bytes) else str(part) for part in parts)
    return random.Random(hashlib.sha256(data.encode("utf-8", "replace")).digest())


def make(script: TimingScript, asked: Asked, fault: Fault | None, seed: int, ordinal: int) -> Plan:
    """The plan of the reply: the same for the same arguments.

    `ordinal` counts the requests with this model and body from 0. The words depend on the question and the
    ordinal alone, so that several models say the same; the times depend on the model, too.
    """
    words = seeded(seed, "words", asked.question, ordinal)
    times = seeded(seed, "times", asked.model, asked.digest, ordinal)
    name = fault.name if fault else ""
    if asked.body.get("generate") is False:
        at_ns = _ns(script.preamble_ms)
        return Plan(_ns(script.headers_ms), at_ns, (), (), None, at_ns, "stop", None, _usage(script, asked))
    if script.replay is not None:
        return _replayed(script, script.replay, asked, words)

    thoughts = script.reasoning_tokens if asked.thinking is not False else 0
    gap_ms = script.reasoning_gap_ms
    first_ms = script.first_text_ms - (gap_ms if asked.thinking is False else 0.0)
    if script.first_text_jitter_ms:
        first_ms += times.gauss(0.0, script.first_text_jitter_ms)
        first_ms = max(first_ms, script.preamble_ms + (gap_ms if thoughts else 0.0))

    calls_tool = name in ("tool-call", "text-then-tool-call") and not asked.answers_a_tool
    pieces = (
        () if name == "empty" or (name == "tool-call" and calls_tool) else _pieces(script, asked, name, words)
    )
    pieces, finish, stop_sequence = _stopped(pieces, asked.stop)
    if asked.max_tokens is not None:
        thoughts = min(thoughts, asked.max_tokens)
        kept = take(pieces, asked.max_tokens - thoughts)
        if len(kept) < len(pieces) or (asked.max_tokens == thoughts and not kept):
            pieces, finish, stop_sequence = kept, "length", None
    calls_tool = calls_tool and finish != "length"

    groups = _grouped(pieces, script)
    late = list(script.stalls)
    if name == "blank-only":
        groups = [Piece("\n", 1), Piece(" \n", 1)]
    elif name == "blank-then-text" and fault is not None:
        groups = [Piece("\n\n", 1), *groups]
        late.append((1, fault.values["gap_ms"]))
    text = _timed(groups, script, first_ms, late, times)
    reasoning = _spread(replies.reasoning(thoughts), script.tokens_per_event, first_ms - gap_ms, gap_ms)
    last_ns = text[-1].at_ns if text else _ns(first_ms)
    call = None
    if calls_tool:
        call = _call(asked.tools, last_ns, script.rate_tok_s, after_text=bool(text))
        last_ns = call.arguments[-1].at_ns
        finish = "tool"
    return Plan(
        headers_ns=_ns(script.headers_ms),
        preamble_ns=_ns(script.preamble_ms),
        reasoning=reasoning,
        text=text,
        call=call,
        end_ns=last_ns,
        finish=finish,
        stop_sequence=stop_sequence,
        usage=_usage(script, asked, reasoning, text, call),
    )


def _pieces(script: TimingScript, asked: Asked, fault: str, words: random.Random) -> tuple[Piece, ...]:
    """What is said, whatever its length limit."""
    if fault == "utf8-split" or script.reply == "unicode":
        return cut(replies.unicode_answer())
    if script.reply_tokens is not None:
        return replies.prose_of(script.reply_tokens, words)
    is_long = script.reply == "auto" and replies.asks_for_long(asked.instructions, asked.question)
    if is_long or script.reply == "long":
        return replies.prose(replies.LONG_REPLY_TOKENS, words)
    return cut(replies.short_answer(asked.question, words))


def _stopped(pieces: tuple[Piece, ...], stop: Sequence[str]) -> tuple[tuple[Piece, ...], Finish, str | None]:
    """The pieces before the first stop sequence that occurs in their text."""
    text = "".join(piece.text for piece in pieces)
    found = [(text.index(sequence), sequence) for sequence in stop if sequence and sequence in text]
    if not found:
        return pieces, "stop", None
    end, sequence = min(found)
    return cut(text[:end]), "stop_sequence", sequence


def _grouped(pieces: Sequence[Piece], script: TimingScript) -> list[Piece]:
    """The pieces joined to events of the scripted sizes."""
    sizes = script.burst or (script.tokens_per_event,)
    groups: list[Piece] = []
    text, tokens = "", 0
    for piece in pieces:
        text += piece.text
        tokens += piece.tokens
        if tokens >= sizes[len(groups) % len(sizes)]:
            groups.append(Piece(text, tokens))
            text, tokens = "", 0
    if tokens:
        groups.append(Piece(text, tokens))
    return groups


def _timed(
    groups: Sequence[Piece],
    script: TimingScript,
    first_ms: float,
    stalls: Sequence[tuple[int, float]],
    times: random.Random,
) -> tuple[Delta, ...]:
    """The instants: first + (tokens up to the event - those of the first event) / rate, plus stalls and
    jitter."""
    deltas: list[Delta] = []
    jittered = script.jitter_relative > 0 or script.jitter_ms > 0
    late_ms = 0.0
    drift_ms = 0.0
    tokens = 0
    for group in groups:
        late_ms += sum(ms for token, ms in stalls if tokens <= token < tokens + group.tokens)
        tokens += group.tokens
        if deltas and jittered:
            gap_ms = group.tokens * 1000.0 / script.rate_tok_s
            drawn_ms = gap_ms * (1.0 + times.gauss(0.0, script.jitter_relative))
            drift_ms += max(0.0, drawn_ms + times.gauss(0.0, script.jitter_ms)) - gap_ms
        decoded_ms = (tokens - groups[0].tokens) * 1000.0 / script.rate_tok_s
        deltas.append(Delta(_ns(first_ms + decoded_ms + late_ms + drift_ms), group.text, group.tokens))
    return tuple(deltas)


def _spread(pieces: Sequence[Piece], size: int, start_ms: float, gap_ms: float) -> tuple[Delta, ...]:
    """Reasoning in events of `size` tokens, evenly over the gap before the first text."""
    groups = [pieces[index : index + size] for index in range(0, len(pieces), size)]
    return tuple(
        Delta(
            _ns(start_ms + gap_ms * index / len(groups)),
            "".join(piece.text for piece in group),
            sum(piece.tokens for piece in group),
        )
        for index, group in enumerate(groups)
    )


def _call(tools: Sequence[Tool], start_ns: int, rate_tok_s: float, after_text: bool) -> ToolCall:
    """A call of the first tool that the request offers, with arguments that fit its schema."""
    tool = tools[0] if tools else Tool("get_weather", {"properties": {"city": {"type": "string"}}})
    step_ns = round(NS_PER_S / rate_tok_s)
    pieces = cut(json.dumps(_sample(tool.schema), ensure_ascii=False))
    first_ns = start_ns + step_ns if after_text else start_ns
    return ToolCall(
        tool.name,
        tuple(
            Delta(first_ns + index * step_ns, piece.text, piece.tokens) for index, piece in enumerate(pieces)
        ),
    )


def _sample(schema: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema, as far as types and enumerations go."""
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties")
        rows = properties.items() if isinstance(properties, Mapping) else ()
        return {name: _sample(entry) for name, entry in rows if isinstance(entry, Mapping)}
    samples: dict[Any, Any] = {
        "integer": 1,
        "number": 1.5,
        "boolean": True,
        "array": [],
        "null": None,
        None: {},
    }
    return samples.get(kind, "Paris") if isinstance(kind, str) or kind is None else "Paris"


def _replayed(script: TimingScript, replay: Replay, asked: Asked, words: random.Random) -> Plan:
    """A recorded stream: its deltas at its times, without reasoning, limit or jitter."""
    instants = [at_ms for at_ms, _ in replay.deltas]
    sizes = [held for _, held in replay.deltas if isinstance(held, int)]
    if replay.unit == "tokens":
        rest = replies.prose_of(sum(sizes), words)
        groups = []
        for size in sizes:
            group, rest = rest[:size], rest[size:]
            groups.append(Piece("".join(piece.text for piece in group), size))
    else:
        texts = [held for _, held in replay.deltas if isinstance(held, str)]
        if replay.unit == "characters":
            whole, texts = replies.prose_characters(sum(sizes), words), []
            for size in sizes:
                texts.append(whole[:size])
                whole = whole[size:]
        before = 0
        groups = []
        for held, tokens in zip(texts, running_counts(texts), strict=True):
            groups.append(Piece(held, tokens - before))
            before = tokens
    text = tuple(
        Delta(_ns(at_ms), group.text, group.tokens) for at_ms, group in zip(instants, groups, strict=True)
    )
    first_ns = text[0].at_ns
    preamble_ns = first_ns if replay.preamble_ms is None else _ns(replay.preamble_ms)
    return Plan(
        headers_ns=preamble_ns if replay.headers_ms is None else min(preamble_ns, _ns(replay.headers_ms)),
        preamble_ns=preamble_ns,
        reasoning=(),
        text=text,
        call=None,
        end_ns=text[-1].at_ns,
        finish="stop",
        stop_sequence=None,
        usage=_usage(script, asked, (), text),
    )


def _usage(
    script: TimingScript,
    asked: Asked,
    reasoning: Sequence[Delta] = (),
    text: Sequence[Delta] = (),
    call: ToolCall | None = None,
) -> Usage:
    return Usage(
        input=count(asked.prompt),
        cache_read=script.cache_read_tokens,
        cache_write=script.cache_write_tokens,
        reasoning=sum(delta.tokens for delta in reasoning),
        text=sum(delta.tokens for delta in text),
        tool=sum(delta.tokens for delta in call.arguments) if call else 0,
    )


def _ns(ms: float) -> int:
    return round(ms * NS_PER_MS)
