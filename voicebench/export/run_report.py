"""From a run's folder to its report, and to the files that tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voicebench.analysis.ledger import latest_records
from voicebench.analysis.report import Report, build_report
from voicebench.errors import BadRequest
from voicebench.export.registry import exporter
from voicebench.turns.durable import FOLDER_MODE, cannot_write, write_atomically
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunFolder


@dataclass(frozen=True)
class RunReport:
    """A run's report and the records that it is made of, one a turn."""

    folder: Path
    report: Report
    records: tuple[TurnRecord, ...]


def report_of(folder: RunFolder) -> RunReport:
    """The report of a run, complete or not.

    Raises RunProblem where a file of the run cannot be read.
    """
    reading = folder.turns()
    report = build_report(folder.info(), reading.records, warmup=folder.warmup().records, reading=reading)
    return RunReport(folder.path, report, tuple(latest_records(reading.records)[0]))


def write_report(run: RunReport, formats: Sequence[str], out: Path | None = None) -> list[Path]:
    """Write `report.<suffix>` in each of the formats, and return the files' paths.

    Into the run's folder, or into the folder `out`, which is made if it is not there. Where `out` has a
    suffix and one format is asked, it is the file itself. Each file is there whole or not at all, mode 0600.
    Raises BadRequest for an unknown format or a place that fits none, RunProblem where it cannot be written.
    """
    made = [(name, *exporter(name)) for name in formats]
    single = out is not None and out.suffix != "" and not out.is_dir()
    if single and len(made) > 1:
        raise BadRequest(
            f"--out {out} names one file, but {len(made)} formats are asked.", "Name a folder, or one format."
        )
    place = run.folder if out is None else out.parent if single else out
    try:
        place.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(place, error) from error
    written = []
    for _, function, suffix in made:
        target = out if single and out is not None else place / f"report.{suffix}"
        write_atomically(target, function(run.report, run.records))
        written.append(target)
    return written
