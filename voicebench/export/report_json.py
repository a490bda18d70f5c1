"""`report.json`: the report as strict JSON."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.report import Report
from voicebench.turns.durable import strict_json
from voicebench.turns.records import TurnRecord


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The report as one JSON object in UTF-8, indented, with a line feed at its end."""
    return strict_json(report.to_dict(), indent=2) + b"\n"
