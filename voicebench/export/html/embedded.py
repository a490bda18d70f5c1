"""Recordings as part of the page."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

from voicebench.export.html.waterfalls import Addressed
from voicebench.turns.durable import open_to_read, whole_text

MOST_BYTES = 64 << 20
"""No recording of a turn is larger."""

_TYPES = {
    "flac": "audio/flac",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "mp3": "audio/mpeg",
}


def addresser(way_to_run: str = "", embedded: Path | None = None) -> Addressed:
    """How recordings of a run are addressed: by a link over `way_to_run`, or by their own bytes.

    With `embedded`, the run's folder, a recording below it becomes a `data:` address; one outside it,
    unreadable or too large stays a link.
    """
    root = None if embedded is None else embedded.resolve()

    def addressed(path: str) -> tuple[str, bool]:
        content = None if root is None else _data(root, path)
        return (_quoted(f"{way_to_run}{path}"), False) if content is None else (content, True)

    return addressed


def _quoted(path: str) -> str:
    """`path` as an address; bytes of a folder's name that are not UTF-8 stay those bytes."""
    try:
        return quote(path, errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(whole_text(path))


def _data(root: Path, path: str) -> str | None:
    target = (root / path).resolve()
    kind = _TYPES.get(target.suffix.lower().lstrip("."))
    if kind is None or not target.is_relative_to(root):
        return None
    try:
        with open_to_read(target) as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                return None
            content = file.read()
    except OSError:
        return None
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
