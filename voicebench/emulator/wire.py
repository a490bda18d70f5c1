"""What the three protocols share: events, the reply they tell, and how JSON is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from voicebench.emulator.asked import Asked
from voicebench.emulator.plan import Delta, Plan
from voicebench.emulator.problems import Problem
from voicebench.emulator.timing import TimingScript

Kind = Literal[
    "preamble", "ping", "reasoning", "text", "tool", "close", "finish", "usage", "done", "error", "body"
]
"""What an event does. `finish` tells why the reply ended, `done` is the marker after it, `close` ends a part;
`body` is the whole reply to a request without streaming."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream, due `at_ns` after the request was fully received.

    `name` is its `event:` line, empty where the protocol has none; `data` its payload, JSON but for
    `[DONE]`. The counts are cumulative, this event included: output tokens (reasoning too), visible text
    tokens, and visible characters.
    """

    at_ns: int
    kind: Kind
    name: str
    data: str
    tokens: int = 0
    text_tokens: int = 0
    characters: int = 0


@dataclass(frozen=True)
class Reply:
    """One reply to tell: what was asked, the script that serves it, the plan, and the names in it.

    `request_id` is the log's and the response header's; `key` a hexadecimal string, the same for the same
    request, that the other ids are made of; `created` the calendar time in s since 1970; `speed` and
    `service_tier` what is served.
    """

    asked: Asked
    script: TimingScript
    plan: Plan
    request_id: str
    key: str
    created: int
    speed: str
    service_tier: str
    model: str


class Wire(Protocol):
    """One protocol's way to tell a reply."""

    content_type: str

    def events(self, reply: Reply) -> list[Event]:
        """The stream of a complete reply, in order of time."""

    def body(self, reply: Reply) -> dict[str, Any]:
        """The same reply as the one object that a request without streaming gets."""

    def problem_body(self, problem: Problem, request_id: str) -> dict[str, Any]:
        """The body of an HTTP error."""

    def problem_events(
        self, reply: Reply, problem: Problem, after: Event | None, failed: bool
    ) -> list[Event]:
        """An error inside a stream, behind the event `after`; `failed` asks for the reply's own failed
        form."""

    def filtered_events(self, reply: Reply, kept: list[Event]) -> list[Event]:
        """The end of a stream of which `kept` was sent and the rest held back by the vendor's filter."""


def dumps(value: Any) -> str:
    """Compact JSON with characters as they are; a lone surrogate, which UTF-8 cannot hold, becomes `?`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace").decode("utf-8")


quote: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
"""A string as JSON; the quick way for text that is known to be well formed."""


class Tally:
    """Builds events whose counts run on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._tokens = self._text_tokens = self._characters = 0

    def hide(self, tokens: int) -> None:
        """Count output tokens that no event shows (hidden reasoning); the next event's counts hold them."""
        self._tokens += tokens

    def add(self, at_ns: int, kind: Kind, name: str, data: str, delta: Delta | None = None) -> None:
        """Append an event; `delta` is what it carries of the output."""
        if delta is not None:
            self._tokens += delta.tokens
            if kind == "text":
                self._text_tokens += delta.tokens
                self._characters += len(delta.text)
        self.events.append(Event(at_ns, kind, name, data, self._tokens, self._text_tokens, self._characters))


def padding(key: str, lengths: Iterable[int]) -> list[str]:
    """Obfuscation strings: an event's text and its padding together are a multiple of 16 characters."""
    filler = key * (1 + 16 // max(1, len(key)))
    return [filler[: 16 - length % 16] for length in lengths]
