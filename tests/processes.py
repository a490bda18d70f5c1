"""Is a process there? For tests that start and end some."""

from __future__ import annotations

import time
from pathlib import Path


def running(pid: int) -> bool:
    """Is that process there and no mere leftover that nobody has waited for?"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def gone_within(pid: int, seconds: float) -> bool:
    """Does that process end within so many seconds?"""
    deadline = time.monotonic() + seconds
    while running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children_of(pid: int) -> list[int]:
    """The processes that `pid` started and that still run, theirs included."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text("utf-8", "replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return [one for one in found[1:] if running(one)]
