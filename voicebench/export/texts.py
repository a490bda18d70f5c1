"""Text that may come from anywhere, made safe to show: on a terminal, in a Markdown table, in a cell."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: ESC [ parameters, final byte
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 character
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # any other escape
)
"""Control sequences of ECMA-48, taken out whole so that no rest of one stays behind as text."""

_SPACES = re.compile(r"\s+")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories without a picture: controls, bidirectional overrides, surrogates, line separators."""

_JOINERS = frozenset("\u200c\u200d")
"""Format characters that scripts and emoji need to be written."""


def one_line(text: str) -> str:
    """`text` on one line without terminal escapes, control characters or bidirectional overrides.

    Runs of white space become one space. What is left shows as what it is, in any terminal and in any file.
    """
    bare = _ESCAPES.sub("", text)
    shown = (
        character
        for character in bare
        if character.isspace() or character in _JOINERS or unicodedata.category(character) not in _HIDDEN
    )
    return _SPACES.sub(" ", "".join(shown)).strip()


def shortened(text: str, width: int) -> str:
    """`one_line(text)`, cut to `width` characters with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"
