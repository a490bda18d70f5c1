"""The picture of a call."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import ImageFont

from tests.audio.waveform_calls import RATE, clean_call, echo, late, placed, voices
from voicebench.audio.drawing import (
    PALETTE,
    Bars,
    Box,
    Drawing,
    Line,
    Words,
    drawable,
    to_png,
    to_svg,
    xml_text,
)
from voicebench.audio.picture import WIDTH, draw_conversation, wait_text
from voicebench.audio.waveform import Conversation, Turn, conversation

SVG = "{http://www.w3.org/2000/svg}"


def drawn(seed: int = 1, title: str = "call.wav", budget_ms: float = 800) -> tuple[Drawing, Conversation]:
    """A call's picture and what it shows."""
    user, agent, _ = clean_call(seed)
    user, agent, _ = echo(user, agent, np.random.default_rng(seed))
    found = conversation(user, agent, RATE)
    return draw_conversation(
        found, user, agent, title=title, summary="median 700 ms", budget_ms=budget_ms
    ), found


def words(drawing: Drawing) -> list[str]:
    """The texts of a picture."""
    return [shape.text for shape in drawing.shapes if isinstance(shape, Words)]


def test_every_wait_is_labelled_and_those_over_the_budget_say_so() -> None:
    """Each wait stands in the picture in ms; beyond the budget it says so in words, not only in colour."""
    drawing, found = drawn()
    texts = words(drawing)
    assert found.turns
    for turn in found.turns:
        assert turn.voice_to_voice_ms is not None
        over = " over" if turn.voice_to_voice_ms > 800 else ""
        assert wait_text(turn) + over in texts
    colours = [s.colour for s in drawing.shapes if isinstance(s, Box) and "from" in s.tip]
    assert colours.count("over") >= sum((t.voice_to_voice_ms or 0) > 800 for t in found.turns) > 0
    assert "within" in colours


def test_overlaps_are_hatched() -> None:
    """A reply that begins early shows where both speak, and its wait with a minus sign."""
    user = placed([(RATE, voices()[0])], 6 * RATE)
    end = conversation(user, np.zeros_like(user), RATE).user.segments[0].end_s
    agent = placed([(round((end - 0.5) * RATE), voices()[1])], 6 * RATE)
    found = conversation(user, agent, RATE)
    drawing = draw_conversation(found, user, agent, title="t", summary="s", budget_ms=800)
    assert found.overlaps
    tips = [s.tip for s in drawing.shapes if isinstance(s, Box) and s.hatched]
    assert any("both speak" in tip for tip in tips)
    assert any(text.startswith("−") and text.endswith("ms") for text in words(drawing))


def test_an_echo_is_drawn_pale() -> None:
    """What was taken for no speech is drawn in another colour than the speech."""
    drawing, _ = drawn()
    strokes = Counter({"faint": 0})
    for shape in drawing.shapes:
        if isinstance(shape, Bars):
            strokes[shape.colour] += len(shape.strokes)
    assert strokes["faint"] > 50
    assert {"user", "agent"} <= set(strokes)


def test_a_long_call_is_wrapped_into_rows_of_30_s() -> None:
    """A call of 65 s has three rows, and its axis runs on through them."""
    voice = placed([(RATE, voices()[0]), (50 * RATE, voices()[0])], 65 * RATE)
    silent = np.zeros_like(voice)
    found = conversation(voice, silent, RATE)
    drawing = draw_conversation(found, voice, silent, title="t", summary="s", budget_ms=800)
    assert words(drawing).count("user") == 3 + 1
    assert [t for t in words(drawing) if re.fullmatch(r"\d+:\d\d", t)].count("0:30") == 2
    assert "1:05" in words(drawing)


def test_nothing_lies_outside_the_picture() -> None:
    """Every shape is within the picture's edges, whatever the call."""
    drawing, _ = drawn(2)
    for shape in drawing.shapes:
        match shape:
            case Box():
                assert shape.x >= 0
                assert shape.x + shape.width <= WIDTH
                assert shape.y + shape.height <= drawing.height
            case Line():
                assert max(shape.x1, shape.x2) <= WIDTH
                assert max(shape.y1, shape.y2) <= drawing.height
            case Bars():
                assert all(0 <= x <= WIDTH and 0 <= top <= bottom for x, top, bottom in shape.strokes)
            case Words():
                assert 0 <= shape.x <= WIDTH
                assert shape.y <= drawing.height


def test_labels_of_close_turns_do_not_cover_each_other() -> None:
    """Labels in the same line of a row keep their distance."""
    drawing, _ = drawn(3)
    labels = [s for s in drawing.shapes if isinstance(s, Words) and "ms" in s.text and s.bold and s.size < 13]
    boxes = [
        s
        for s in drawing.shapes
        if isinstance(s, Box) and s.colour == "paper" and s.height == pytest.approx(15)
    ]
    assert len(labels) == len(boxes) > 3
    for a in boxes:
        for b in boxes:
            if a is not b and abs(a.y - b.y) < 10:
                assert a.x + a.width <= b.x + 0.01 or b.x + b.width <= a.x + 0.01


def test_the_svg_is_self_contained_and_knows_light_and_dark() -> None:
    """The SVG is one XML element tree without scripts or references to elsewhere, with a dark variant."""
    svg = to_svg(drawn()[0])
    root = ElementTree.fromstring(svg)
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "pattern", "rect", "line", "path", "text",
    }  # fmt: skip
    assert "prefers-color-scheme:dark" in svg
    assert re.findall(r"href|src=|url\((?!#)|@import", svg) == []
    assert not any(name.lower().startswith("on") for e in root.iter() for name in e.attrib)
    assert root.attrib["role"] == "img"


@pytest.mark.parametrize(
    "title",
    ["</title><script>alert(1)</script>", "a & b \"c\" 'd'", "\x00\x1b[31m\ud800\ufffe", "<!-- ]]>", "☃ é"],
)
def test_a_title_stays_text(title: str) -> None:
    """Whatever a file is called, the SVG stays well formed, with the same elements, and shows the name."""
    plain = ElementTree.fromstring(to_svg(Drawing(100, 50, "t", "a", [Words(1, 1, "t")])))
    odd = ElementTree.fromstring(to_svg(Drawing(100, 50, title, title, [Words(1, 1, title)])))
    assert [e.tag for e in odd.iter()] == [e.tag for e in plain.iter()]
    shown = odd.find(f"{SVG}text")
    assert shown is not None
    assert shown.text == "".join(c if c.isprintable() and c not in "\ud800\ufffe" else "?" for c in title)


def test_every_colour_has_a_light_and_a_dark_value() -> None:
    """Each class of the SVG is defined for both grounds."""
    svg = to_svg(Drawing(10, 10, "t", "a", []))
    for name in PALETTE:
        assert svg.count(f".f-{name}{{") == 2


def test_the_png_is_twice_as_large_as_the_drawing() -> None:
    """The PNG has two pixels for each unit, and more than one colour."""
    from io import BytesIO

    from PIL import Image

    drawing, _ = drawn(4)
    with Image.open(BytesIO(to_png(drawing))) as image:
        assert image.size == (2 * drawing.width, 2 * drawing.height)
        assert len(set(image.resize((64, 64)).get_flattened_data())) > 5


def test_a_png_shows_no_empty_boxes() -> None:
    """What the PNG's font lacks is written in what it has: a minus as a hyphen, else a question mark."""
    font = ImageFont.load_default(20)
    assert drawable("−400 ms, ± 5 … ☃ ok", font) == "-400 ms, ± 5 … ? ok"


def test_signs_are_explained_where_they_occur() -> None:
    """A picture with an uncertain or a negative wait says what their signs mean, another does not."""
    silent = np.zeros(4 * RATE, np.float32)
    found = conversation(silent, silent, RATE)
    for turns, expected in (
        ((Turn(0, 1, 1.5, 2, 500.0, False, True, 5),), 0),
        ((Turn(0, 1, 1.5, 2, 500.0, False, False, 300),), 1),
        ((Turn(0, 1, 0.6, 2, -400.0, False, True, 5), Turn(2, 3, None, None, None, False, False, 5)), 2),
    ):
        shown = replace(found, turns=turns)
        drawing = draw_conversation(shown, silent, silent, title="t", summary="s", budget_ms=800)
        told = " ".join(words(drawing))
        assert ("not certain" in told) + ("began before the user" in told) == expected


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (Turn(0, 1, 1.74, 2, 740.0, False, True, 5), "740 ms"),
        (Turn(0, 1, 0.6, 2, -400.0, False, True, 5), "−400 ms"),
        (Turn(0, 1, 2.2345, 3, 1234.5, True, True, 5), "1,234 ms, interrupted"),
        (Turn(0, 1, None, None, None, False, False, 5), "no reply ?"),
    ],
)
def test_waits_are_written_for_readers(turn: Turn, text: str) -> None:
    """A wait is whole milliseconds with grouped thousands, a true minus, and a mark where it is uncertain."""
    assert wait_text(turn) == text


def test_text_for_xml_keeps_what_can_be_kept() -> None:
    """Letters of any script stay, markup is escaped, what XML forbids becomes a question mark."""
    assert xml_text("é☃ <&>\"'\x07") == "é☃ &lt;&amp;&gt;&quot;&#39;?"


def test_an_empty_call_has_a_picture() -> None:
    """A call of silence, and one of a fraction of a second, are drawn without error."""
    for count in (80, 5 * RATE):
        silent = np.zeros(count, np.float32)
        found = conversation(silent, late(silent, 1), RATE)
        ElementTree.fromstring(
            to_svg(draw_conversation(found, silent, silent, title="t", summary="s", budget_ms=800))
        )
