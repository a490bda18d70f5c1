"""The latency from the schedule beside the service time, as rows of text; empty without a schedule."""

from __future__ import annotations

from voicebench.analysis.report import Report
from voicebench.analysis.statistics import Summary
from voicebench.export.tables import Table, number, several_anchors
from voicebench.export.turn_text import mode_name

TITLE = "From the schedule (ms)"
COLUMNS = (
    "mode",
    "n",
    "waited",
    "queue mean / max",
    "service mean / p50",
    "from schedule mean / p50",
    "high",
)
NOTE = (
    "Service is a turn's own latency; from the schedule holds the wait for a free session as well. high: p95 "
    "of the latency from the schedule, the maximum where n is below 20."
)


def load_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """A row for each entry that was run on a schedule."""
    rows = []
    for entry in report.modes:
        load = entry.load
        if not load.scheduled:
            continue
        anchor = f", {entry.anchor.value}" if entry.anchor is not None and several_anchors(report) else ""
        total = load.from_schedule
        high = f"p95 {number(total.p95)}" if total.p95 is not None else f"max {number(total.max)}"
        rows.append(
            (
                f"{mode_name(entry.mode, entry.kind)}{anchor}",
                str(total.n),
                str(load.waited),
                f"{number(load.queue.mean)} / {number(load.queue.max)}",
                _mean_and_median(load.service),
                _mean_and_median(total),
                high,
            )
        )
    return tuple(rows)


def load_tables(report: Report) -> tuple[Table, ...]:
    """The latency from the schedule beside the service time; no table for a run without a schedule."""
    rows = load_rows(report)
    return (Table(TITLE, COLUMNS, rows, NOTE),) if rows else ()


def load_line(report: Report) -> str | None:
    """The load in a line: sessions, rate asked and achieved. None for turns that followed one another."""
    load = report.run.load
    if load is None:
        return None
    rate, achieved = load.get("rate_per_s"), load.get("achieved_per_s")
    sessions = load.get("sessions", 1)
    told = "one session" if sessions == 1 else f"{sessions} sessions at once"
    if rate is not None:
        told += f", {rate:g} turns a second on a schedule"
    return told if achieved is None else f"{told}, {achieved:.2g} a second run"


def _mean_and_median(summary: Summary) -> str:
    return f"{number(summary.mean)} / {number(summary.p50)}"
