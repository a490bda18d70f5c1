"""What the milliseconds cost: price of 1000 turns against the budget share; unknown prices in a lane."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.report import Entry, Report
from voicebench.analysis.siblings import Faster
from voicebench.analysis.verdict import whole_percent
from voicebench.export.html.labels import spread, width_of
from voicebench.export.html.look import Look, both, line, svg, svg_text
from voicebench.export.html.markup import Safe, join, tag
from voicebench.export.html.scales import Linear, nice_end
from voicebench.export.html.stage_chart import two_lines

TOP, PLOT = 28.0, 230.0

Places = dict[Entry, tuple[float, float]]
"""Mode and anchor to the point in px."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom in px."""


def usd_per_1000(look: Look) -> float | None:
    """The mean price of 1000 turns in US dollars; None where it is not known."""
    mean = look.entry.usd_per_turn.mean
    return None if mean is None else 1000 * mean


def price_chart(report: Report, looks: Sequence[Look], faster: Sequence[Faster]) -> Safe | None:
    """The chart in both widths; None where no mode has a price and a share."""
    shown = [look for look in looks if look.entry.budget.share is not None]
    if all(usd_per_1000(look) is None for look in shown):
        return None
    return both([_draw(report, shown, faster, 860, "wide"), _draw(report, shown, faster, 358, "narrow")])


def _draw(report: Report, looks: Sequence[Look], faster: Sequence[Faster], width: float, class_: str) -> Safe:
    narrow = class_ == "narrow"
    priced = [(look, usd) for look in looks if (usd := usd_per_1000(look)) is not None]
    unpriced = [look for look in looks if usd_per_1000(look) is None]
    lane = (142.0 if narrow else 210.0) if unpriced else 0.0
    left, right, bottom = 40.0, width - lane - (14 if narrow else 40), TOP + PLOT
    across = Linear(0.0, nice_end(max(usd for _, usd in priced) * 1.02 or 1.0, 5), left, right)
    up = Linear(0.0, 1.0, bottom, TOP)
    parts = [
        *(line(left, up(share), right, up(share), "grid") for share in (0.25, 0.5, 0.75, 1.0)),
        line(left, bottom, right, bottom, "base"),
        *(
            svg_text(left - 8, up(share) + 4, f"{100 * share:.0f}", "tick", "end")
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        ),
        svg_text(0, TOP - 12, f"% within {report.budget_ms:g} ms", "tick"),
        *(
            svg_text(across(tick), bottom + 16, f"${tick:g}", "tick", "middle")
            for tick in across.ticks(3 if narrow else 5)
        ),
        svg_text(right, bottom + 32, "US dollars per 1000 turns", "tick", "end"),
    ]
    places: Places = {
        (look.entry.mode, look.entry.anchor): (across(usd), up(look.entry.budget.share or 0))
        for look, usd in priced
    }
    lane_x = width - lane + 16
    if unpriced:
        parts.append(tag("rect", x=width - lane, y=TOP - 8, width=lane, height=PLOT + 8, class_="late"))
        parts.append(svg_text(width - lane / 2, bottom + 16, "no price known", "tick", "middle"))
        for look, x in zip(unpriced, _side_by_side(unpriced, up, lane_x), strict=True):
            places[look.entry.mode, look.entry.anchor] = (x, up(look.entry.budget.share or 0))
    parts += [_arrow(places, one, looks) for one in faster]
    parts += [_point(look, *places[look.entry.mode, look.entry.anchor], up) for look in looks]
    parts.append(_lane_labels(unpriced, places, lane_x, width))
    parts.append(_labels(priced, places, width - lane, faster, up, narrow))
    told = "; ".join(
        f"{look.full} {'no price known' if usd_per_1000(look) is None else f'${usd_per_1000(look):.2f}'}, "
        f"{whole_percent(look.entry.budget.share or 0)} %"
        for look in looks
    )
    words = f"Price of 1000 turns against the share within {report.budget_ms:g} ms: {told}."
    return svg(width, bottom + 38, words, *parts, class_=class_)


def _side_by_side(looks: Sequence[Look], up: Linear, x: float) -> list[float]:
    """Where in the lane each point stands: those at about one height beside one another."""
    found: list[float] = []
    heights = [up(look.entry.budget.share or 0) for look in looks]
    for place, height in enumerate(heights):
        level = sum(abs(height - other) < 13 for other in heights[:place])
        found.append(x + 14 * level)
    return found


def _arrow(places: Places, one: Faster, looks: Sequence[Look]) -> Safe:
    """From the standard mode to its faster sibling: dashed where a price is not known."""
    begin, end = places.get((one.sibling, one.anchor)), places.get((one.mode, one.anchor))
    if begin is None or end is None:
        return join()
    colour = next(look.colour for look in looks if look.entry.mode == one.mode)
    dashed = " dashed" if one.extra_usd_per_1000 is None else ""
    return line(*begin, *end, f"arrow {colour}{dashed}")


def _point(look: Look, x: float, y: float, up: Linear) -> Safe:
    interval = look.entry.budget.ci95
    bar = (
        None if interval is None else line(x, up(interval[0]), x, up(interval[1]), f"interval {look.colour}")
    )
    return join(bar, tag("circle", cx=x, cy=y, r=5.5, class_=f"dot {look.classes}"))


def _words(look: Look) -> str:
    usd = usd_per_1000(look)
    share = f"{whole_percent(look.entry.budget.share or 0)} %"
    return f"{look.kind}, {share}" if usd is None else f"{look.kind}, ${usd:.2f}, {share}"


def _lane_labels(
    looks: Sequence[Look],
    places: Places,
    x: float,
    width: float,
) -> Safe:
    left = 12 + max((places[look.entry.mode, look.entry.anchor][0] for look in looks), default=x)
    wanted = [places[look.entry.mode, look.entry.anchor][1] for look in looks]
    found = spread(wanted, [32.0] * len(looks), TOP - 6, TOP + PLOT)
    parts = []
    for look, y in zip(looks, found, strict=True):
        parts.append(two_lines(look, _words(look), left, y + 1, width - left))
    return join(*parts)


def _labels(
    priced: Sequence[tuple[Look, float]],
    places: Places,
    right: float,
    faster: Sequence[Faster],
    up: Linear,
    narrow: bool,
) -> Safe:
    """Two lines beside each point, at the first of several places where they cover least."""
    taken: list[Box] = []
    for look, _ in priced:
        x, y = places[look.entry.mode, look.entry.anchor]
        taken.append((x - 7, y - 7, x + 7, y + 7))
        if (interval := look.entry.budget.ci95) is not None:
            taken.append((x - 2, up(interval[1]), x + 2, up(interval[0])))
    for one in faster:
        begin, end = places.get((one.sibling, one.anchor)), places.get((one.mode, one.anchor))
        if begin is not None and end is not None:
            taken += _along(begin, end)
    parts = []
    for look, usd in priced:
        x, y = places[look.entry.mode, look.entry.anchor]
        name = look.name
        words = f"{look.kind}, ${usd:.2f}" if narrow else _words(look)
        size = max(width_of(name, 12, True), width_of(words, 11)) + 2
        candidates = [
            (left, top)
            for top in (y + 8, y - 38, y - 15, y - 24, y + 24, y - 54, y + 42, y - 70)
            for left in (x + 11, x - 11 - size, max(42.0, x - size / 2), x + 36, x + 70, x - 36 - size)
        ]
        inside = [
            (left, top)
            for left, top in candidates
            if left >= 42 and left + size <= right and TOP - 14 <= top <= TOP + PLOT - 28
        ]
        left, top = min(
            inside or candidates[:1],
            key=lambda spot: sum(_cover((*spot, spot[0] + size, spot[1] + 30), box) for box in taken),
        )
        left = max(0.0, min(left, right - size))
        taken.append((left, top, left + size, top + 30))
        parts.append(svg_text(left, top + 12, name, f"modename halo {look.colour}"))
        parts.append(svg_text(left, top + 26, words, "note halo"))
    return join(*parts)


def _along(begin: tuple[float, float], end: tuple[float, float]) -> list[Box]:
    """Small boxes on the way from one point to another, which labels keep off."""
    steps = 40
    return [
        (x - 2, y - 2, x + 2, y + 2)
        for step in range(steps + 1)
        for x, y in [[low + (high - low) * step / steps for low, high in zip(begin, end, strict=True)]]
    ]


def _cover(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
