"""The commands, each in a file of its own. Importing this loads no library beside typer."""

from __future__ import annotations

from typing import Annotated

import typer

from voicebench import __version__
from voicebench.cli import models, samples
from voicebench.cli.batch import batch
from voicebench.cli.check import check
from voicebench.cli.compare import compare
from voicebench.cli.doctor import doctor
from voicebench.cli.emulate import emulate
from voicebench.cli.live import live
from voicebench.cli.measure import measure
from voicebench.cli.modes import modes
from voicebench.cli.report import report
from voicebench.cli.slot import slot
from voicebench.errors import ExitStatus

USAGE_PROBLEM: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""What typer raises for wrong usage: the parent of the one such class that it exports by name."""

app = typer.Typer(
    name="voicebench",
    help="Measure voice agents on real audio: every turn held against the 800 ms budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"voicebench {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure voice agents on real audio: every turn held against the 800 ms budget."""


app.command()(batch)
app.command()(live)
app.command()(slot)
app.command()(report)
app.command()(measure)
app.command()(compare)
app.command()(check)
app.command()(modes)
app.command()(emulate)
app.command()(doctor)
app.add_typer(models.app, name="models")
app.add_typer(samples.app, name="samples")


def run(arguments: list[str]) -> int:
    """Run the command line `arguments`; returns the exit status. VoicebenchErrors pass through."""
    command = typer.main.get_command(app)
    try:
        status = command.main(args=arguments, prog_name="voicebench", standalone_mode=False)
    except SystemExit:
        # typer and rich answer a reader that has left with status 1, which says that a limit is breached.
        raise BrokenPipeError from None
    except USAGE_PROBLEM as problem:
        problem.show()
        return int(ExitStatus.BAD_REQUEST)
    except typer.Abort:
        return int(ExitStatus.INTERRUPTED)
    return status if isinstance(status, int) else int(ExitStatus.DONE)
