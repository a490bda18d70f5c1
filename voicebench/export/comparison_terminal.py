"""Tables, and the lines around them, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from voicebench.export.tables import Table
from voicebench.export.terminal import fitted
from voicebench.export.texts import one_line


def print_tables(
    console: Console, lines: Sequence[str], tables: Sequence[Table], caveats: Sequence[str] = ()
) -> None:
    """Print lines, tables and caveats. No text in them can steer the terminal."""
    for line in lines:
        console.print(Text(one_line(line)), soft_wrap=True)
    for table in tables:
        console.print(Text(f"\n{one_line(table.title)}", style="bold"))
        console.print(_rich(table, console.width))
    for note in dict.fromkeys(table.note for table in tables if table.note):
        console.print(Text(one_line(note), style="dim"))
    if caveats:
        console.print(Text("\nCaveats", style="bold"))
        for caveat in caveats:
            console.print(Text(f"• {one_line(caveat)}"))


def _rich(table: Table, width: int) -> RichTable:
    found = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    cells = [list(map(one_line, row)) for row in (table.columns, *table.rows)]
    widths = fitted(list(zip(*cells, strict=True)), width)
    for place, (head, column_width) in enumerate(zip(cells[0], widths, strict=True)):
        text = place < table.labels or cells[0][place] == "what would prove it"
        found.add_column(Text(head), justify="left" if text else "right", width=column_width, overflow="fold")
    for row in cells[1:]:
        found.add_row(*map(Text, row))
    return found
