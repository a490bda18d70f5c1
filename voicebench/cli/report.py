"""`voicebench report`: tell a run again, in any format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from voicebench.export.run_report import RunReport

DEFAULT_FORMATS = "json"


def report(
    run: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    formats: Annotated[
        str, typer.Option("--format", help="Formats to write, with commas between them.")
    ] = DEFAULT_FORMATS,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder (or, for one format, file) to write to; else the run folder."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON object on standard output.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="A waterfall for each turn.")] = False,
) -> None:
    """Write a run's report, and print it. A run that was not finished is told as partial."""
    from voicebench.errors import BadRequest
    from voicebench.export.registry import parse_formats
    from voicebench.export.run_report import report_of, write_report
    from voicebench.turns.run_folder import RunFolder

    wanted = parse_formats(formats)
    if len(run) > 1 and (as_json or out is not None):
        raise BadRequest(
            f"{'--json' if as_json else '--out'} takes one run, and {len(run)} are named.",
            "Report them one by one.",
        )
    for folder in run:
        made = report_of(RunFolder.open(folder))
        show(made, as_json=as_json, verbose=verbose)
        say_written(write_report(made, wanted, out))


def show(made: RunReport, *, as_json: bool, verbose: bool = False) -> None:
    """Print a report: tables for people, and with `as_json` one JSON object on standard output.

    With `as_json`, what is meant for people goes to standard error.
    """
    from rich.console import Console

    from voicebench.export.report_json import export
    from voicebench.export.terminal import print_report, turn_line, waterfall

    console = Console(stderr=as_json, highlight=False)
    if verbose:
        for record in made.records:
            console.print(turn_line(record), markup=False, soft_wrap=True)
            bars = waterfall(record, made.report.budget_ms, min(console.width, 120))
            console.print(bars, markup=False, soft_wrap=True)
    print_report(made.report, console)
    if as_json:
        typer.echo(export(made.report, made.records).decode(), nl=False)


def say_written(files: Sequence[Path]) -> None:
    """Say on standard error what was written."""
    for file in files:
        typer.echo(f"wrote {file}", err=True)
