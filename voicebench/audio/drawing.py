"""A flat picture as a list of shapes, written as self-contained SVG (light and dark) or as PNG.

Colours are names of `PALETTE`; coordinates are pixels from the upper left corner.
"""

from __future__ import annotations

import io
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from voicebench.errors import BadRequest

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

PALETTE: dict[str, tuple[str, str]] = {
    "paper": ("#fcfaf5", "#17191d"),
    "ink": ("#22262c", "#e8e6e0"),
    "soft": ("#5d646e", "#a3a9b2"),
    "rule": ("#d9d4c8", "#3a3e46"),
    "user": ("#4d5d73", "#9fb0c8"),
    "user_band": ("#e9ecf0", "#262b33"),
    "agent": ("#1f6fa8", "#6db6e8"),
    "agent_band": ("#e3eef6", "#1d2c38"),
    "faint": ("#c3c2bd", "#4d5158"),
    "within": ("#efe3bd", "#4a4327"),
    "within_ink": ("#6a5410", "#e6d38c"),
    "over": ("#f6cfc2", "#5c2a1e"),
    "over_ink": ("#a8280c", "#ff9d82"),
    "both": ("#8a3f86", "#d58ed0"),
}
"""Each colour's name, and its value on a light and on a dark ground."""

Anchor = Literal["start", "middle", "end"]
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle; `hatched` draws slanted lines in its colour instead. `tip` is told on hovering."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    hatched: bool = False
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; `dashed` or solid."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Upright strokes `(x, top, bottom)` of one colour: a waveform."""

    strokes: tuple[tuple[float, float, float], ...]
    colour: str
    width: float


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text with its baseline at `y`."""

    x: float
    y: float
    text: str
    colour: str = "ink"
    size: float = 12.0
    anchor: Anchor = "start"
    bold: bool = False


Shape = Box | Line | Bars | Words


@dataclass
class Drawing:
    """A picture: its size, what it shows in words, and its shapes from back to front."""

    width: int
    height: int
    title: str
    about: str
    shapes: list[Shape] = field(default_factory=list)


def xml_text(text: str) -> str:
    """`text` escaped for XML, in content and in attributes; what XML cannot hold becomes a question mark."""
    allowed = "".join(c if _in_xml(ord(c)) else "?" for c in text)
    for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        allowed = allowed.replace(raw, escaped)
    return allowed


def _in_xml(code: int) -> bool:
    """Is it a character of XML 1.0, and no control character?"""
    if code < 0x20:
        return code in (0x09, 0x0A, 0x0D)
    return not (0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code in (0xFFFE, 0xFFFF))


def to_svg(drawing: Drawing) -> str:
    """The picture as SVG: no script, nothing loaded; it follows the reader's light or dark setting."""
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title about">',
        f'<title id="title">{xml_text(drawing.title)}</title>',
        f'<desc id="about">{xml_text(drawing.about)}</desc>',
        f"<style>{_style()}</style>",
        _hatches(),
        f'<rect width="{drawing.width}" height="{drawing.height}" class="f-paper"/>',
    ]
    parts.extend(_svg_shape(shape) for shape in drawing.shapes)
    parts.append("</svg>\n")
    return "\n".join(parts)


def _style() -> str:
    """The colours as classes, and their values on a dark ground."""

    def classes(which: int) -> str:
        return "".join(
            f".f-{name}{{fill:{values[which]}}}.s-{name}{{stroke:{values[which]}}}"
            for name, values in PALETTE.items()
        )

    return (
        f"text{{font-family:{_FONT};font-variant-numeric:tabular-nums}}path,line{{fill:none}}"
        f"{classes(0)}@media (prefers-color-scheme:dark){{{classes(1)}}}"
    )


def _hatches() -> str:
    """A pattern of slanted lines for each colour."""
    return (
        "<defs>"
        + "".join(
            f'<pattern id="hatch-{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="2.4" height="6" class="f-{name}"/></pattern>'
            for name in PALETTE
        )
        + "</defs>"
    )


def _svg_shape(shape: Shape) -> str:
    """One shape as SVG."""
    match shape:
        case Box():
            fill = f'fill="url(#hatch-{shape.colour})"' if shape.hatched else f'class="f-{shape.colour}"'
            place = (
                f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}"'
            )
            if not shape.tip:
                return f"<rect {place} {fill}/>"
            return f"<rect {place} {fill}><title>{xml_text(shape.tip)}</title></rect>"
        case Line():
            dash = ' stroke-dasharray="3 3"' if shape.dashed else ""
            return (
                f'<line x1="{shape.x1:.1f}" y1="{shape.y1:.1f}" x2="{shape.x2:.1f}" y2="{shape.y2:.1f}" '
                f'class="s-{shape.colour}" stroke-width="{shape.width:g}"{dash}/>'
            )
        case Bars():
            path = "".join(f"M{x:g} {top:.1f}V{bottom:.1f}" for x, top, bottom in shape.strokes)
            return f'<path d="{path}" class="s-{shape.colour}" stroke-width="{shape.width:g}"/>'
        case Words():
            weight = ' font-weight="600"' if shape.bold else ""
            look = f'class="f-{shape.colour}" font-size="{shape.size:g}" text-anchor="{shape.anchor}"{weight}'
            return f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" {look}>{xml_text(shape.text)}</text>'


def drawable(text: str, font: FreeTypeFont | ImageFont) -> str:
    """`text` in characters that `font` holds, so that none shows as an empty box.

    A true minus becomes a hyphen, an accented letter its plain one, anything else that is missing, or has no
    picture, a "?".
    """
    missing = bytes(font.getmask("\uffff"))

    def held(character: str) -> str:
        plain = "-" if character == "\u2212" else unicodedata.normalize("NFKD", character)[0]
        for choice in (character, plain):
            if choice.isspace() or bytes(font.getmask(choice)) != missing:
                return choice
        return "?"

    return "".join(
        "?" if not character.isprintable() else character if character.isascii() else held(character)
        for character in text
    )


def to_png(drawing: Drawing, scale: int = 2) -> bytes:
    """The picture as PNG on a light ground, `scale` pixels for each unit.

    Raises BadRequest where Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise BadRequest(
            "A picture as PNG needs the Python package pillow, which is not installed.",
            "Write it as .svg, or install it with:  pip install pillow",
        ) from error
    image = Image.new("RGB", (drawing.width * scale, drawing.height * scale), PALETTE["paper"][0])
    pen = ImageDraw.Draw(image)
    for shape in drawing.shapes:
        colour = PALETTE[shape.colour][0]
        match shape:
            case Box() if shape.hatched:
                step = 8 * scale
                left, top = int(shape.x * scale), int(shape.y * scale)
                right, bottom = int((shape.x + shape.width) * scale), int((shape.y + shape.height) * scale)
                tile = Image.new("L", (max(1, right - left), max(1, bottom - top)), 0)
                lines = ImageDraw.Draw(tile)
                for start in range(-tile.height, tile.width, step):
                    lines.line([(start, tile.height), (start + tile.height, 0)], 255, 3 * scale)
                image.paste(colour, (left, top), tile)
            case Box():
                corner = ((shape.x + shape.width) * scale, (shape.y + shape.height) * scale)
                pen.rectangle([(shape.x * scale, shape.y * scale), corner], fill=colour)
            case Line():
                ends = [(shape.x1 * scale, shape.y1 * scale), (shape.x2 * scale, shape.y2 * scale)]
                pen.line(ends, fill=colour, width=max(1, round(shape.width * scale)))
            case Bars():
                width = max(1, round(shape.width * scale))
                for x, top_y, bottom_y in shape.strokes:
                    pen.line([(x * scale, top_y * scale), (x * scale, bottom_y * scale)], colour, width)
            case Words():
                font = ImageFont.load_default(shape.size * scale)
                at = (shape.x * scale, shape.y * scale)
                anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
                stroke = 0.3 * scale if shape.bold else 0
                pen.text(
                    at,
                    drawable(shape.text, font),
                    colour,
                    font,
                    anchor,
                    stroke_width=stroke,
                    stroke_fill=colour,
                )
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
