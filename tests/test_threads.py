"""Threads for what blocks: as many as there are calls, and none that holds up an end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from voicebench.load import make_room
from voicebench.threads import GrowingThreads, busy


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What hanging calls wait for: set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_no_call_waits_for_the_thread_of_another() -> None:
    """Forty calls that wait for one another all run at once."""
    threads, together = GrowingThreads(), threading.Barrier(40)
    calls = [threads.submit(together.wait, 20) for _ in range(40)]
    assert sorted(call.result(20) for call in calls) == list(range(40))
    threads.shutdown()


def test_a_free_thread_takes_the_next_call() -> None:
    """Calls one after the other share a thread; an error goes to whoever waits for the call."""
    threads = GrowingThreads()
    assert len({threads.submit(threading.get_ident).result(10) for _ in range(20)}) == 1
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(10)
    assert threads.submit(str, 5).result(10) == "5"
    threads.shutdown()
    with pytest.raises(RuntimeError, match="ended"):
        threads.submit(str, 5)


def test_a_loop_ends_without_what_hangs_in_its_threads(stuck: threading.Event) -> None:
    """`asyncio.run` returns though a call of its own never does; the call is counted as long as it runs."""

    def hang() -> None:
        begun.set()
        stuck.wait()

    async def run() -> None:
        make_room()
        hanging = asyncio.ensure_future(asyncio.to_thread(hang))
        assert await asyncio.to_thread(begun.wait, 20)
        hanging.cancel()

    before, begun, ended = busy(), threading.Event(), threading.Event()

    def whole() -> None:
        asyncio.run(run())
        ended.set()

    threading.Thread(target=whole, daemon=True).start()
    assert ended.wait(20)
    assert busy() == before + 1


@pytest.mark.parametrize("hangs", ["nothing", "a thread of a library", "a call of ours"])
def test_a_program_leaves_whatever_still_hangs(hangs: str) -> None:
    """`leave` ends the program with its status and with all that it has written."""
    kind = {"a thread of a library": "ThreadPoolExecutor", "a call of ours": "GrowingThreads"}.get(hangs)
    code = f"""if True:
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from voicebench.threads import GrowingThreads, leave
        if made := {kind}:
            begun = threading.Event()
            made().submit(lambda: (begun.set(), threading.Event().wait()))
            begun.wait()
        print("written", end="")
        leave(7)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "written", "")
