"""Threads for what blocks, none of which can hold up a run's turns, its report or the program's end.

asyncio's own few threads are waited for when the loop closes, and again when the interpreter ends. A call
that never returns, as of a recogniser or a voice that hangs, would take one of them for good: after a few
such turns nothing gets a thread any more, and the program would never end.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

END_S = 0.5
"""So long is a call that still runs waited for when its loop ends."""
LEAVE_S = 1.0
"""So long is any other thread waited for when the program ends."""

_Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]

_busy_lock = threading.Lock()
_busy = 0


class GrowingThreads(ThreadPoolExecutor):
    """An executor that asyncio takes for its own: a call never waits for another one's thread.

    A thread that is free takes the next call; where none is, another one is started. They are daemons: the
    interpreter ends without them. Leave the program by `leave`, though, while one may be within native code.
    """

    def __init__(self) -> None:
        super().__init__(1, "voicebench")
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._own_lock = threading.Lock()
        self._free = 0
        self._started: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a thread, at once. Raises RuntimeError after `shutdown`."""
        future: Future[Any] = Future()
        with self._own_lock:
            if self._closed:
                raise RuntimeError("The threads have ended.")
            if self._free:
                self._free -= 1
            else:
                name = f"voicebench-{len(self._started)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._started.append(thread)
            self._calls.put((future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. Waits for `END_S` at most, and leaves behind what then still runs."""
        with self._own_lock:
            if not self._closed:
                self._closed = True
                for _ in self._started:
                    self._calls.put(None)
        deadline = time.monotonic() + END_S
        for thread in self._started if wait else ():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            self._answer(*call)
            del call  # a waiting thread holds on to nothing

    def _answer(
        self, future: Future[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        result, error = None, None
        if future.set_running_or_notify_cancel():
            _count(1)
            try:
                result = fn(*args, **kwargs)
            except BaseException as raised:  # whoever waits for the call gets it
                error = raised
            finally:
                _count(-1)
        else:
            future = Future()
        with self._own_lock:
            # Before the result is known: who hears of it may call again at once.
            self._free += 1
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
            error = None  # else its traceback would hold this frame, and this frame it


def _count(change: int) -> None:
    global _busy
    with _busy_lock:
        _busy += change


def busy() -> int:
    """So many calls are running in such threads, in all loops of the program."""
    return _busy


def leave(status: int) -> NoReturn:
    """End the program with this status. What it has written is flushed; no thread is waited for any longer
    than `LEAVE_S`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if busy():
        # Native code that runs on while the interpreter is taken down may crash it.
        os._exit(status)

    def end() -> None:
        time.sleep(LEAVE_S)
        os._exit(status)

    # The interpreter waits for every thread that is no daemon, also for those of libraries.
    threading.Thread(target=end, name="leave", daemon=True).start()
    sys.exit(status)
