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
    embed_audio: Annotated[
        bool,
        typer.Option(
            "--embed-audio", help="Put the kept recordings into the HTML file; else it links to them."
        ),
    ] = False,
) -> None:
    """Write a run's report, and print it; of several runs also the trend. A run not finished is partial."""
    from voicebench.errors import BadRequest
    from voicebench.export.registry import parse_formats
    from voicebench.export.run_report import report_of, write_report
    from voicebench.turns.run_folder import RunFolder

    wanted = parse_formats(formats)
    if len(run) > 1 and out is not None:
        raise BadRequest(f"--out takes one run, and {len(run)} are named.", "Report them one by one.")
    told = []
    for folder in run:
        made = report_of(RunFolder.open(folder))
        if len(run) == 1:
            show(made, as_json=as_json, verbose=verbose)
        else:
            _print(made, to_error=as_json, verbose=verbose)
        say_written(write_report(made, wanted, out, embed_audio=embed_audio))
        told.append(made)
    if len(run) > 1:
        _show_history(told, as_json=as_json)


def _show_history(runs: Sequence[RunReport], *, as_json: bool) -> None:
    """Print the trend over several runs; with `as_json` one JSON object of it and of every report."""
    from rich.console import Console

    from voicebench.analysis.history import history_of
    from voicebench.export.comparison_tables import history_tables
    from voicebench.export.comparison_terminal import print_tables
    from voicebench.export.report_json import plain_report
    from voicebench.turns.durable import strict_json

    history = history_of([made.report for made in runs])
    print_tables(Console(stderr=as_json, highlight=False), [], history_tables(history))
    if as_json:
        whole = {**history.to_dict(), "runs": [plain_report(made.report, made.records) for made in runs]}
        typer.echo(strict_json(whole, indent=2).decode())


def show(made: RunReport, *, as_json: bool, verbose: bool = False) -> None:
    """Print a report: tables for people, and with `as_json` one JSON object on standard output.

    With `as_json`, what is meant for people goes to standard error.
    """
    from voicebench.export.report_json import export

    _print(made, to_error=as_json, verbose=verbose)
    if as_json:
        typer.echo(export(made.report, made.records).decode(), nl=False)


def _print(made: RunReport, *, to_error: bool, verbose: bool) -> None:
    """Print a report's tables, on standard error where standard output is for programs."""
    from rich.console import Console

    from voicebench.export.terminal import print_report, turn_line, waterfall

    console = Console(stderr=to_error, highlight=False, emoji=False)
    if verbose:
        for record in made.records:
            console.print(turn_line(record), markup=False, soft_wrap=True)
            bars = waterfall(record, made.report.budget_ms, min(console.width, 120))
            console.print(bars, markup=False, soft_wrap=True)
    print_report(made.report, console)


def say_written(files: Sequence[Path]) -> None:
    """Say on standard error what was written."""
    from voicebench.models.names import printable

    for file in files:
        typer.echo(printable(f"wrote {file}"), err=True)
