"""The formats in which a report is written: name to function. Another package adds one by an entry point."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from voicebench.errors import BadRequest

if TYPE_CHECKING:
    from voicebench.analysis.report import Report
    from voicebench.turns.records import TurnRecord

    Exporter = Callable[[Report, Sequence[TurnRecord]], bytes]
    """Makes a file's content from the report and one record a turn."""

GROUP = "voicebench.export"
"""The entry points of this group name a format and an exporter."""

FORMATS: dict[str, tuple[str, str]] = {
    "json": ("voicebench.export.report_json:export", "json"),
    "csv": ("voicebench.export.csv_rows:export", "csv"),
    "markdown": ("voicebench.export.markdown:export", "md"),
    "html": ("voicebench.export.html.page:export", "html"),
    "parquet": ("voicebench.export.parquet:export", "parquet"),
    "trace": ("voicebench.export.chrome_trace:export", "trace.json"),
    "otel": ("voicebench.export.otel:export", "otlp.json"),
}
"""Format to (module:function, suffix of the file). The file is `report.<suffix>`."""


def format_names() -> list[str]:
    """The known formats: the built-in ones in their order, then added ones by name."""
    added = sorted({entry.name for entry in entry_points(group=GROUP)} - FORMATS.keys())
    return [*FORMATS, *added]


def parse_formats(text: str) -> list[str]:
    """The formats in a comma-separated list, each once. Raises BadRequest that lists the known ones."""
    wanted = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    known = format_names()
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        near = difflib.get_close_matches(unknown[0], known, n=1) if unknown else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        told = f"unknown format {unknown[0]!r}." if unknown else "no format is named."
        raise BadRequest(f"--format: {told}{hint}", f"Known formats: {', '.join(known)}.")
    return wanted


def exporter(name: str) -> tuple[Exporter, str]:
    """The exporter of a known format, and the suffix of its file.

    Raises BadRequest for an unknown one, and for an added one that cannot be loaded.
    """
    (known,) = parse_formats(name)
    if known in FORMATS:
        target, suffix = FORMATS[known]
        module, _, function = target.partition(":")
        found: Exporter = getattr(importlib.import_module(module), function)
        return found, suffix
    return _added(known, entry_points(group=GROUP, name=known)), known


def _added(name: str, entries: Iterable[object]) -> Exporter:
    for entry in entries:
        try:
            found: Exporter = entry.load()  # type: ignore[attr-defined]
        except Exception as error:  # whatever a foreign package raises while it is loaded
            raise BadRequest(f"The format {name!r} cannot be loaded: {error}") from error
        return found
    raise BadRequest(f"The format {name!r} is not there.", f"Known formats: {', '.join(format_names())}.")
