"""`report.json`: the report as strict JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voicebench.analysis.report import Report
from voicebench.analysis.verdict import Verdict, verdict_of
from voicebench.turns.durable import strict_json
from voicebench.turns.records import TurnRecord


def plain_report(
    report: Report, records: Sequence[TurnRecord], verdict: Verdict | None = None
) -> dict[str, Any]:
    """The plain values of `report.json`: the report, and under `verdict` what is to be said of it first.

    `verdict` is made where it is not given. A run without audio has no latency to judge: its verdict is None.
    """
    told = None if report.run.command == "slot" else verdict or verdict_of(report, records)
    return {**report.to_dict(), "verdict": None if told is None else told.to_dict()}


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The report as one JSON object in UTF-8, indented, with a line feed at its end."""
    return strict_json(plain_report(report, records), indent=2) + b"\n"
