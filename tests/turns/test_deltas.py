"""Deltas are packed, and read, compared and written as the tuple that they stand for."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tests.turns.made import MS, made
from voicebench.plan.modes import Mode
from voicebench.turns.deltas import Deltas
from voicebench.turns.durable import strict_json
from voicebench.turns.journal import journal_line
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import Delivery, delta_gaps_ns
from voicebench.turns.stream import StreamLog
from voicebench.turns.stream_fields import stream_fields

PLAIN = ((-5 * MS, 3, 1.5), (7 * MS, 4, 0.25), (9 * MS, 0, 2.0))


@given(st.lists(st.tuples(st.integers(-(2**53), 2**53), st.integers(0, 2**31), st.floats(allow_nan=False))))
def test_packed_deltas_are_the_tuple_that_went_in(deltas: list[tuple[int, int, float]]) -> None:
    """Every number comes out as it went in, one by one, by place, by slice and after pickling."""
    packed = Deltas(deltas)
    assert packed == tuple(deltas)
    assert [*packed] == deltas
    assert len(packed) == len(deltas)
    assert [packed[place] for place in range(-len(deltas), len(deltas))] == deltas * 2
    assert packed[1:3] == tuple(deltas)[1:3]
    assert hash(packed) == hash(tuple(deltas))
    assert pickle.loads(pickle.dumps(packed)) == packed
    assert all(type(at) is int and type(count) is int for at, count, _ in packed)


def test_a_record_writes_and_takes_them_as_plain_lists() -> None:
    """In the journal they are lists of numbers, the first two whole; a record takes lists or packed ones."""
    record = made(0, deltas=PLAIN)
    line = journal_line(record)
    assert json.loads(line)["deltas"] == [list(delta) for delta in PLAIN]
    assert b"[-5000000,3,1.5]" in line
    assert TurnRecord.model_validate_json(line) == record
    assert made(0, deltas=[list(delta) for delta in PLAIN]).deltas == PLAIN
    assert made(0, deltas=Deltas(PLAIN)).deltas == PLAIN


@pytest.mark.parametrize("beside", ["a", "\ud83d", Path("a")])
def test_packed_ones_are_strict_json_by_themselves(beside: object) -> None:
    """Wherever they stand they are written as the tuple, also beside text that must be mended first; an
    object that is no value is still refused."""
    assert strict_json({"all": Deltas(PLAIN), "beside": beside}) == strict_json(
        {"all": PLAIN, "beside": beside}
    )
    assert strict_json(Deltas(PLAIN)) == strict_json(PLAIN)
    with pytest.raises(PydanticSerializationError):
        strict_json([Deltas(PLAIN), beside, object()])


@pytest.mark.parametrize("wrong", [[[1, 2]], [["a", 1, 1]], [[1.5, 1, 1]], 7, [[10**400, 1, 1]]])
def test_what_is_no_delta_is_refused(wrong: object) -> None:
    """Wrong shapes, texts, half nanoseconds and numbers beyond all measure are errors of that field."""
    line = json.loads(journal_line(made(0))) | {"deltas": wrong}
    with pytest.raises(ValidationError) as refused:
        TurnRecord.model_validate(line)
    assert refused.value.errors()[0]["loc"][0] == "deltas"
    with pytest.raises(ValidationError) as in_json:
        TurnRecord.model_validate_json(json.dumps(line))
    assert in_json.value.errors()[0]["loc"][0] == "deltas"


def test_what_came_ahead_of_the_slot_keeps_its_instant() -> None:
    """A request made ahead of the turn's end: its deltas are negative, so that gaps are true, and what had
    come counts at 0."""
    log = StreamLog(request_ns=0, deltas=[(10 * MS, "It "), (30 * MS, "is "), (90 * MS, "Paris.")])
    log.end(95 * MS, "ok")
    mode = Mode(id="a", kind="emulated", provider="x", api="scripted", model="m")
    fields, _ = stream_fields(mode, log, 100 * MS, 0)
    record = made(0, reply="It is Paris.", **{name: fields[name] for name in ("deltas", "reply_end_ns")})
    assert [at for at, _, _ in record.deltas] == [-90 * MS, -70 * MS, -10 * MS]
    assert record.reply_end_ns == -10 * MS
    assert delta_gaps_ns(record) == [20 * MS, 60 * MS]
    assert Delivery(record).by(0).characters == len("It is Paris.")
