"""The journal as a flat table: one row a turn, one column a figure, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from voicebench.analysis.ledger import counts
from voicebench.analysis.report import Report
from voicebench.turns.durable import strict_json, whole_text
from voicebench.turns.records import TurnRecord, Usage, Wer
from voicebench.turns.timeline import Mark, Stage

FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
"""What a spreadsheet may take for the beginning of a formula, full-width forms included."""

_NAMED = {
    "marks_ns": [mark.value for mark in Mark],
    "stages_ms": [stage.value for stage in Stage],
    "usage": list(Usage.model_fields),
    "wer": list(Wer.model_fields),
}
"""Fields with columns of their own for each of their known names."""
_FOUND = ("work_ms", "pipecat_ms")
"""Fields with a column for each name that occurs in the run."""
_JOINED = ("flags", "caveats")
"""Lists of codes, joined by a semicolon."""


def safe_text(text: str) -> str:
    """`text` as a cell that no spreadsheet runs: with an apostrophe before the start of a formula."""
    whole = whole_text(text)
    return f"'{whole}" if whole[:1] in FORMULA_STARTS and whole else whole


def cell(value: Any) -> str:
    """One value as a cell. Numbers stay numbers, also negative ones; None is empty; structures are JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return safe_text(str(value))
    return safe_text(strict_json(value).decode())


def columns_of(records: Iterable[TurnRecord]) -> list[str]:
    """The columns: a record's fields in order, those with names inside as `field.name`, and two more.

    `emulated` marks rows of replayed figures, `counted` those that are in the latency statistics.
    """
    found: dict[str, set[str]] = {field: set() for field in _FOUND}
    for record in records:
        for field, names in found.items():
            names.update(getattr(record, field))
    columns = []
    for field in TurnRecord.model_fields:
        inside = _NAMED.get(field) or (sorted(found[field]) if field in found else None)
        columns.extend([field] if inside is None else [f"{field}.{name}" for name in inside])
    return [*columns, "emulated", "counted"]


def row_of(record: TurnRecord) -> dict[str, str]:
    """One turn as column to cell; what it has not is not there."""
    row: dict[str, str] = {
        "emulated": cell(record.mode_kind == "emulated"),
        "counted": cell(counts(record) and record.voice_to_voice_ms is not None),
    }
    for field in TurnRecord.model_fields:
        value = getattr(record, field)
        if field in _NAMED or field in _FOUND:
            parts = value if isinstance(value, dict) or value is None else dict(value)
            row.update({f"{field}.{name}": cell(part) for name, part in (parts or {}).items()})
        elif field in _JOINED:
            row[field] = cell(";".join(value))
        else:
            row[field] = cell(value)
    return row


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The records as CSV in UTF-8 (RFC 4180 quoting, line feeds), a header first."""
    columns = columns_of(records)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(row_of, records))
    return whole_text(text.getvalue()).encode()
