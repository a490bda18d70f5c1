"""The report on a terminal."""

from __future__ import annotations

from voicebench.export.turn_text import turn_line, waterfall

__all__ = ["turn_line", "waterfall"]
