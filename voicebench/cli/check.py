"""`voicebench check`: hold a run against limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from voicebench.analysis.gate import Check
    from voicebench.analysis.mode_report import ModeReport
    from voicebench.analysis.report import Report
    from voicebench.turns.records import TurnRecord


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    p50_ms: Annotated[
        float | None, typer.Option("--p50-ms", help="The median of V2V is at most this; proven from n = 6.")
    ] = None,
    p95_ms: Annotated[
        float | None, typer.Option("--p95-ms", help="p95 of V2V is at most this; proven from n = 59.")
    ] = None,
    hit_rate: Annotated[
        float | None,
        typer.Option("--hit-rate", help="The share within the budget is at least this (0 to 1)."),
    ] = None,
    cutoff_rate: Annotated[
        float | None, typer.Option("--cutoff-rate", help="The share of cutoffs is at most this (0 to 1).")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="Hold this mode; repeatable. None: every mode.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Hold a run against limits: status 0 passed, 1 breached, 3 not proven, 4 some turns failed."""
    from rich.console import Console

    from voicebench.analysis.gate import Limits, check_mode
    from voicebench.errors import BadRequest
    from voicebench.export.comparison_tables import checks_table
    from voicebench.export.comparison_terminal import print_tables
    from voicebench.export.run_report import report_of
    from voicebench.turns.durable import strict_json
    from voicebench.turns.run_folder import RunFolder

    limits = Limits(p50_ms, p95_ms, hit_rate, cutoff_rate)
    if limits.empty:
        raise BadRequest(
            "check has no limit to hold the run against.",
            "Name at least one of --p50-ms, --p95-ms, --hit-rate, --cutoff-rate.",
        )
    made = report_of(RunFolder.open(run))
    entries = _entries(made.report, mode or ())
    checks = [found for entry in entries for found in check_mode(entry, made.records, limits)]
    held = {entry.mode for entry in entries}
    failed = failed_turns(record for record in made.records if record.mode in held)
    result = gate_result(checks, failed)
    lines = [f"run {made.report.run.id}, {made.report.run.started_at}: {result['status']}"]
    if failed:
        lines.append(f"Turns that failed: {failed}")
    notes = _notes(made.report, entries)
    print_tables(Console(stderr=as_json, highlight=False), lines, [checks_table(checks)], notes)
    if as_json:
        told = {
            "schema": 1,
            "run": made.report.run.id,
            "budget_ms": made.report.budget_ms,
            **result,
            "notes": notes,
        }
        typer.echo(strict_json(told, indent=2).decode())
    raise typer.Exit(result["exit_status"])


def failed_turns(records: Iterable[TurnRecord]) -> int:
    """How many of the turns give the exit status 4."""
    from voicebench.cli.batch import status_of
    from voicebench.errors import ExitStatus

    return sum(status_of([record]) is ExitStatus.TURNS_FAILED for record in records)


def gate_result(checks: Sequence[Check], failed: int) -> dict[str, Any]:
    """The findings and what the process tells the shell, as plain values."""
    from voicebench.analysis.gate import status_of_checks
    from voicebench.errors import ExitStatus

    status = status_of_checks(checks, failed > 0)
    words = {
        ExitStatus.DONE: "pass",
        ExitStatus.LIMIT_BREACHED: "breach",
        ExitStatus.NOT_PROVEN: "not proven",
        ExitStatus.TURNS_FAILED: "some turns failed",
    }
    return {
        "status": words[status],
        "exit_status": int(status),
        "failed_turns": failed,
        "checks": [one.to_dict() for one in checks],
    }


def _entries(report: Report, modes: Sequence[str]) -> list[ModeReport]:
    """The entries of these modes, of all for none. Raises BadRequest for a mode that the run has not."""
    from voicebench.errors import BadRequest

    known = list(dict.fromkeys(entry.mode for entry in report.modes))
    for mode in modes:
        if mode not in known:
            raise BadRequest(
                f"The run {report.run.id} has no mode {mode!r}.", f"It has: {', '.join(known) or 'none'}."
            )
    if not known:
        raise BadRequest(f"The run {report.run.id} has no turns.", "Name a run with turns.")
    return [entry for entry in report.modes if not modes or entry.mode in modes]


def _notes(report: Report, entries: Sequence[ModeReport]) -> list[str]:
    """What bears on the findings: a run that was not finished, repeats, emulation."""
    notes = []
    if not report.complete:
        notes.append("The run was not finished: the limits are held by the turns that were run.")
    for entry in entries:
        n = entry.voice_to_voice.n
        if entry.samples and n > entry.samples:
            notes.append(
                f"{entry.mode}: {n} turns of {entry.samples} samples. The bounds of p95 and of the shares "
                "take turns as independent, which repeats of a sample are not."
            )
        if entry.kind == "emulated":
            notes.append(f"{entry.mode}: emulated, no model was asked.")
    return notes
