"""A comparison, the findings of limits, and the trend over runs, as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.caveats import Caveat
from voicebench.analysis.comparison import Comparison, Difference, ModeComparison, Verdict
from voicebench.analysis.gate import Check, Finding
from voicebench.analysis.history import History
from voicebench.export.tables import EMPTY, Table, median_cell, number, percent, share_cell
from voicebench.export.turn_text import mode_name

LIMIT_NAMES = {
    "p50_ms": "p50 of V2V",
    "p95_ms": "p95 of V2V",
    "hit_rate": "share within the budget",
    "cutoff_rate": "share of cutoffs",
    "slower": "V2V, paired",
}


def comparison_lines(comparison: Comparison) -> list[str]:
    """Which runs are compared, and in one sentence for each mode what is said of B."""
    a, b = comparison.a.info, comparison.b.info
    lines = [f"A: run {a.id}, {a.started_at}", f"B: run {b.id}, {b.started_at}"]
    return lines + [verdict_line(entry) for entry in comparison.modes]


def names_of(entry: ModeComparison) -> str:
    """The mode, or where two are compared both, A first."""
    a, b = mode_name(entry.mode_a, entry.kind_a), mode_name(entry.mode_b, entry.kind_b)
    return a if a == b else f"A {a}, B {b}"


def verdict_line(entry: ModeComparison) -> str:
    """The verdict in words, with the figure that it rests on."""
    paired = entry.voice_to_voice.paired
    head = f"{names_of(entry)} ({entry.anchor.value})"
    if paired.difference is None or paired.interval is None:
        return f"{head}: cannot tell, {paired.reason or 'no interval'} (n = {paired.n} pairs)"
    low, high = paired.interval
    around = f"{signed(paired.difference)} ms a turn, 95 %: {signed(low)} to {signed(high)} ms"
    said = {
        Verdict.FASTER: "B is faster",
        Verdict.SLOWER: "B is slower",
        Verdict.CANNOT_TELL: "cannot tell A from B",
    }[paired.verdict]
    return f"{head}: {said} ({around}, n = {paired.n} pairs of {entry.samples} samples)"


def signed(value: float, digits: int = 0) -> str:
    """A difference with its sign; what rounds to 0 has none."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def comparison_tables(comparison: Comparison) -> list[Table]:
    """A table for each mode and anchor compared."""
    return [_mode_table(entry, comparison.budget_ms) for entry in comparison.modes]


def _mode_table(entry: ModeComparison, budget_ms: float) -> Table:
    v2v = entry.voice_to_voice
    rows = [
        _row("V2V, paired", v2v.paired),
        _row("V2V p50", v2v.p50),
        _row("V2V p95", v2v.p95),
        _row(f"within {budget_ms:g} ms", entry.budget, share=True),
        _row("cut off", entry.cutoffs, share=True),
    ]
    for name, part in entry.parts.items():
        told = _row(name, part.paired)
        rows.append((name, told[1], number(part.p50.a, 1), number(part.p50.b, 1), *told[4:]))
    return Table(
        title=f"{names_of(entry)}, end of speech {entry.anchor.value}",
        columns=("figure", "pairs", "A", "B", "B - A", "interval", "verdict on B"),
        rows=tuple(rows),
        note="In ms over the pairs; A and B of a stage are medians. Paired: the mean change of a pair "
        "without the lowest and highest fifth; the verdict on B is this row's. Each row errs in 1 of 20 by "
        "chance; the intervals of the stages are widened so that all of them together do.",
    )


def _row(name: str, difference: Difference, share: bool = False) -> tuple[str, ...]:
    def told(value: float | None) -> str:
        return percent(value) if share else number(value, 1)

    scale, unit = (100, " points") if share else (1, "")
    change = EMPTY if difference.difference is None else f"{signed(scale * difference.difference, 1)}{unit}"
    around = EMPTY
    if difference.interval is not None:
        low, high = (signed(scale * bound, 1) for bound in difference.interval)
        around = f"{low} to {high}"
    verdict = difference.verdict.value
    return name, str(difference.n), told(difference.a), told(difference.b), change, around, verdict


def checks_table(checks: Sequence[Check], compared: bool = False) -> Table:
    """What was asked, found, and would prove it."""
    return Table(
        title="Limits" if not compared else "Limits of what B may be worse by",
        columns=("mode", "figure", "asked", "found", "bounds (95 %)", "n", "finding", "what would prove it"),
        rows=tuple(_check_row(check, compared) for check in checks),
        note="A limit is passed or breached where the whole range between the bounds is within or beyond it.",
        labels=2,
    )


def _check_row(check: Check, compared: bool) -> tuple[str, ...]:
    share = check.limit.endswith("_rate")

    def told(value: float | None) -> str:
        if value is None:
            return EMPTY
        if compared:
            return f"{signed(100 * value, 1)} points" if share else f"{signed(value)} ms"
        return percent(value) if share else f"{value:.0f} ms"

    low, high = told(check.low), told(check.high)
    return (
        check.mode if check.anchor is None else f"{check.mode} ({check.anchor})",
        LIMIT_NAMES[check.limit],
        f"{'at least' if check.at_least else 'at most'} {told(check.asked)}",
        told(check.found),
        f"{low} to {high}",
        str(check.n),
        check.finding.value if check.finding is not Finding.BREACH else "BREACH",
        check.needs or EMPTY,
    )


def history_tables(history: History) -> list[Table]:
    """A table for each mode and anchor: its runs in the order of time."""
    return [
        Table(
            title=f"Trend of V2V: {mode_name(trend.mode, trend.kind)}"
            + (f", end of speech {trend.anchor}" if trend.anchor else ""),
            columns=("date (UTC)", "run", "n", "p50 (95 %), ms", "within (95 %)", "budget, ms"),
            rows=tuple(
                (
                    point.started_at,
                    point.run if point.complete else f"{point.run} (partial)",
                    str(point.voice_to_voice.n),
                    median_cell(point.voice_to_voice),
                    share_cell(point.budget),
                    f"{point.budget_ms:g}",
                )
                for point in trend.points
            ),
            note="Whether two of these runs differ is told by `voicebench compare`, turn by turn.",
            labels=2,
        )
        for trend in history.trends
    ]


def notes_of(caveats: Sequence[Caveat]) -> list[str]:
    """Caveats as lines, each with its mode."""
    return [f"{caveat.text} ({caveat.mode})" if caveat.mode else caveat.text for caveat in caveats]
