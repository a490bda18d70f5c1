"""What came over one LLM stream, and when: kept by the stream tap, read by records and by slot accounting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from voicebench.plan.modes import Mode
from voicebench.turns.records import Usage

StreamStatus = Literal[
    "running", "ok", "truncated", "cancelled", "rate_limited", "overloaded", "failed", "timed_out"
]


@dataclass
class AttemptLog:
    """One call to the provider: instants in ns of the monotonic clock."""

    request_ns: int
    end_ns: int | None = None
    status: StreamStatus = "running"
    detail: str = ""


@dataclass
class MemberLog:
    """One candidate's stream."""

    mode: Mode
    stream: StreamLog
    chosen: bool = False
    clause_ns: int | None = None
    """When its first clause was complete. None: it never was."""
    score: float | None = None


@dataclass
class StreamLog:
    """One LLM request from call to end. Instants are ns of the monotonic clock; None: has not happened."""

    request_ns: int
    """Just before the provider SDK's call is awaited, first attempt."""
    asked: dict[str, Any] = field(default_factory=dict)
    """Request options that name a speed, tier or effort."""
    model: str = ""
    first_token_ns: int | None = None
    """The first token of any kind, reasoning included."""
    deltas: list[tuple[int, str]] = field(default_factory=list)
    """Arrival and text of each visible delta, white space included, in order."""
    end_ns: int | None = None
    status: StreamStatus = "running"
    detail: str = ""
    terminal: bool = False
    """Did the protocol's terminal marker come?"""
    finish_reason: str | None = None
    usage: Usage | None = None
    served: dict[str, Any] = field(default_factory=dict)
    tool_calls: int = 0
    attempts: list[AttemptLog] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    reasoning_streamed: bool = False
    """Did any token of the model's reasoning come over the stream?"""
    request_id: str | None = None
    """The provider's own id of the request; None where it told none."""
    new_connection: bool | None = None
    """Was a connection opened for this request? None: not seen."""
    connect_ns: int | None = None
    """How long opening it took: name look-up, TCP and TLS. None for a connection that was open."""
    mode: Mode | None = None
    """The mode that answered, where the turn's own is made of several."""
    choice: dict[str, Any] = field(default_factory=dict)
    """By which rule that one was taken."""
    members: list[MemberLog] = field(default_factory=list)
    """All streams of a set of candidates, the chosen one among them."""
    speculative: bool = False
    """Was it made ahead of the turn's end, on an early transcript?"""
    revoked: bool = False
    """Was it dropped, as the person went on speaking or had said something else?"""
    server_ms: dict[str, float] = field(default_factory=dict)
    """What the provider says of its own time, by name: queue, prompt, completion, total."""

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(text for _, text in self.deltas)

    @property
    def first_text_ns(self) -> int | None:
        """Arrival of the first visible character that is not white space; None where none came."""
        for at, text in self.deltas:
            if text.strip():
                return at
        return None

    @property
    def last_text_ns(self) -> int | None:
        """Arrival of the last visible delta, None without text."""
        return self.deltas[-1][0] if self.deltas else None

    @property
    def running(self) -> bool:
        """Is the stream still open?"""
        return self.status == "running"

    def end(self, at_ns: int, status: StreamStatus, detail: str = "") -> None:
        """Close the log once; a later call changes nothing."""
        if not self.running:
            return
        self.end_ns, self.status, self.detail = at_ns, status, detail
        if self.attempts and self.attempts[-1].status == "running":
            last = self.attempts[-1]
            last.end_ns, last.status, last.detail = at_ns, status, detail
