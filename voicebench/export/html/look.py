"""How a mode and a stage look: their classes of colour, hatched and hollow where figures are emulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.report import Report
from voicebench.analysis.siblings import siblings_of
from voicebench.export.html.markup import Safe, join, short, tag, text, user_text
from voicebench.export.tables import several_anchors
from voicebench.export.turn_text import mode_name
from voicebench.turns.timeline import Stage

HUES = 6
"""Families of mode colour."""
LOCAL_HUE = 4
OTHER_HUES = (0, 1, 2, 3, 5)
"""Local modes are graphite, others take these in turn; further families begin again at the first."""

STAGE_CLASS = {stage: f"s{place}" for place, stage in enumerate(Stage)}
FAMILY = {
    Stage.ENDPOINTING: "listen",
    Stage.ASR: "listen",
    Stage.TURN: "listen",
    Stage.DISPATCH: "listen",
    Stage.LLM_TTFAT: "model",
    Stage.CLAUSE: "model",
    Stage.TTS: "speak",
    Stage.PLAYOUT: "speak",
}


@dataclass(frozen=True)
class Look:
    """One entry of the report as it shows everywhere."""

    place: int
    """Its place in the report's `modes`."""
    entry: ModeReport
    colour: str
    """Class of its colour: `m0a` is the standard mode of family 0, `m0b` the faster one or a single one."""
    provider: str
    name: str
    note: str
    """`emulated`, `local`, `live`, and the anchor where several stand side by side."""

    @property
    def emulated(self) -> bool:
        """Are its figures replayed ones?"""
        return self.entry.kind == "emulated"

    @property
    def kind(self) -> str:
        """Provider and kind, for a second line under its name: `emulated`, `local`, `anthropic`."""
        ahead = [self.provider] if self.provider and not self.note.startswith(self.provider) else []
        return ", ".join([*ahead, self.note]) if self._says_more or not ahead else self.provider

    @property
    def classes(self) -> str:
        """The classes of everything drawn for it."""
        return f"{self.colour} emu" if self.emulated else self.colour

    @property
    def full(self) -> str:
        """Its name as one text, marked where it is emulated."""
        anchor = f", {self.note.split(', ')[1]}" if ", " in self.note else ""
        return mode_name(self.entry.mode, self.entry.kind) + anchor

    def chip(self) -> Safe:
        """The swatch and the name, for HTML."""
        return tag("span", self.swatch(), self.worded(), class_="chip")

    def swatch(self) -> Safe:
        """A square in its colour: hatched where it is emulated."""
        square = tag("rect", x=0.5, y=0.5, width=10, height=10, class_="area")
        return tag("svg", square, class_=f"sw {self.classes}", viewBox="0 0 11 11", aria_hidden="true")

    def worded(self) -> Safe:
        """The name with its provider muted, and `(emulated)` where the provider does not say so."""
        ahead = tag("span", user_text(f"{self.provider}/"), class_="mute") if self.provider else None
        behind = tag("span", f" ({self.note})", class_="mute") if self._says_more else None
        return join(ahead, tag("b", user_text(self.name, 120), class_=self.colour), behind)

    @property
    def _says_more(self) -> bool:
        return ", " in self.note or (self.emulated and self.provider != "emulated")


def looks_of(report: Report) -> list[Look]:
    """Each entry of the report with its colour: siblings share a hue, the faster has the stronger tone."""
    siblings = siblings_of(report.run)
    present = {entry.mode for entry in report.modes}
    roots: dict[str, int] = {}
    found = []
    for place, entry in enumerate(report.modes):
        base = siblings.get(entry.mode)
        root = base if base in present and base is not None else entry.mode
        if root not in roots:
            rank = sum(hue != LOCAL_HUE for hue in roots.values())
            local = entry.kind == "local" and LOCAL_HUE not in roots.values()
            roots[root] = LOCAL_HUE if local else OTHER_HUES[rank % len(OTHER_HUES)]
        hue = roots[root]
        is_base = any(siblings.get(other) == entry.mode for other in present)
        provider, slash, name = entry.mode.partition("/")
        note: str = entry.kind or "not run"
        if several_anchors(report) and entry.anchor is not None:
            note = f"{note}, {entry.anchor.value}"
        found.append(
            Look(
                place=place,
                entry=entry,
                colour=f"m{hue}{'a' if is_base else 'b'}",
                provider=provider if slash else "",
                name=name if slash else entry.mode,
                note=note,
            )
        )
    return found


def patterns() -> Safe:
    """The hatches that emulated figures are filled with: one for each stage and each mode colour."""
    names = [*STAGE_CLASS.values(), *(f"m{hue}{tone}" for hue in range(HUES) for tone in "ab")]
    made = [_hatch(name) for name in names]
    made += [
        tag("pattern", id=f"w-{name}", href=f"#h-{name}", patternTransform="scale(2.5 1)")
        for name in STAGE_CLASS.values()
    ]
    return tag("svg", tag("defs", *made), class_="defs", aria_hidden="true", width=0, height=0)


def _hatch(name: str) -> Safe:
    return tag(
        "pattern",
        tag("rect", width=5, height=5, class_=f"fill {name}"),
        tag("path", d="M0 5L5 0M-1 1L1 -1M4 6L6 4", class_="stripe"),
        id=f"h-{name}",
        width=5,
        height=5,
        patternUnits="userSpaceOnUse",
    )


def figure(pointer: str, value: float | None, shown: str, **attributes: str) -> Safe:
    """A figure: what is shown, with its place in `report.json` (RFC 6901) and its unrounded value."""
    told = "null" if value is None else repr(value)
    return tag("data", text(shown), value=told, data_pointer=pointer, **attributes)


def svg(width: float, height: float, label: str, *children: Safe, class_: str = "") -> Safe:
    """A drawing with its name for those who do not see it."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=label,
        class_=f"chart {class_}".strip(),
    )


def svg_text(x: float, y: float, shown: str, class_: str = "", anchor: str | None = None) -> Safe:
    """Text in a drawing; `anchor` is `middle` or `end`."""
    return tag("text", shown, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    """A straight line in a drawing."""
    return tag("path", d=f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}", class_=class_)


def both(draw: Sequence[Safe]) -> Safe:
    """The wide and the narrow drawing of one chart; the styles show the one that fits the screen."""
    return tag("div", *draw, class_="drawing")
