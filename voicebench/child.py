"""A child process on loopback that ends with its parent, however the parent ends.

The child holds the read end of a pipe as its standard input and leaves when that closes, which the system
does even where the parent is killed outright. It says on its first line of standard output where it listens.

`python -m voicebench.child MODULE ARGUMENTS...` runs another program's module as such a child.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from voicebench.errors import RunProblem

READY = "ready "
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A log is never written through a planted link, nor a pipe in its place waited for."""
LOOK_S = 0.05
"""So often it is looked whether a child that is still starting was given up."""


def announce(detail: str) -> None:
    """In the child: say that it is ready. `detail` is one line, e.g. the port.

    What is printed later goes where standard error goes: nobody reads the pipe any more, and a full one would
    hold the child up.
    """
    sys.stdout.write(f"{READY}{detail}\n")
    sys.stdout.flush()
    os.dup2(2, 1)


def end_with_parent() -> None:
    """In the child: leave at once when the parent is gone. Returns immediately; a thread watches."""

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        os._exit(0)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class Child:
    """A running child: `detail` is what it announced. Use as a context manager, or call `stop`."""

    def __init__(self, process: subprocess.Popen[bytes], detail: str, name: str) -> None:
        self._process = process
        self.detail = detail
        self.name = name

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Is it still running?"""
        return self._process.poll() is None

    def stop(self, grace_s: float = 1.0) -> None:
        """End the child: closing its standard input asks, `grace_s` seconds later it is killed."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start(
    arguments: Sequence[str],
    *,
    name: str,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
    given_up: threading.Event | None = None,
) -> Child:
    """Start `python arguments...` and wait until it announces itself.

    Its standard error goes to `log` (0600) or nowhere. The child has a session of its own, so a Ctrl-C in the
    terminal reaches the parent alone, which then ends the child in order.

    Raises RunProblem where it ends, stays silent for `timeout_s`, or `given_up` is set meanwhile by another
    thread; the text holds the end of its log.
    """
    error_sink: IO[bytes] | int = subprocess.DEVNULL
    if log is not None:
        error_sink = os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _CAREFULLY, 0o600), "ab")
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules, no shell
            [sys.executable, "-P", *arguments],  # -P: no module is taken from the working folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=error_sink,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    finally:
        if not isinstance(error_sink, int):
            error_sink.close()
    child = Child(process, "", name)
    try:
        line = _first_line(process, timeout_s, given_up or threading.Event())
    except BaseException:
        child.stop(0)
        raise
    if line is None or not line.startswith(READY):
        child.stop(0)
        raise RunProblem(f"{name} did not start.{_tail(log)}", "Try again; the text above is its own.")
    child.detail = line[len(READY) :].strip()
    return child


def _first_line(process: subprocess.Popen[bytes], timeout_s: float, given_up: threading.Event) -> str | None:
    """The announcement, skipping whatever a library prints before it.

    None where the child ends, the time is over, or it was given up.
    """
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    handle = process.stdout.fileno()
    collected = b""
    while (left := deadline - time.monotonic()) > 0 and not given_up.is_set():
        if not select.select([handle], [], [], min(left, LOOK_S))[0]:
            continue
        block = os.read(handle, 4096)
        if not block:
            break
        collected += block
        *whole, collected = collected.split(b"\n")
        for raw in whole:
            line = raw.decode("utf-8", "replace")
            if line.startswith(READY):
                return line
    return None


def _tail(log: Path | None, lines: int = 5) -> str:
    if log is None or not log.is_file():
        return ""
    text = log.read_text("utf-8", "replace").strip().splitlines()[-lines:]
    return "\n  " + "\n  ".join(text) if text else ""


if __name__ == "__main__":
    end_with_parent()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
