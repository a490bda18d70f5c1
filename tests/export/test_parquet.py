"""Parquet: the CSV's rows and columns, with types."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from tests.analysis.made_run import made_run, run_info
from tests.turns.made import made
from voicebench.analysis.report import build_report
from voicebench.errors import MissingExtra
from voicebench.export import csv_rows, parquet
from voicebench.turns.records import TurnRecord


def table_of(records: Sequence[TurnRecord]) -> Any:
    """The table, read back."""
    arrow = pytest.importorskip("pyarrow")
    reader = pytest.importorskip("pyarrow.parquet")
    data = parquet.export(build_report(run_info(records), records), records)
    return reader.read_table(arrow.BufferReader(data))


def test_rows_and_columns_equal_the_csvs() -> None:
    """Each value written as a CSV cell is the CSV's own cell, in the same columns and order."""
    info, records = made_run()
    records.append(made(999, reply="=1+1", sample="+x", language="-1", usage={"output_tokens": 3}))
    records.append(made(1000, outcome="failed", reason="@gone", wer=None, caveats=["a", "b"]))
    table = table_of(records)
    text = csv_rows.export(build_report(info, records), records).decode()
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    assert table.column_names == reader.fieldnames
    told = [{name: csv_rows.cell(value) for name, value in row.items()} for row in table.to_pylist()]
    assert told == rows


def test_types_do_not_depend_on_what_a_run_holds() -> None:
    """A run whose every optional figure is empty has the same column types as one that has them all."""
    full = table_of([made(0, usd=0.1, usage={"input_tokens": 1}, wer={"errors": 0, "words": 3}, cutoffs=1)])
    bare = table_of(
        [made(0, outcome="failed", marks={}, without=(), lag_ms=None, transcript=None, deltas=[])]
    )
    shared = set(full.column_names) & set(bare.column_names)
    assert {name: full.schema.field(name).type for name in shared} == {
        name: bare.schema.field(name).type for name in shared
    }
    types = {name: str(full.schema.field(name).type) for name in full.column_names}
    assert types["voice_to_voice_ms"] == types["stages_ms.asr"] == types["usd"] == "double"
    assert types["marks_ns.speech_end"] == types["repeat"] == types["usage.input_tokens"] == "int64"
    assert types["emulated"] == types["answer_correct"] == types["speech_in_sample"] == "bool"
    assert types["reply"] == types["deltas"] == types["outcome"] == types["flags"] == "string"


def test_figures_are_whole_and_text_is_as_it_was() -> None:
    """Latency keeps every digit, nanoseconds are integers, and text has no apostrophe before it."""
    record = made(0, v2v_ms=712.345678, reply="=cmd()")
    (row,) = table_of([record]).to_pylist()
    assert row["voice_to_voice_ms"] == record.voice_to_voice_ms
    assert row["marks_ns.first_audible"] == 712_345_678
    assert row["reply"] == "=cmd()"
    assert row["counted"] is True


def test_a_run_without_turns_is_an_empty_table() -> None:
    """No records give a table without rows, with its columns."""
    table = table_of([])
    assert table.num_rows == 0
    assert "voice_to_voice_ms" in table.column_names


def test_texts_that_utf8_cannot_hold_are_written() -> None:
    """Lone surrogates in any text column become U+FFFD."""
    half = "half \ud83d"
    (row,) = table_of(
        [made(0, reply=half, sample=half, mode=half, outcome="failed", reason=half)]
    ).to_pylist()
    assert row["reply"] == row["sample"] == row["mode"] == row["reason"] == "half \ufffd"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow the export says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"voicebench-testbed\[parquet\]"):
        parquet.export(build_report(run_info(), [made(0)]), [made(0)])
