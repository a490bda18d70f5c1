"""Which candidate is taken, and when: pure, from what has come of each by an instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from voicebench.plan.config import Clause
from voicebench.stages.clauses import ready
from voicebench.turns.slot import sentence_ends
from voicebench.turns.stream import StreamLog

Score = Callable[[str], float]


@dataclass(frozen=True)
class Choice:
    """The candidate that is taken."""

    index: int
    by: str
    """`first_clause`, `longest_by_slot`, `scorer`; or `none_complete` where no candidate had what its rule
    looks for and none will."""
    scores: tuple[float | None, ...] = ()
    """The score of each candidate, in their order. None: there was nothing to score."""


def clause_ns(stream: StreamLog, clause: Clause) -> int | None:
    """When the first clause of this stream was complete, in ns of the monotonic clock; None: not yet.

    By the rule that sends the first piece of a reply to synthesis; at the latest when the reply has ended.
    """
    text = ""
    for at, piece in stream.deltas:
        text += piece
        if clause.rule == "sentence":
            visible = len(text.rstrip())
            if any(end < visible for end in sentence_ends(text)):
                return at
        elif ready(text, clause) is not None:
            return at
    return stream.end_ns if stream.status == "ok" and text.strip() else None


def complete_text(stream: StreamLog, by_ns: int) -> str:
    """The whole reply where it had ended by that instant, else its complete sentences; empty: none."""
    if stream.status == "ok" and stream.end_ns is not None and stream.end_ns <= by_ns:
        return stream.text.strip()
    text = "".join(piece for at, piece in stream.deltas if at <= by_ns)
    ends = [end for end in sentence_ends(text) if end < len(text.rstrip())]
    return text[: ends[-1]].strip() if ends else ""


def first_clause(streams: Sequence[StreamLog], clause: Clause) -> Choice | None:
    """The one whose first clause was complete first, of equals the first asked; None: none is yet."""
    found = [(at, index) for index, one in enumerate(streams) if (at := clause_ns(one, clause)) is not None]
    if found:
        return Choice(min(found)[1], "first_clause")
    return _hopeless(streams)


def best_by(
    streams: Sequence[StreamLog], slot_end_ns: int, now_ns: int, score: Score, by: str
) -> Choice | None:
    """The one with the highest score of its complete text at the slot's end, or as soon as all have ended.

    Of equals the first asked. A candidate that failed is none. None: it is not time yet, or none has a
    complete text so far.
    """
    over = all(not one.running for one in streams)
    if now_ns < slot_end_ns and not over:
        return None
    until = min(now_ns, slot_end_ns)
    texts = [complete_text(one, until) if one.status in ("running", "ok") else "" for one in streams]
    scores = tuple(score(text) if text else None for text in texts)
    scored = [(-value, index) for index, value in enumerate(scores) if value is not None]
    if scored:
        return Choice(min(scored)[1], by, scores)
    return _hopeless(streams)


def _hopeless(streams: Sequence[StreamLog]) -> Choice | None:
    """Where all have ended and none can be taken: the one that came closest to a reply."""
    if any(one.running for one in streams):
        return None
    order = {"ok": 0, "truncated": 1}
    closest = min(range(len(streams)), key=lambda index: (order.get(streams[index].status, 2), index))
    return Choice(closest, "none_complete")
