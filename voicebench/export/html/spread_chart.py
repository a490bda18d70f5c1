"""Voice-to-voice latency of each mode: a density, one tick a turn, and the share within the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.report import Entry, Report
from voicebench.analysis.verdict import share_words
from voicebench.export.html.labels import fitted, spread, width_of
from voicebench.export.html.look import Look, both, line, svg, svg_text
from voicebench.export.html.markup import Safe, join, tag
from voicebench.export.html.scales import Linear, nice_end, nice_step, simplified
from voicebench.export.html.stage_chart import axis, budget_mark, late_zone, reach, two_lines

MOST_TICKS = 160
"""More turns than this are shown by as many order statistics."""
LEAST_N_FOR_DENSITY = 10
GRID = 240
ROW = 84


def spread_chart(
    report: Report, looks: Sequence[Look], latencies: Mapping[Entry, Sequence[float]]
) -> Safe | None:
    """The chart in both widths. `latencies`: V2V in ms of the turns that count. None where there are none."""
    rows = [
        (look, np.sort(np.asarray(found, dtype=np.float64)))
        for look in looks
        if (found := latencies.get((look.entry.mode, look.entry.anchor)))
    ]
    if not rows:
        return None
    return both([_draw(report, rows, 860, "wide"), _draw(report, rows, 358, "narrow")])


def _range(report: Report, rows: Sequence[tuple[Look, NDArray[np.float64]]]) -> tuple[float, float]:
    """From the quickest turn to the slowest; far strays are counted at the edge, not drawn to scale."""
    low = min(float(values[0]) for _, values in rows)
    high = max(
        min(float(values[-1]), 1.6 * max(float(np.percentile(values, 95)), report.budget_ms))
        for _, values in rows
    )
    low, high = min(low, 0.75 * report.budget_ms), max(high, 1.2 * report.budget_ms)
    step = nice_step((high - low) / 8)
    return max(0.0, np.floor(0.98 * low / step) * step), nice_end(high * 1.01)


def _draw(
    report: Report, rows: Sequence[tuple[Look, NDArray[np.float64]]], width: float, class_: str
) -> Safe:
    narrow = class_ == "narrow"
    left, right = (4.0, width - 8) if narrow else (200.0, width - 160)
    row_height = ROW + (40 if narrow else 0)
    top, head = 2.0, 24.0
    bottom = head + len(rows) * row_height
    low, high = _range(report, rows)
    scale = Linear(low, high, left, right)
    parts = [
        late_zone(scale(report.budget_ms), right, top, bottom),
        axis(scale, top + 16, bottom, "ms, voice to voice", report.budget_ms, 4 if narrow else 7),
    ]
    labels: list[Safe] = []
    for place, (look, values) in enumerate(rows):
        y = head + place * row_height
        labels.append(_labels(look, y, width, left, narrow))
        shapes, texts = _row(look, values, scale, y + (96 if narrow else 56))
        parts.append(shapes)
        labels.append(texts)
    parts += [budget_mark(scale(report.budget_ms), right, top, bottom, report.budget_ms), *labels]
    told = "; ".join(f"{look.full}: {share_words(look.entry.budget)}" for look, _ in rows)
    words = f"Voice-to-voice latency of every turn that counts, within {report.budget_ms:g} ms: {told}."
    return svg(width, bottom + 36, words, *parts, class_=class_)


def _labels(look: Look, y: float, width: float, left: float, narrow: bool) -> Safe:
    budget = look.entry.budget
    share = share_words(budget)
    few = "too few" in share
    counted = f"{budget.hit} of {budget.n} in time"
    n = look.entry.voice_to_voice.n
    turns = "1 turn" if n == 1 else f"{n} turns"
    shown = counted if few else share
    if narrow:
        return join(
            svg_text(0, y + 26, fitted(look.name, width - 4, 12, True), f"modename {look.colour}"),
            svg_text(0, y + 41, "too few turns to tell" if few else f"{look.kind}, {counted}", "note halo"),
            svg_text(width, y + 41, shown, "share halo", "end"),
        )
    return join(
        two_lines(look, f"{look.kind}, {turns}", 0, y + 40, left - 12),
        svg_text(width - 150, y + 40, shown, "share"),
        svg_text(width - 150, y + 56, "too few to tell" if few else counted, "note"),
    )


def _row(look: Look, values: NDArray[np.float64], scale: Linear, y: float) -> tuple[Safe, Safe]:
    """The hill and the ticks, and their labels: they stand above the budget line."""
    inside = values[values <= scale.high]
    beyond = values.size - inside.size
    drawn = inside
    if inside.size > MOST_TICKS:
        drawn = np.percentile(inside, (np.arange(MOST_TICKS) + 0.5) * 100 / MOST_TICKS)
    ticks = "".join(f"M{scale(float(value)):.1f} {y + 4:.0f}v7" for value in drawn)
    parts = [
        line(scale.begin, y, scale.end, y, "base"),
        _density(look, values, scale, y) if values.size >= LEAST_N_FOR_DENSITY else None,
        tag("path", d=ticks, class_=f"rug {look.colour}"),
    ]
    marks = [("p50", float(np.percentile(values, 50)))]
    if (mark := reach(look)) is not None and values.size > 1:
        marks.append(mark)
    labels: list[Safe] = []
    words = [f"{name} {at:.0f}" for name, at in marks]
    sizes = [width_of(word, 11) + 8 for word in words]
    places = spread([scale.inside(at) for _, at in marks], sizes, scale.begin, scale.end)
    for (_, at), word, x in zip(marks, words, places, strict=True):
        parts.append(line(scale.inside(at), y - 4, scale.inside(at), y + 14, "whisker end"))
        labels.append(svg_text(x, y + 25, word, "value halo", "middle"))
    if beyond:
        labels.append(svg_text(scale.end, y - 8, f"{beyond} beyond →", "note halo", "end"))
    return join(*parts), join(*labels)


def _density(look: Look, values: NDArray[np.float64], scale: Linear, y: float) -> Safe:
    """A Gaussian kernel density (Silverman's rule of thumb for the width), scaled to its own peak."""
    thinned = values if values.size <= 800 else np.percentile(values, (np.arange(800) + 0.5) / 8)
    quarter = float(np.percentile(thinned, 75) - np.percentile(thinned, 25)) / 1.34
    scatter = min(float(thinned.std()), quarter) or float(thinned.std())
    band = max(0.9 * scatter * thinned.size**-0.2, (scale.high - scale.low) / 250)
    grid = np.linspace(scale.low, scale.high, GRID)
    heights = np.exp(-0.5 * ((grid[:, None] - thinned[None, :]) / band) ** 2).sum(axis=1)
    heights = 40 * heights / heights.max()
    kept = np.flatnonzero(heights > 0.2)
    drawn = range(kept[0], kept[-1] + 1)
    points = simplified([(scale(float(grid[one])), y - float(heights[one])) for one in drawn])
    top = "L".join(f"{x:.1f} {up:.1f}" for x, up in points)
    outline = f"M{points[0][0]:.1f} {y:.1f}L{top}L{points[-1][0]:.1f} {y:.1f}Z"
    return tag("g", tag("path", d=outline, class_="area outlined"), class_=look.classes)
