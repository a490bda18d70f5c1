"""Replies as columns: the same figures as one reply after another gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.turns.made import made, made_deltas
from tests.turns.strategies import timelines
from voicebench.analysis import courses as courses_module
from voicebench.analysis.courses import Courses
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import (
    TTFT_SWEEP_MS,
    Delivery,
    decode_rate_tok_s,
    delta_gaps_ns,
    llm_span_ns,
    tokens_if_first_at,
)
from voicebench.turns.timeline import LLM_STAGES, Stage, Timeline

FIGURES = ("tokens", "characters", "words", "sentences", "speech_s")
INSTANTS = st.integers(-(10**9), 2 * 10**9)


@st.composite
def replies(draw: st.DrawFn) -> TurnRecord:
    """A record with deltas in any order, with or without its text and synthesis."""
    deltas = draw(st.lists(st.tuples(INSTANTS, st.integers(0, 9), st.floats(0, 9)), max_size=12))
    text = "Ab c. -- _ d3! " * 8
    kept: dict[str, Any] = {"reply": text[: sum(count for _, count, _ in deltas)]}
    if draw(st.booleans()):
        kept = {"reply": None, "first_clause": None}
    elif draw(st.booleans()):
        kept |= {"speech_s": 3.0, "spoken": "Ab c."}
    return made(deltas=deltas, **kept)


def same(column: np.ndarray[Any, Any], values: list[float | None]) -> None:
    """The column holds these values, NaN for None."""
    assert column.tolist() == pytest.approx(
        [float("nan") if one is None else one for one in values], nan_ok=True
    )


@given(st.lists(replies(), max_size=8), st.lists(INSTANTS, min_size=8, max_size=8))
def test_columns_tell_what_single_replies_tell(records: list[TurnRecord], deadlines: list[int]) -> None:
    """By any deadline, moved to any first token, in pace and in gaps: a column is its replies, one by one."""
    courses = Courses(records)
    kept = [record for record in records if record.deltas]
    assert courses.records == kept
    own = deadlines[: len(kept)]
    there = courses.by(np.array(own, dtype=np.float64))
    for name in FIGURES:
        told = [getattr(Delivery(record).by(at), name) for record, at in zip(kept, own, strict=True)]
        same(getattr(there, name), told)
    same(courses.decode_rate_tok_s(), [decode_rate_tok_s(record) for record in kept])
    gaps, reply = courses.gaps_ns()
    assert gaps.tolist() == [gap for record in kept for gap in delta_gaps_ns(record)]
    assert reply.tolist() == [n for n, record in enumerate(kept) for _ in delta_gaps_ns(record)]
    ordered = [record for record in kept if sorted(record.deltas) == list(record.deltas)]
    moved = Courses(ordered).tokens_if_first_at(500, TTFT_SWEEP_MS)
    for row, record in zip(moved, ordered, strict=True):
        same(row, list(tokens_if_first_at(record, 500) or ()))


def test_replies_of_any_length_are_told_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few deltas are laid out at a time, each reply has its own figures."""
    records = [made(n, deltas=made_deltas(count)) for n, count in enumerate((3, 40, 1, 20, 7))]
    at = np.full(5, 3e8)
    whole = Courses(records).by(at)
    monkeypatch.setattr(courses_module, "CELLS", 16)
    for name in FIGURES:
        assert getattr(Courses(records).by(at), name).tolist() == getattr(whole, name).tolist()


@given(timelines)
def test_the_models_part_is_the_sum_of_its_stages(timeline: Timeline) -> None:
    """Whatever marks a turn has: `llm_ttfat` and `clause` as they tile it, or nothing."""
    record = made(marks=timeline.marks) if timeline.marks else made(without=tuple(timeline.marks))
    stages = Timeline(timeline.marks).stages_ns() if timeline.marks else None
    if stages is not None and stages[Stage.DISPATCH] is not None and stages[Stage.CLAUSE] is not None:
        assert llm_span_ns(record) == sum(stages[stage] or 0 for stage in LLM_STAGES)
    elif timeline.marks:
        assert llm_span_ns(record) is None
