"""Recordings as part of the page."""

from __future__ import annotations

import base64
from pathlib import Path

from voicebench.export.html.waterfalls import Inlined

_TYPES = {
    "flac": "audio/flac",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "mp3": "audio/mpeg",
}


def inliner(folder: Path) -> Inlined:
    """How recordings below `folder` become `data:` addresses; one outside it, or unreadable, becomes None."""
    root = folder.resolve()

    def inlined(path: str) -> str | None:
        target = (root / path).resolve()
        kind = _TYPES.get(target.suffix.lower().lstrip("."))
        if kind is None or not target.is_relative_to(root):
            return None
        try:
            content = target.read_bytes()
        except OSError:
            return None
        return f"data:{kind};base64,{base64.b64encode(content).decode()}"

    return inlined
