"""The end of a slot run: its report, built as for `batch`, and the requests on new connections beside it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from voicebench.analysis.report import Report
    from voicebench.turns.records import TurnRecord
    from voicebench.turns.run_folder import RunFolder

NS_PER_MS = 1_000_000


def show_slot_run(folder: RunFolder, *, as_json: bool) -> None:
    """Write `report.json` into the run's folder and print the tables; with `as_json` the report as JSON.

    The JSON is that of `report.json` and `cold_connections` beside it.
    """
    from rich.console import Console
    from rich.text import Text

    from voicebench.cli.report import say_written
    from voicebench.export.run_report import report_of, write_report
    from voicebench.export.terminal import print_report
    from voicebench.export.texts import one_line
    from voicebench.turns.durable import strict_json

    made = report_of(folder)
    files = write_report(made, ["json"])
    colds = cold_connections(folder.warmup().records, made.report)
    console = Console(stderr=as_json, highlight=False)
    print_report(made.report, console)
    for line in cold_lines(colds):
        console.print(Text(one_line(line)))
    if as_json:
        typer.echo(strict_json({**made.report.to_dict(), "cold_connections": colds}).decode())
    say_written(files)


def cold_connections(records: Sequence[TurnRecord], report: Report) -> dict[str, dict[str, Any]]:
    """By mode: the requests that opened a connection, their first texts and what opening took, in ms.

    `warm_ttfat_ms` is the median first text of the measured requests beside them. None: not known.
    """
    found: dict[str, dict[str, Any]] = {}
    for entry in report.modes:
        mine = [record for record in records if record.mode == entry.mode]
        firsts = [first for record in mine if (first := _ttfat_ms(record)) is not None]
        opened = [record.connect_ms for record in mine if record.connect_ms is not None]
        found[entry.mode] = {
            "n": len(mine),
            "ttfat_ms": firsts,
            "connect_ms": opened,
            "warm_ttfat_ms": entry.ttfat.p50,
        }
    return found


def cold_lines(colds: dict[str, dict[str, Any]]) -> list[str]:
    """What is told of requests on new connections, one line a mode; none where there were none."""
    lines = []
    for mode, cold in colds.items():
        if not cold["ttfat_ms"]:
            continue
        told = f"first text {statistics.median(cold['ttfat_ms']):.0f} ms"
        if cold["connect_ms"]:
            told += f", of which {statistics.median(cold['connect_ms']):.1f} ms opened the connection"
        lines.append(f"• {mode}, on a new connection (n {cold['n']}, in no figure above): {told}")
    return lines


def _ttfat_ms(record: TurnRecord) -> float | None:
    begin, first = record.marks_ns.get("llm_request"), record.marks_ns.get("llm_first_text")
    return None if begin is None or first is None else (first - begin) / NS_PER_MS
