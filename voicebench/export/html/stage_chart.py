"""Stacked stages of each mode near p50, with the p95 tick, against the budget line."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.report import Report
from voicebench.analysis.statistics import StageMeans
from voicebench.export.html.labels import fitted, spread, width_of
from voicebench.export.html.look import FAMILY, STAGE_CLASS, Look, both, line, svg, svg_text
from voicebench.export.html.markup import Safe, join, tag
from voicebench.export.html.scales import Linear, nice_end
from voicebench.turns.timeline import Stage

LEAST_MS = 0.5
"""A shorter part has no label."""
BAR, ROW = 20, 48
TICK_ROOM = 66
"""px right of the axis for the words at the end of a whisker."""


def stage_chart(report: Report, looks: Sequence[Look]) -> Safe | None:
    """The chart in both widths; None where no mode has stages."""
    shown = [(look, look.entry.near_p50) for look in looks if look.entry.near_p50 is not None]
    rows = [(look, means) for look, means in shown if means is not None]
    if not rows:
        return None
    return both([_draw(report, rows, 860, 200, "wide"), _draw(report, rows, 358, 0, "narrow")])


def reach(look: Look) -> tuple[str, float] | None:
    """The tick's name and place: p95, or where n is too small for it the maximum."""
    v2v = look.entry.voice_to_voice
    if v2v.p95 is not None:
        return "p95", v2v.p95
    return None if v2v.max is None else ("max", v2v.max)


def late_zone(x: float, right: float, top: float, bottom: float) -> Safe:
    """The shaded time beyond the budget."""
    return tag("rect", x=x, y=top, width=max(0.0, right - x), height=bottom - top, class_="late")


def budget_mark(x: float, right: float, top: float, bottom: float, budget_ms: float) -> Safe:
    """The one strong line at the budget."""
    words = f"{budget_ms:g} ms budget"
    fits = x + 6 + width_of(words, 12, True) <= right
    return join(
        line(x, top, x, bottom, "budget"),
        svg_text(x + 6 if fits else x - 6, top + 12, words, "strong", None if fits else "end"),
    )


def axis(scale: Linear, top: float, bottom: float, unit: str, bold: float, most: int) -> Safe:
    """Thin lines at round figures, their labels, and the unit; the label of `bold` stands strong."""
    parts = []
    for tick in scale.ticks(most):
        x = scale(tick)
        if abs(x - scale(bold)) < 34 and tick != bold:
            continue
        parts.append(line(x, top, x, bottom, "grid"))
        if tick != bold:
            parts.append(svg_text(x, bottom + 16, f"{tick:g}", "tick", "middle"))
    parts.append(svg_text(scale(bold), bottom + 16, f"{bold:g}", "strong", "middle"))
    parts.append(svg_text(scale.end, bottom + 30, unit, "tick", "end"))
    return join(*parts)


def _draw(
    report: Report, rows: Sequence[tuple[Look, StageMeans]], width: float, left: float, class_: str
) -> Safe:
    narrow = class_ == "narrow"
    row_height = ROW + (26 if narrow else 0)
    top, head = 22.0, 60.0
    extra = 22.0 if narrow else 0.0
    bottom = head + extra + len(rows) * row_height
    ends = [mark[1] for look, _ in rows if (mark := reach(look))]
    high = nice_end(max(report.budget_ms * 1.2, *(means.total for _, means in rows), *ends))
    scale = Linear(0.0, high, left, width - TICK_ROOM)
    parts = [
        late_zone(scale(report.budget_ms), width, top, bottom),
        axis(scale, top + 14, bottom, "ms since the end of speech", report.budget_ms, 4 if narrow else 7),
    ]
    labels = [_stage_names(rows[0][1], scale, head + (48 if narrow else 0), narrow)]
    for place, (look, means) in enumerate(rows):
        y = head + place * row_height + (extra if place else 0)
        labels.append(_name(look, y, left, width))
        shapes, texts = _bar(look, means, scale, y + (30 + (0 if place else extra) if narrow else 4), width)
        parts.append(shapes)
        labels.append(texts)
    parts += [budget_mark(scale(report.budget_ms), width, top, bottom, report.budget_ms), *labels]
    return svg(width, bottom + 36, _words(report, rows), *parts, class_=class_)


def _words(report: Report, rows: Sequence[tuple[Look, StageMeans]]) -> str:
    told = "; ".join(f"{look.full} {means.total:.0f} ms" for look, means in rows)
    return f"Stages near p50 of each mode against {report.budget_ms:g} ms: {told}. The table below has them."


def _name(look: Look, y: float, left: float, width: float) -> Safe:
    p50 = look.entry.voice_to_voice.p50
    told = look.kind if p50 is None else f"{look.kind}, p50 {p50:.0f} ms"
    if left:
        return two_lines(look, told, 0, y + 14, left - 12)
    room = width - width_of(told, 11) - 10
    return join(
        svg_text(0, y + 22, fitted(look.name, room, 12, True), f"modename {look.colour}"),
        svg_text(width, y + 22, told, "note halo", "end"),
    )


def two_lines(look: Look, told: str, x: float, y: float, room: float) -> Safe:
    """A mode's name in its colour and, below it, `told`, each cut to `room` px."""
    return join(
        svg_text(x, y, fitted(look.name, room, 12, True), f"modename {look.colour}"),
        svg_text(x, y + 15, fitted(told, room, 11), "note"),
    )


def _bar(look: Look, means: StageMeans, scale: Linear, y: float, width: float) -> tuple[Safe, Safe]:
    """The bar, and its labels: they stand above the budget line."""
    parts, labels, at = [], [], 0.0
    for stage in Stage:
        part = means.stages[stage.value]
        x, end = scale(at), scale(at + part)
        at += part
        if end - x > 0:
            shown = max(0.4, end - x - (0.8 if end - x > 3 else 0))
            parts.append(tag("rect", x=x, y=y, width=shown, height=BAR, class_=f"seg {STAGE_CLASS[stage]}"))
        if part >= LEAST_MS:
            labels.append(((x + end) / 2, f"{part:.0f}"))
    sizes = [width_of(label, 11) + 5 for _, label in labels]
    places = spread([x for x, _ in labels], sizes, scale.begin, width)
    values = [
        svg_text(x, y + BAR + 13, label, "value halo", "middle")
        for x, (_, label) in zip(places, labels, strict=True)
    ]
    whisker, name = _tick(look, means.total, scale, y)
    bar = tag("g", *parts, class_="emu" if look.emulated else None)
    return join(bar, whisker), join(*values, name)


def _tick(look: Look, total: float, scale: Linear, y: float) -> tuple[Safe | None, Safe | None]:
    """The whisker from the bar's end to p95 or the maximum, and its words."""
    mark = reach(look)
    if mark is None:
        return None, None
    begin, end, middle = scale(total), scale(mark[1]), y + BAR / 2
    drawn = join(
        line(begin, middle, end, middle, "whisker"),
        line(end, middle - 6, end, middle + 6, "whisker end"),
    )
    return drawn, svg_text(max(begin, end) + 6, middle + 4, f"{mark[0]} {mark[1]:.0f}", "note halo")


def _stage_names(means: StageMeans, scale: Linear, y: float, narrow: bool) -> Safe:
    """The stages' names above the first bar, moved apart, with a line to their part where they moved."""
    named, at = [], 0.0
    for stage in Stage:
        part = means.stages[stage.value]
        if part >= LEAST_MS:
            named.append((stage, scale(at + part / 2)))
        at += part
    size = 10 if narrow else 11
    sizes = [width_of(stage.value, size) + 8 for stage, _ in named]
    places = spread([x for _, x in named], sizes, scale.begin, scale.end + 20)
    base = y - 14
    parts = []
    for (stage, x), place in zip(named, places, strict=True):
        parts.append(svg_text(place, base, stage.value, f"stagename halo {FAMILY[stage]}", "middle"))
        parts.append(line(place, base + 3, x, y + 2, "leader"))
    return join(*parts)
