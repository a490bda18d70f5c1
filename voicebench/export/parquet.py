"""The journal as a Parquet table: the rows and columns of the CSV, with types. Needs the extra `parquet`."""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Sequence
from typing import Any

from voicebench.analysis.ledger import counts
from voicebench.analysis.report import Report
from voicebench.errors import MissingExtra
from voicebench.export.csv_rows import columns_of
from voicebench.turns.durable import strict_json, whole_text
from voicebench.turns.records import TurnRecord

_INSIDE = {
    "marks_ns": "int64",
    "usage": "int64",
    "wer": "int64",
    "stages_ms": "float64",
    "work_ms": "float64",
    "pipecat_ms": "float64",
}
"""The type of the columns `field.name`."""
_PLAIN = {bool: "bool_", int: "int64", float: "float64"}
_ADDED = {"emulated": "bool_", "counted": "bool_"}


def type_of(column: str) -> str:
    """The name of a column's Arrow type: it follows from the record's field, not from what a run holds."""
    field, _, name = column.partition(".")
    if column in _ADDED:
        return _ADDED[column]
    if name:
        return _INSIDE[field]
    annotation = TurnRecord.model_fields[field].annotation
    options = [one for one in typing.get_args(annotation) if one is not types.NoneType] or [annotation]
    return _PLAIN.get(typing.cast(type, options[0]), "string") if len(options) == 1 else "string"


def value_of(record: TurnRecord, column: str) -> Any:
    """The value of one turn in one column of `csv_rows.columns_of`: a number, a truth value, text or None.

    Lists of codes are joined by a semicolon and other structures are strict JSON, as in the CSV. Text is as
    it is: nothing takes a Parquet cell for a formula.
    """
    if column == "emulated":
        return record.mode_kind == "emulated"
    if column == "counted":
        return counts(record) and record.voice_to_voice_ms is not None
    field, _, name = column.partition(".")
    value = getattr(record, field)
    if name:
        inside = value if isinstance(value, dict) or value is None else dict(value)
        return (inside or {}).get(name)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return whole_text(str(value))
    if field in ("flags", "caveats"):
        return whole_text(";".join(value))
    return strict_json(value).decode()


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The records as one Parquet file. Raises MissingExtra where pyarrow is not installed."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet", "The format parquet") from error
    columns = columns_of(records)
    schema = arrow.schema(
        [(whole_text(column), getattr(arrow, type_of(column))()) for column in columns],
        metadata={
            "voicebench.run": whole_text(report.run.id),
            "voicebench.started_at": whole_text(report.run.started_at),
        },
    )
    arrays = [
        arrow.array([value_of(record, column) for record in records], type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data
