"""The faults that can be planted in a reply, by name; `staging` and `server` carry them out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from voicebench.errors import BadRequest

Stage = Literal["answer", "content", "stream", "bytes"]
"""Where a fault acts: on the whole HTTP answer, on what is said, on the events of a stream, or on the
bytes."""

_AFTER = {"after": 5.0}
_AFTER_SAYS = "after that many visible tokens, or half way through a shorter reply; 0: before the first"


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault: its name, where it acts, what it does, and its settings with their defaults."""

    name: str
    stage: Stage
    says: str
    settings: Mapping[str, float] = field(default_factory=dict)
    text_settings: tuple[str, ...] = ()


_KINDS = (
    FaultKind("401", "answer", "the key is refused (on a WebSocket: at the handshake, where known by then)"),
    FaultKind("403", "answer", "permission denied"),
    FaultKind("404", "answer", "the model does not exist"),
    FaultKind("408", "answer", "the request timed out at the vendor"),
    FaultKind("429", "answer", "rate limited; retry_after in seconds", {"retry_after": 1.0}),
    FaultKind(
        "429-once",
        "answer",
        "rate limited the first time that this model gets this very body, then served",
        {"retry_after": 1.0},
    ),
    FaultKind("500", "answer", "internal server error"),
    FaultKind("503", "answer", "service unavailable"),
    FaultKind("529", "answer", "overloaded"),
    FaultKind(
        "redirect",
        "answer",
        "307 to another host (to=URL; default: this server by another name)",
        {},
        ("to",),
    ),
    FaultKind("hang-headers", "answer", "no answer at all, the connection stays open"),
    FaultKind("asked-not-served", "content", "the asked speed or tier is not served: standard, default"),
    FaultKind("empty", "content", "a complete reply without any text"),
    FaultKind("blank-only", "content", "a complete reply of white space"),
    FaultKind("blank-then-text", "content", "white space first, the text gap_ms later", {"gap_ms": 100.0}),
    FaultKind("tool-call", "content", "only a tool call (text, once its result is in the request)"),
    FaultKind("text-then-tool-call", "content", "text, then a tool call"),
    FaultKind("error-in-stream", "stream", f"an error inside the 200 stream, {_AFTER_SAYS}", _AFTER),
    FaultKind("overloaded-in-stream", "stream", "the same, the error being overload", _AFTER),
    FaultKind(
        "failed-in-stream", "stream", "Responses: response.failed; the others as error-in-stream", _AFTER
    ),
    FaultKind("filtered-in-stream", "stream", "the vendor breaks off (content_filter, refusal)", _AFTER),
    FaultKind("no-terminal", "stream", "a clean end in mid-answer, without any terminal marker", _AFTER),
    FaultKind(
        "done-without-finish", "stream", "[DONE] without finish_reason, message_stop without stop_reason"
    ),
    FaultKind(
        "finish-without-done", "stream", "finish_reason without [DONE], stop_reason without message_stop"
    ),
    FaultKind("drop", "stream", "the socket is closed in mid-answer", _AFTER),
    FaultKind("reset", "stream", "the socket is reset (RST) in mid-answer", _AFTER),
    FaultKind("half-event", "stream", "half an event, then the socket is closed", _AFTER),
    FaultKind(
        "hang-first-text", "stream", "the preamble, then silence (ping_ms: with pings)", {"ping_ms": 0.0}
    ),
    FaultKind(
        "hang-mid", "stream", "some text, then silence (ping_ms: with pings)", {**_AFTER, "ping_ms": 0.0}
    ),
    FaultKind("drip", "bytes", "the bytes one by one, gap_ms apart", {"gap_ms": 0.1}),
    FaultKind("utf8-split", "bytes", "many-byte characters, each cut across two writes"),
    FaultKind("crlf", "bytes", "line ends are CR LF (event streams)"),
    FaultKind("comments", "bytes", "a comment line before each event (event streams)"),
    FaultKind("bom", "bytes", "a byte-order mark before the first event (event streams)"),
)

FAULTS: Mapping[str, FaultKind] = {kind.name: kind for kind in _KINDS}


@dataclass(frozen=True)
class Fault:
    """One fault with its settings, the defaults filled in."""

    kind: FaultKind
    values: Mapping[str, float]
    texts: Mapping[str, str]

    @property
    def name(self) -> str:
        """The fault's name, a key of `FAULTS`."""
        return self.kind.name

    def __str__(self) -> str:
        parts = [self.name, *(f"{key}={value:g}" for key, value in self.values.items())]
        return ";".join([*parts, *(f"{key}={value}" for key, value in self.texts.items())])


def parse(text: str) -> Fault | None:
    """The fault that `NAME[;key=value...]` names; None for empty text.

    Raises `BadRequest` for an unknown name or key and for a value that is no number from 0.
    """
    name, *settings = (part.strip() for part in text.split(";"))
    if not name:
        return None
    kind = FAULTS.get(name)
    if kind is None:
        raise BadRequest(f"fault {name!r} is unknown.", f"Known: {', '.join(FAULTS)}.")
    values, texts = dict(kind.settings), {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key in kind.text_settings:
            texts[key] = value
            continue
        if key not in values:
            known = ", ".join([*values, *kind.text_settings]) or "none"
            raise BadRequest(f"fault {name!r}: setting {key!r} is unknown.", f"Known: {known}.")
        try:
            values[key] = float(value)
        except ValueError:
            values[key] = math.nan
        if not math.isfinite(values[key]) or values[key] < 0:
            raise BadRequest(f"fault {name!r}: {key} is {value!r}.", "Give a number from 0.")
    return Fault(kind, values, texts)


def split_model(model: str) -> tuple[str, str]:
    """A model name and the fault that a suffix plants: `gpt-5.3-codex!drop;after=3` -> (name,
    `drop;after=3`)."""
    name, _, fault = model.partition("!")
    return name, fault
