"""`voicebench compare`: what changed between two runs, or two modes, and whether turns support it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from voicebench.analysis.comparison import Side


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN_A [RUN_B]", help="Run folders; one with --against.")
    ],
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", help="Compare this mode; repeatable. None: every mode that both have."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Compare --mode, as A, with this mode, as B; also within one run."),
    ] = None,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Hold B: status 1 where proven slower, 0 where proven not to be by 50 ms, else 3.",
        ),
    ] = False,
    p50_ms: Annotated[
        float | None, typer.Option("--p50-ms", help="Gate: B's median may be so much higher.")
    ] = None,
    p95_ms: Annotated[
        float | None, typer.Option("--p95-ms", help="Gate: B's p95 may be so much higher.")
    ] = None,
    hit_rate: Annotated[
        float | None,
        typer.Option("--hit-rate", help="Gate: B's share within the budget may be lower by this share."),
    ] = None,
    cutoff_rate: Annotated[
        float | None,
        typer.Option("--cutoff-rate", help="Gate: B's share of cutoffs may be higher by this share."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
) -> None:
    """Compare two runs of the same samples, turn by turn. Every difference is B less A."""
    from rich.console import Console

    from voicebench.analysis.comparison import compare as compare_sides
    from voicebench.analysis.gate import Limits, check_comparison
    from voicebench.cli.check import failed_turns, gate_result
    from voicebench.errors import BadRequest
    from voicebench.export.comparison_tables import (
        checks_table,
        comparison_lines,
        comparison_tables,
        notes_of,
    )
    from voicebench.export.comparison_terminal import print_tables
    from voicebench.turns.durable import strict_json

    limits = Limits(p50_ms, p95_ms, hit_rate, cutoff_rate)
    if len(runs) > 2:
        raise BadRequest(f"compare takes two runs, and {len(runs)} are named.", "Compare them two by two.")
    if len(runs) == 1 and against is None:
        raise BadRequest(
            "compare takes two runs, and one is named.",
            "Name a second one, or two modes of this one: --mode A --against B.",
        )
    sides = [_side(run) for run in runs]
    a, b = sides[0], sides[-1]
    told = compare_sides(a, b, modes=mode or (), against=against)
    held = gate or not limits.empty
    checks = [check for entry in told.modes for check in check_comparison(entry, limits)] if held else []
    compared = {entry.mode_b for entry in told.modes}
    failed = failed_turns(record for record in b.records if record.mode in compared) if held else 0
    result = gate_result(checks, failed)
    tables = comparison_tables(told)
    lines = comparison_lines(told)
    if held:
        tables.append(checks_table(checks, compared=True))
        lines.append(f"Gate: {result['status']}")
    if failed:
        lines.append(f"Turns of B that failed: {failed}")
    console = Console(stderr=as_json, highlight=False)
    print_tables(console, lines, tables, notes_of(told.caveats))
    if as_json:
        whole = {**told.to_dict(), "gate": result if held else None}
        typer.echo(strict_json(whole, indent=2).decode())
    if held:
        raise typer.Exit(result["exit_status"])


def _side(path: Path) -> Side:
    from voicebench.analysis.comparison import Side
    from voicebench.turns.run_folder import RunFolder

    folder = RunFolder.open(path)
    return Side.of(folder.info(), folder.turns().records)
