"""What each mode has said by then: cumulative text over time since the slot's start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from voicebench.analysis.report import Entry, Report
from voicebench.analysis.slot_figures import RESIDUAL_STACK
from voicebench.export.html.courses import MEASURES, UNITS, Curve
from voicebench.export.html.labels import spread, width_of
from voicebench.export.html.look import Look, both, line, svg, svg_text
from voicebench.export.html.markup import Safe, join, tag
from voicebench.export.html.scales import Linear, LogFromZero, simplified
from voicebench.export.html.stage_chart import two_lines

TOP, PLOT = 56.0, 300.0
WIDE, WIDE_LEFT, WIDE_RIGHT = 860.0, 48.0, 592.0
"""The wide drawing: its width and the ends of its time axis, in px. The narrow one shows its curves again."""


def until_ms(report: Report) -> float:
    """How far the time axis reaches: beyond the slots and the residual slot."""
    slots = [*report.slots_ms, *(slot for slot in report.residual_slot_ms.values() if slot > 0)]
    reach = max([400.0, *slots]) + 150
    return float(-(-reach // 100) * 100)


def slot_chart(
    report: Report, looks: Sequence[Look], curves: Mapping[Entry, Mapping[str, Curve]]
) -> Safe | None:
    """The charts of all measures behind one switch; None where no reply's course was kept."""
    inputs: list[Safe] = []
    labels: list[Safe] = []
    panels: list[Safe] = []
    for name in MEASURES:
        rows = [
            (look, found[name])
            for look in looks
            if name in (found := curves.get((look.entry.mode, look.entry.anchor), {}))
        ]
        if not rows:
            continue
        inputs.append(
            tag("input", type="radio", name="measure", id=f"by-{name}", class_="pick", checked=not inputs)
        )
        labels.append(tag("label", UNITS[name], for_=f"by-{name}"))
        drawn = [_draw(report, rows, name, WIDE, "wide"), _draw(report, rows, name, 358, "narrow")]
        panels.append(tag("div", both(drawn), class_=f"panel by-{name}"))
    if not panels:
        return None
    return tag(
        "fieldset",
        tag("legend", "What is counted", class_="unseen"),
        *(join(one, other) for one, other in zip(inputs, labels, strict=True)),
        *panels,
        class_="switch",
    )


def delivered(look: Look, slot: str, name: str) -> float | None:
    """The median that the report tells for one slot."""
    found = next((one for one in look.entry.slots if one.slot == slot), None)
    return None if found is None else found.delivered[name].p50


def _draw(report: Report, rows: Sequence[tuple[Look, Curve]], name: str, width: float, class_: str) -> Safe:
    narrow = class_ == "narrow"
    left, right = (30.0, width - 112) if narrow else (WIDE_LEFT, WIDE_RIGHT)
    bottom = TOP + PLOT
    high = max([float(curve.p90.max()) for _, curve in rows] + [10.0 if name != "speech_s" else 2.0]) * 1.15
    across = Linear(0.0, float(rows[0][1].at_ms[-1]), left, right)
    up = LogFromZero(high, bottom, TOP, 0.1 if name == "speech_s" else 1.0)
    band, slot_words = _slots(report, across, bottom, narrow)
    parts = [band, _grid(up, left, right)]
    for look, curve in rows:
        parts.append(_again(look, name, left, right) if narrow else _curve(look, curve, name, across, up))
    parts += [_residual(report, across, bottom), slot_words]
    parts.append(_points(report, rows, name, across, up))
    parts.append(_ends(report, rows, name, across, up, width, narrow))
    parts += [
        *(
            svg_text(across(tick), bottom + 16, f"{tick:g}", "tick", "middle")
            for tick in across.ticks(4 if narrow else 8)
        ),
        svg_text(right, bottom + 31, "ms since the slot's start", "tick", "end"),
        svg_text(0, TOP - 38, UNITS[name], "tick"),
    ]
    slot = f"{report.slots_ms[-1]:g}" if report.slots_ms else ""
    told = "; ".join(
        f"{look.full} {value:.1f}" for look, _ in rows if (value := delivered(look, slot, name)) is not None
    )
    words = f"Median {UNITS[name]} over time since the slot's start."
    words += f" By {slot} ms: {told}." if told else ""
    return svg(width, bottom + 36, words, *parts, class_=class_)


def _grid(up: LogFromZero, left: float, right: float) -> Safe:
    return join(
        *(
            join(
                line(left, up(tick), right, up(tick), "base" if tick == 0 else "grid"),
                svg_text(left - 6, up(tick) + 4, f"{tick:g}", "tick", "end"),
            )
            for tick in up.ticks()
        )
    )


def _slots(report: Report, across: Linear, bottom: float, narrow: bool) -> tuple[Safe, Safe]:
    """The nominal slot, shaded from its first to its last deadline, and its name."""
    ends = sorted(report.slots_ms)
    if not ends:
        return join(), join()
    first, last = across(ends[0]), across(ends[-1])
    words = f"{ends[0]:g}–{ends[-1]:g} ms slot" if len(ends) > 1 else f"{ends[0]:g} ms slot"
    size = width_of(words, 12, True)
    x = min(max((first + last) / 2, size / 2), across.end + (100 if narrow else 120) - size / 2)
    return (
        tag("rect", x=first, y=TOP, width=max(1.5, last - first), height=bottom - TOP, class_="slotband"),
        svg_text(x, TOP - 8, words, "strong halo", "middle"),
    )


def _residual(report: Report, across: Linear, bottom: float) -> Safe:
    """What the stack leaves: a dotted line, or in words where it lies off the axis."""
    parts = []
    several = len(report.residual_slot_ms) > 1
    for place, (anchor, slot) in enumerate(report.residual_slot_ms.items()):
        where = f", {anchor.value}" if several else ""
        words = f"residual slot {slot:.0f} ms{where}"
        y = TOP - 26 - 15 * place
        if not 0 <= slot <= across.high:
            parts.append(svg_text(across.end, y, f"{words} (off this axis)", "strong", "end"))
            continue
        x = across(slot)
        size = width_of(words, 12, True)
        parts.append(line(x, y + 4, x, bottom, "residual"))
        parts.append(
            svg_text(min(max(x, size / 2), across.end + 100 - size / 2), y, words, "strong", "middle")
        )
    return join(*parts)


def _again(look: Look, name: str, left: float, right: float) -> Safe:
    """The curve of the wide drawing, squeezed along time."""
    squeeze = (right - left) / (WIDE_RIGHT - WIDE_LEFT)
    place = f"translate({left - WIDE_LEFT * squeeze:.2f} 0) scale({squeeze:.4f} 1)"
    return tag("use", href=f"#c-{name}-{look.place}", transform=place, class_=look.classes)


def _curve(look: Look, curve: Curve, name: str, across: Linear, up: LogFromZero) -> Safe:
    """Median and band."""
    xs = [across(float(at)) for at in curve.at_ms]

    def course(values: Iterable[float]) -> list[str]:
        points = simplified([(x, up(float(value))) for x, value in zip(xs, values, strict=True)])
        return [f"{x:.0f} {y:.0f}" for x, y in points]

    band = f"M{'L'.join(course(curve.p90))}L{'L'.join(reversed(course(curve.p10)))}Z"
    middle = f"M{'L'.join(course(curve.p50))}"
    return tag(
        "g",
        tag("path", d=band, class_="area band") if curve.n > 1 else None,
        tag("path", d=middle, class_="median"),
        class_=look.classes,
        id=f"c-{name}-{look.place}",
    )


def _points(
    report: Report, rows: Sequence[tuple[Look, Curve]], name: str, across: Linear, up: LogFromZero
) -> Safe:
    """The median by the residual slot of the stack: hollow where it is emulated, with its figure."""
    found = []
    for look, _ in rows:
        slot = None if look.entry.anchor is None else report.residual_slot_ms.get(look.entry.anchor)
        value = delivered(look, RESIDUAL_STACK, name)
        if slot is not None and value is not None and 0 <= slot <= across.high:
            found.append((look, across(slot), up(min(value, up.high)), value))
    places = spread([y for _, _, y, _ in found], [14.0] * len(found), TOP, up.begin + 4)
    parts = []
    for (look, x, y, value), at in zip(found, places, strict=True):
        told = f"{value:.1f}" if name == "speech_s" or (value < 10 and value % 1) else f"{value:.0f}"
        parts.append(tag("circle", cx=x, cy=y, r=4, class_=f"dot {look.classes}"))
        parts.append(svg_text(x - 9, at + 4, told, f"value halo {look.colour} coloured", "end"))
    return join(*parts)


def _ends(
    report: Report,
    rows: Sequence[tuple[Look, Curve]],
    name: str,
    across: Linear,
    up: LogFromZero,
    width: float,
    narrow: bool,
) -> Safe:
    """Each curve's name at its end, moved apart, with what was there by the last nominal slot."""
    slot = f"{report.slots_ms[-1]:g}" if report.slots_ms else ""
    wanted = [up(float(curve.p50[-1])) for _, curve in rows]
    size = 34.0
    places = spread(wanted, [size] * len(rows), TOP - 6, up.begin + 20)
    x = across.end + (10 if narrow else 26)
    parts = []
    for (look, _), y, at in zip(rows, wanted, places, strict=True):
        value = delivered(look, slot, name)
        headline = look.entry.headlines.get(slot)
        quoted = None if headline is None else headline.published or headline.measured
        digits = 1 if name == "speech_s" else 0
        told = "" if value is None else f"{value:.{digits}f} by {slot} ms"
        if name == "tokens" and value is not None and quoted is not None and not narrow:
            told = f"{value:.0f} of {quoted:.0f} headline by {slot} ms"
        if not narrow:
            told = f"{look.kind}, {told}" if told else look.kind
        parts.append(line(across.end + 2, y, x - 4, at - 2, "leader"))
        parts.append(two_lines(look, told, x, at, width - x))
    return join(*parts)
