"""Our own retries: which failures are tried again, and after how long. The SDKs' own are off, as a retry that
nobody sees hides in the latency.

A retry is seen: the record keeps every attempt with both times, latency runs from the first one, and a turn
that needed more than one is flagged `retried`.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from voicebench.clock import now_ns
from voicebench.turns.stream import AttemptLog, StreamLog, StreamStatus

FIRST_WAIT_S = 0.5
"""Without a `retry-after` the second attempt comes after so long, each further one after twice as long."""


@dataclass(frozen=True)
class Retry:
    """How often a request is made, and how long is waited for the next time."""

    attempts: int = 1
    """At most so many calls for one request; 1: no retry."""
    longest_wait_s: float = 5.0
    """Where the provider asks for a longer wait than this, the request is given up at once."""

    def wait_s(
        self, made: int, status: StreamStatus, broken: bool, retry_after_s: float | None
    ) -> float | None:
        """Seconds until the next attempt, when `made` have been; None: there is none.

        Rate limits, overload and a broken connection are tried again. `retry_after_s` is what the provider
        asked for; without it the wait is 0.5 s, doubled with each attempt.
        """
        if made >= self.attempts or not (status in ("rate_limited", "overloaded") or broken):
            return None
        wait = FIRST_WAIT_S * 2 ** (made - 1) if retry_after_s is None else retry_after_s
        return wait if wait <= self.longest_wait_s else None


def retry_after_s(error: BaseException) -> float | None:
    """The wait in seconds that an error's `retry-after` asks for; None where it names no number of them."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            told = float(headers[name]) / per_second if headers is not None else math.nan
        except (KeyError, TypeError, ValueError):
            continue
        if math.isfinite(told) and told >= 0:
            return told
    return None


async def begin_again(log: StreamLog, status: StreamStatus, detail: str, wait_s: float) -> None:
    """End the log's attempt as failed, wait, and begin the next one. The request's own time stands.

    What the failed attempt said of itself is forgotten; the log is running again before the wait begins.
    """
    at_ns = now_ns()
    last = log.attempts[-1]
    last.end_ns, last.status, last.detail = at_ns, status, detail
    fresh: dict[str, Any] = vars(StreamLog(log.request_ns))
    kept = ("request_ns", "asked", "model", "attempts", "caveats", "mode", "choice", "members")
    for name, value in fresh.items():
        if name not in kept:
            setattr(log, name, value)
    await asyncio.sleep(wait_s)
    log.attempts.append(AttemptLog(now_ns()))
