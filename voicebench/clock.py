"""The one clock: every instant inside voicebench is an integer of nanoseconds on the monotonic clock."""

import time
from datetime import UTC, datetime

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def now_ns() -> int:
    """The present instant, in ns of the monotonic clock (shared by all processes of this machine)."""
    return time.monotonic_ns()


def ms(ns: int) -> float:
    """A duration in ns as ms, unrounded."""
    return ns / NS_PER_MS


def utc_now() -> str:
    """The calendar time, ISO 8601 in UTC: it labels a run and never enters a duration."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
