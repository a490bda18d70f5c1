"""Hostile text on a terminal: nothing in a transcript, reply or name can steer it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicebench.export.texts import one_line, shortened


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mc1\x9b0m", "c1"),
        ("\x1bP1;2|payload\x1b\\dcs", "dcs"),
        ("\x1bcreset", "reset"),
        ("a\u202eevil\u202c b\u2066c\u2069", "aevil bc"),
        ("bell\x07 back\x08space del\x7f nul\x00", "bell backspace del nul"),
        ("two\nlines\r\n\tand\u2028more", "two lines and more"),
        ("\x1b\x1b[31m[31mnested", "[31mnested"),
        ("open \x1b]0;never ended", "open 0;never ended"),
        ("lone \ud83d half", "lone half"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
    ],
)
def test_control_sequences_are_taken_out(hostile: str, shown: str) -> None:
    """Escapes, C1 controls, bidirectional overrides and the like are gone, and the plain text stays."""
    assert one_line(hostile) == shown


def test_text_of_all_scripts_stays() -> None:
    """Umlauts, other scripts, joined emoji and signs are left as they are."""
    text = "Grüße, 你好, שלום, 👩‍👩‍👧 — 3 < 4 & 5 % [x]"
    assert one_line(text) == text


@given(st.text())
def test_no_control_character_is_ever_left(text: str) -> None:
    """Whatever the text, what is shown is one line without controls, and showing it again changes nothing."""
    shown = one_line(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    assert one_line(shown) == shown


@given(st.text(), st.integers(1, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    """A shortened text is at most as long as asked and ends in an ellipsis where it was cut."""
    short = shortened(text, width)
    assert len(short) <= width
    assert short == one_line(text) or short.endswith("…")
