"""Run folders made from records, and the commands that tell them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner, Result

from voicebench.cli.check import check
from voicebench.cli.compare import compare
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunFolder

app = typer.Typer()
app.command()(check)
app.command()(compare)


def call(*arguments: str | Path) -> Result:
    """The command line with these arguments; its errors come out."""
    return CliRunner().invoke(
        app, [str(one) for one in arguments], catch_exceptions=False, env={"COLUMNS": "200"}
    )


def folder(path: Path, records: Sequence[TurnRecord], **facts: Any) -> Path:
    """A finished run of these records."""
    made = RunFolder.create(path)
    planned = [{"mode": one.mode, "sample": one.sample, "repeat": one.repeat} for one in records]
    made.start(planned, noise_floor_ms=4.2, noise_floor_reason=None, **facts)
    with made.journal() as journal:
        for record in records:
            journal.append(record)
    made.finish(complete=True)
    return path
