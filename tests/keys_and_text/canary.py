"""A planted key, and the search for any part of it in an output."""

from __future__ import annotations

import base64
import gzip
import importlib
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

CANARY = "sk-Qz7/Vw3+Kt9xGh5RbN2mYp8Lc4Df6Js1"
FRAGMENT = 8


def marks_of(key: str = CANARY) -> set[str]:
    """Every 8 characters in a row of the key: plain, URL-encoded, in base64 at each alignment, and in hex."""
    raw = key.encode()
    forms = [key, quote(key, safe=""), quote(quote(key, safe=""), safe=""), raw.hex()]
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.append(encode(b"\0" * shift + raw).decode().rstrip("=")[4:-2])
    return {form[at : at + FRAGMENT] for form in forms for at in range(len(form) - FRAGMENT + 1)}


MARKS = marks_of()


def leaks(text: str) -> list[str]:
    """The parts of the key that stand in `text`."""
    return sorted({text[at : at + FRAGMENT] for at in range(len(text) - FRAGMENT + 1)} & MARKS)


def shown_in(name: str, content: bytes) -> str:
    """All text that a file holds, also what is packed: the figures in a page, the cells of a Parquet file."""
    if name.endswith(".parquet"):
        parquet: Any = importlib.import_module("pyarrow.parquet")
        table = parquet.read_table(io.BytesIO(content))
        return f"{table.schema.to_string()}{table.schema.metadata}{table.to_pylist()}"
    text = content.decode("utf-8", "replace")
    if name.endswith(".html"):
        packed = re.findall(r'gzip;base64" id=[\w-]+>([^<]+)<', text)
        assert packed, "a report holds its figures"
        text += "".join(gzip.decompress(base64.b64decode(one)).decode() for one in packed)
    return text


def leaks_below(folder: Path) -> dict[str, list[str]]:
    """The parts of the key in every file below `folder`, and in the files' names."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            parts = leaks(f"{name}\n{shown_in(name, path.read_bytes())}")
            if parts:
                found[str(path.relative_to(folder))] = parts
    return found


def all_leaks(texts: Iterable[str]) -> list[str]:
    """The parts of the key in any of these texts."""
    return [part for text in texts for part in leaks(text)]
