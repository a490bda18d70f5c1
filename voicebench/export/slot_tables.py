"""A slot run's figures as tables of text: what each mode gets out in the slot, and how fast it is."""

from __future__ import annotations

from collections.abc import Iterable

from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.report import Report
from voicebench.analysis.statistics import Summary
from voicebench.export.tables import EMPTY, Table, number, percent
from voicebench.export.turn_text import mode_name

SHOWN_FIRST_MS = (50, 100, 150, 200, 300, 400)
"""Assumed times to the first token that are shown; the report holds more."""


def slot_run_tables(report: Report) -> tuple[Table, ...]:
    """All tables of a slot run, in the order in which they are read."""
    return (delivered_table(report), pace_table(report), sweep_table(report))


def _name(entry: ModeReport) -> str:
    return mode_name(entry.mode, entry.kind)


def delivered_table(report: Report) -> Table:
    """What had come by the end of each nominal slot, beside the headline figure."""
    return Table(
        title="Delivered by the end of the slot (medians)",
        columns=(
            "mode",
            "slot (ms)",
            "headline tokens",
            "tokens",
            "characters",
            "words",
            "sentences",
            "speech (s)",
            "clause ready",
        ),
        rows=tuple(_delivered_rows(report)),
        note="Headline tokens are decode rate times slot, measured / published (~ assumed), without the wait "
        "for the first token; the other columns are what a voice would have had. clause ready: the share of "
        "replies whose first sentence was there.",
        optional=("characters",),
    )


def _delivered_rows(report: Report) -> Iterable[tuple[str, ...]]:
    for entry in report.modes:
        for slot in entry.slots:
            headline = entry.headlines.get(slot.slot)
            if headline is None:
                continue
            sign = "~ " if headline.assumed and headline.published is not None else ""
            yield (
                _name(entry),
                slot.slot,
                f"{number(headline.measured, 1)} / {sign}{number(headline.published, 1)}",
                number(slot.delivered["tokens"].p50),
                number(slot.delivered["characters"].p50),
                number(slot.delivered["words"].p50),
                number(slot.delivered["sentences"].p50),
                number(slot.delivered["speech_s"].p50, 1),
                percent(slot.clause_ready.share),
            )


def pace_table(report: Report) -> Table:
    """First token, first text, decode rate, gaps between deltas and price."""
    return Table(
        title="First token and pace (ms; medians)",
        columns=(
            "mode",
            "completed",
            "first token",
            "first text",
            "p95",
            "cold",
            "decode (tok/s)",
            "delta gap p50",
            "p99",
            "max",
            "USD a reply",
        ),
        rows=tuple(
            (
                _name(entry),
                f"{entry.ledger.outcomes['completed']} of {entry.ledger.planned}",
                number(entry.ttft.p50),
                number(entry.ttfat.p50),
                _high(entry.ttfat),
                number(entry.cold_ttfat.p50),
                number(entry.decode_rate.p50, 1),
                number(entry.gaps.p50, 1),
                number(entry.gaps.p99, 1),
                number(entry.gaps.max, 1),
                number(entry.usd_per_turn.p50, 4),
            )
            for entry in report.modes
        ),
        note="On connections that were open. p95 is that of the first text, below n = 20 its maximum. cold: "
        "first text of requests that had to open a connection, which are in no other figure.",
        optional=("first token",),
    )


def _high(summary: Summary) -> str:
    """p95, or where n is too small for it the maximum, named as such."""
    if summary.p95 is not None:
        return number(summary.p95)
    return EMPTY if summary.max is None else f"max {number(summary.max)}"


def sweep_table(report: Report) -> Table:
    """Delivered tokens over an assumed time to the first token."""
    return Table(
        title="Tokens by the end of the slot, had the first text come after",
        columns=("mode", "slot (ms)", *(f"{first} ms" for first in SHOWN_FIRST_MS)),
        rows=tuple(
            (
                _name(entry),
                f"{sweep.slot_ms:g}",
                *(number(told.get(float(first))) for first in SHOWN_FIRST_MS),
            )
            for entry in report.modes
            for sweep in entry.sweeps
            for told in (dict(zip(sweep.first_ms, sweep.tokens, strict=True)),)
        ),
        note="Each stream keeps its own pace and stalls and is only moved. report.json has 50 to 1000 ms.",
    )
