"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from voicebench.analysis.report import Report
from voicebench.export.tables import Table, caveat_lines, headline_lines, tables_of
from voicebench.export.texts import one_line
from voicebench.export.turn_text import mode_name, turn_line, waterfall

__all__ = ["mode_name", "print_report", "rendered", "turn_line", "waterfall"]

WIDTH = 100
"""Columns where nobody knows the screen."""

_NAME_WIDTH = 14
_BETWEEN = 2
"""Columns between two columns of a table."""


def rendered(report: Report, width: int = WIDTH) -> RenderableType:
    """The report for a screen of `width` columns. No text in it can steer the terminal."""
    parts: list[RenderableType] = [Text(one_line(line)) for line in headline_lines(report)]
    for table in tables_of(report):
        if table.rows:
            parts += [Text(f"\n{one_line(table.title)}", style="bold"), _rich(table, width)]
        if table.rows and table.note:
            parts.append(Text(one_line(table.note), style="dim"))
    caveats = caveat_lines(report)
    if caveats:
        parts.append(Text("\nCaveats", style="bold"))
        listed = RichTable.grid(padding=(0, 1))
        for line in caveats:
            listed.add_row(Text("•"), Text(one_line(line)))
        parts.append(listed)
    return Group(*parts)


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the report, on standard output by default."""
    screen = console or Console(highlight=False)
    screen.print(rendered(report, screen.width))


def _rich(table: Table, width: int) -> RenderableType:
    """The table; where lines are too long for the screen, names break and optional columns are left out."""
    found = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    lines = [list(map(one_line, row)) for row in (table.columns, *table.rows)]
    columns = zip(*lines, strict=True)
    narrow = sum(max(map(len, column)) + _BETWEEN for column in columns) > width
    kept = [place for place, column in enumerate(table.columns) if not (narrow and column in table.optional)]
    cells = [[_cell(line[place], narrow) for place in kept] for line in lines]
    widths = fitted(list(zip(*cells, strict=True)), width)
    for place, head, column_width in zip(kept, cells[0], widths, strict=True):
        found.add_column(
            Text(head),
            justify="left" if place < table.labels else "right",
            width=column_width,
            overflow="fold",
        )
    for row in cells[1:]:
        found.add_row(*map(Text, row))
    return found


def fitted(columns: Sequence[Sequence[str]], width: int) -> list[int | None]:
    """The width of each column of text, so that all fit into `width` and no word is broken.

    What is left beyond the longest words goes where lines are longest. All None where words must be broken.
    """
    room = width - _BETWEEN * len(columns)
    least = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    most = [max(len(line) for text in column for line in text.split("\n")) for column in columns]
    if sum(least) > room:
        return [None] * len(columns)
    found = list(least)
    while sum(found) < min(room, sum(most)):
        widest = max(range(len(found)), key=lambda place: most[place] - found[place])
        found[widest] += 1
    return list(found)


def _cell(text: str, narrow: bool) -> str:
    """A cell's text; on a narrow screen a mode's id breaks behind its provider and in a long name."""
    provider, slash, name = text.partition("/")
    if not narrow or not slash or " " in provider:
        return text
    hyphen = name.rfind("-", 0, _NAME_WIDTH) if len(name) > _NAME_WIDTH else -1
    if hyphen > 0:
        name = f"{name[: hyphen + 1]}\n{name[hyphen + 1 :]}"
    return f"{provider}/\n{name}"
