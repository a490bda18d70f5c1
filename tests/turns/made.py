"""Made turn records for tests: valid, consistent, and different only where a test says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voicebench.turns.records import TurnRecord, stages_as_ms
from voicebench.turns.timeline import Anchor, Mark, Timeline

MS = 1_000_000

STAGES_MS: dict[Mark, float] = {
    Mark.VAD_STOP: 200,
    Mark.TRANSCRIPT_FINAL: 80,
    Mark.TURN_END: 20,
    Mark.LLM_REQUEST: 10,
    Mark.LLM_FIRST_TEXT: 200,
    Mark.TTS_REQUEST: 100,
    Mark.TTS_FIRST_BYTE: 60,
    Mark.FIRST_AUDIBLE: 30,
}
"""How long after the mark before it each mark comes: a turn of 700 ms."""

REPLY = "It opens at nine in the morning. On Sundays it is closed."


def made_marks(v2v_ms: float | None = None, **stages_ms: float) -> dict[Mark, int]:
    """Marks in ns from `speech_end`. A stage is named by its end mark (`llm_first_text=350`).

    With `v2v_ms`, the last stage (`playout`) takes what is missing to that total; it may become negative.
    """
    parts = {**STAGES_MS, **{Mark(name): value for name, value in stages_ms.items()}}
    if v2v_ms is not None:
        parts[Mark.FIRST_AUDIBLE] += v2v_ms - sum(parts.values())
    marks, at = {Mark.SPEECH_END: 0}, 0
    for mark, part in parts.items():
        at += round(part * MS)
        marks[mark] = at
    marks[Mark.LLM_FIRST_TOKEN] = marks[Mark.LLM_FIRST_TEXT] - 5 * MS
    return marks


def made_deltas(
    count: int = 20, first_ms: float = 200, gap_ms: float = 15, tokens: float = 1, reply: str = REPLY
) -> tuple[tuple[int, int, float], ...]:
    """`count` deltas that share out the characters of `reply`, the first at `first_ms` in the slot."""
    cuts = [len(reply) * place // count for place in range(count + 1)]
    return tuple(
        (round((first_ms + place * gap_ms) * MS), cuts[place + 1] - cuts[place], tokens)
        for place in range(count)
    )


def made(
    turn: int = 0,
    *,
    v2v_ms: float | None = None,
    marks: Mapping[Mark, int] | None = None,
    without: tuple[Mark, ...] = (),
    **fields: Any,
) -> TurnRecord:
    """A completed turn of 700 ms, or of `v2v_ms`, less the marks in `without`; `fields` replace any field.

    Its stages and latency follow from its marks. A turn with another outcome has no latency.
    """
    kept = {mark: ns for mark, ns in (marks or made_marks(v2v_ms)).items() if mark not in without}
    timeline = Timeline(kept)
    total = timeline.voice_to_voice_ns
    completed = fields.get("outcome", "completed") == "completed"
    values: dict[str, Any] = {
        "run": "20260102T030405Z-abc123",
        "turn": turn,
        "mode": "local/made",
        "mode_kind": "local",
        "model": "made-1",
        "sample": f"sample-{turn:03d}",
        "repeat": 0,
        "speech_in_sample": True,
        "outcome": "completed",
        "anchor": Anchor.ANNOTATED,
        "marks_ns": timeline.relative(),
        "stages_ms": stages_as_ms(timeline) if completed else None,
        "voice_to_voice_ms": total / MS if completed and total is not None else None,
        "deltas": made_deltas(),
        "token_count": "usage",
        "clause_ready_ns": 300 * MS,
        "reply_end_ns": 485 * MS,
        "transcript": "when do you open",
        "reply": REPLY,
        "first_clause": "It opens at nine in the morning.",
        "lag_ms": 1.0,
    }
    return TurnRecord.model_validate({**values, **fields})
