"""From a run's folder to its report, and to the files that tell it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from voicebench.analysis.ledger import latest_records
from voicebench.analysis.report import Report, build_report
from voicebench.errors import BadRequest, RunProblem
from voicebench.export.registry import exporter
from voicebench.turns.durable import FOLDER_MODE, cannot_write, write_atomically
from voicebench.turns.journal import without_collection
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import JOURNAL_FILE, RunFolder

MANY = 10_000
"""From so many turns on, looking for cycles of objects among them is noticed."""


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
    with without_collection(), _in_bounds(folder.path):
        reading = folder.turns()
        if len(reading.records) > MANY:
            gc.freeze()  # they stay until the report is told: later searches pass them over
        report = build_report(folder.info(), reading.records, warmup=folder.warmup().records, reading=reading)
        return RunReport(folder.path, report, tuple(latest_records(reading.records)[0]))


@contextmanager
def _in_bounds(folder: Path) -> Iterator[None]:
    """Figures that no run has, such as a price of 1e308, end in words: sums and axes do not hold them."""
    try:
        yield
    except OverflowError as error:
        raise RunProblem(
            f"The run {folder} cannot be told: a figure in it is beyond all measure ({error}).",
            f"Put back its {JOURNAL_FILE} as it was written.",
        ) from error


def _html(run: RunReport, place: Path, embed_audio: bool) -> bytes:
    """The page for a file in the folder `place`, from which its links lead to the run's recordings."""
    from voicebench.export.html.page import export

    try:
        way = Path(os.path.relpath(run.folder, place)).as_posix()
    except ValueError:  # on another drive: nothing relative leads there
        way = "."
    inside = run.folder if embed_audio else None
    return export(run.report, run.records, embed_audio=inside, way_to_run="" if way == "." else f"{way}/")


def write_report(
    run: RunReport, formats: Sequence[str], out: Path | None = None, *, embed_audio: bool = False
) -> list[Path]:
    """Write `report.<suffix>` in each of the formats, and return the files' paths.

    Into the run's folder, or into the folder `out`, which is made if it is not there. Where `out` has a
    suffix and one format is asked, it is the file itself. Each file is there whole or not at all, mode 0600.
    With `embed_audio` the HTML file holds the kept recordings; else it links to them in the run's folder.
    Raises BadRequest for an unknown format or a place that fits none, RunProblem where it cannot be written.
    """
    if embed_audio and "html" not in formats:
        raise BadRequest("--embed-audio is for the format html, which is not asked.", "Add --format html.")
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
    for name, function, suffix in made:
        target = out if single and out is not None else place / f"report.{suffix}"
        with without_collection(), _in_bounds(run.folder):
            content = _html(run, place, embed_audio) if name == "html" else function(run.report, run.records)
        write_atomically(target, content)
        written.append(target)
    return written
