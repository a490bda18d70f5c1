"""File names as text: what a person, a record or a terminal may be shown of a path."""

from __future__ import annotations

import os
from pathlib import Path

from voicebench.models import names


def printable(path: Path | str) -> str:
    """`path` as text that any UTF-8 file and any terminal can take.

    Bytes that are not UTF-8 become `\\xNN`; control characters (terminal escapes, line breaks) and invisible
    direction marks become Python escapes. Everything else, umlauts and snowmen included, stays as it is.
    """
    return names.printable(os.fsencode(path).decode("utf-8", "backslashreplace"))
