"""Durations come from the monotonic clock: where the wall clock may be read at all."""

from __future__ import annotations

import ast
from pathlib import Path

import voicebench
from voicebench.clock import now_ns, utc_now

ROOT = Path(voicebench.__file__).parent
DATES = {
    "clock.py": "the date of a run, in words",
    "turns/run_folder.py": "the date in a folder's name",
    "emulator/service.py": "the `created` field of a vendor's reply",
}
"""The files that read the wall clock, and what for. None of it enters a duration."""
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "time.localtime"}


def names_read(source: str) -> set[str]:
    """The dotted names of two parts in a source file, and what it takes out of `time` by name."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            found.add(f"{node.value.attr}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {f"time.{name.name}" for name in node.names}
    return found


def test_no_other_file_reads_the_wall_clock() -> None:
    """A clock that is set can move no figure, as no source but those of dates reads it."""
    readers = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if names_read(path.read_text("utf-8")) & WALL
    }
    assert readers == set(DATES)


def test_the_search_finds_every_form() -> None:
    """The search is one that can fail."""
    dates = "import datetime\ndatetime.datetime.now()"
    for line in ("import time\ntime.time()", "from time import time_ns", dates):
        assert names_read(line) & WALL


def test_our_clock_never_goes_back() -> None:
    """Instants are whole nanoseconds that never fall; the date is in UTC."""
    instants = [now_ns() for _ in range(1000)]
    assert instants == sorted(instants)
    assert all(isinstance(at, int) for at in instants)
    assert utc_now().endswith("Z")
