"""Waiting for an exact instant: an event loop whose timers are finer than a millisecond."""

from __future__ import annotations

import asyncio
import selectors
import sys
from typing import Any

from voicebench.clock import NS_PER_S, now_ns

if sys.platform == "linux":
    import ctypes
    import select

    class _FineSelector(selectors.EpollSelector):
        """Waits on the epoll descriptor with select(), which takes microseconds; epoll itself rounds up to
        1 ms."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                select.select((self.fileno(),), (), (), timeout)
                timeout = 0
            return super().select(timeout)

    def _tighten_timer_slack() -> None:
        """Let the kernel wake this thread within 1 us of a timer in place of 50 us (PR_SET_TIMERSLACK)."""
        ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1000), 0, 0, 0)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop for `asyncio.Runner(loop_factory=...)`; on Linux with timers of microseconds."""
    if sys.platform == "linux":
        _tighten_timer_slack()
        return asyncio.SelectorEventLoop(_FineSelector())
    return asyncio.new_event_loop()


async def sleep_until(due_ns: int) -> None:
    """Return at `due_ns` of the monotonic clock, or at once where it is past."""
    if due_ns <= now_ns():
        return
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    timer = loop.call_at(due_ns / NS_PER_S, _wake, done)
    try:
        await done
    finally:
        timer.cancel()


def _wake(done: asyncio.Future[Any]) -> None:
    if not done.done():
        done.set_result(None)
