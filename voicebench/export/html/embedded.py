"""Recordings as part of the page."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

from voicebench.export.html.waterfalls import Addressed

_TYPES = {
    "flac": "audio/flac",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "mp3": "audio/mpeg",
}


def addresser(way_to_run: str = "", embedded: Path | None = None) -> Addressed:
    """How recordings of a run are addressed: by a link over `way_to_run`, or by their own bytes.

    With `embedded`, the run's folder, a recording below it becomes a `data:` address; one outside it, or
    unreadable, stays a link.
    """
    root = None if embedded is None else embedded.resolve()

    def addressed(path: str) -> tuple[str, bool]:
        content = None if root is None else _data(root, path)
        return (quote(f"{way_to_run}{path}"), False) if content is None else (content, True)

    return addressed


def _data(root: Path, path: str) -> str | None:
    target = (root / path).resolve()
    kind = _TYPES.get(target.suffix.lower().lstrip("."))
    if kind is None or not target.is_relative_to(root):
        return None
    try:
        content = target.read_bytes()
    except OSError:
        return None
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
