"""The end of a run: its report written into the run folder and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voicebench.turns.run_folder import RunFolder


def show_run(folder: RunFolder, *, as_json: bool) -> None:
    """Write `report.json` and `report.html` into the run's folder, and print the report."""
    from voicebench.cli.report import say_written, show
    from voicebench.export.run_report import report_of, write_report

    made = report_of(folder)
    files = write_report(made, ["json", "html"])
    show(made, as_json=as_json)
    say_written(files)
