"""The report as Markdown tables (GitHub's form)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voicebench.analysis.report import Report
from voicebench.analysis.verdict import Verdict, verdict_of
from voicebench.export.tables import Table, caveat_lines, headline_lines, tables_of
from voicebench.export.texts import one_line
from voicebench.turns.durable import whole_text
from voicebench.turns.records import TurnRecord

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def safe(text: str) -> str:
    """`text` on one line, shown as it is: no markup, no HTML, no end of a table's cell."""
    return _MARKUP.sub(r"\\\1", one_line(text).replace("&", "&amp;"))


def _table(table: Table) -> list[str]:
    if not table.rows:
        return []
    marks = [":--" if place < table.labels else "--:" for place in range(len(table.columns))]
    lines = [f"## {safe(table.title)}", ""]
    lines += [_line(table.columns), f"| {' | '.join(marks)} |"]
    lines += [_line(row) for row in table.rows]
    lines += ["", safe(table.note), ""] if table.note else [""]
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(safe, cells))} |"


def _verdict(verdict: Verdict) -> list[str]:
    """What is to be said first, the predictions as a list of their own."""
    lines = ["## Verdict", "", f"**{safe(verdict.headline)}**", ""]
    lines += [safe(f"{verdict.left} {verdict.bottleneck}"), ""]
    lines += [safe(verdict.advice), ""] if verdict.advice else []
    lines += [f"- {safe(words)}" for words in verdict.faster_words]
    return [*lines, ""] if verdict.faster_words else lines


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """The report's verdict, tables and caveats as Markdown in UTF-8."""
    lines = ["# voicebench report", ""]
    lines += [f"- {safe(line)}" for line in headline_lines(report)]
    lines.append("")
    if report.run.command != "slot":
        lines += _verdict(verdict_of(report, records))
    for table in tables_of(report):
        lines += _table(table)
    caveats = caveat_lines(report)
    if caveats:
        lines += ["## Caveats", "", *(f"- {safe(line)}" for line in caveats), ""]
    return whole_text("\n".join(lines)).encode()
