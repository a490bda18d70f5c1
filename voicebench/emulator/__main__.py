"""The emulator as a process of its own; `voicebench.emulator.process` starts it and holds the other ends of
its pipes.

Standard input brings one line of JSON (`Settings.to_dict()` and the parent's process id) and then stays
open: when it ends, the parent is gone, and so is this process. Standard output brings one line of JSON:
`{"port": ...}` once requests are answered, or `{"error": ..., "remedy": ...}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading

from voicebench.emulator.pacing import new_event_loop
from voicebench.emulator.running import Settings, Started, run
from voicebench.errors import VoicebenchError

_LOOK_S = 0.5
"""How often the parent is looked for; the pipe tells at once, unless a third process holds its other end,
too."""
_LAST_S = 1.0
"""After the parent's end an orderly stop may take this long."""


def main() -> int:
    """Serve until the parent lets go. Gives the exit status."""
    if sys.stdin.isatty():
        sys.stderr.write("This is the emulator's inner process. Start it with:  voicebench emulate\n")
        return 2
    first = json.loads(sys.stdin.buffer.readline())
    parent = int(first.pop("parent"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(Settings.from_dict(first), parent))
    except VoicebenchError as error:
        _tell({"error": error.what, "remedy": error.remedy})
        return int(error.exit_status)
    return 0


async def _serve(settings: Settings, parent: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, stop.set)
    threading.Thread(target=_watch_pipe, args=(loop, stop), daemon=True).start()
    watching = asyncio.create_task(_watch_parent(parent, stop))
    try:
        await run(settings, _ready, stop)
    finally:
        watching.cancel()


def _watch_pipe(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when standard input ends; leave at once where an orderly stop takes too long."""
    while os.read(0, 1024):
        pass
    timer = threading.Timer(_LAST_S, os._exit, (0,))
    timer.daemon = True
    timer.start()
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop.set)


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 # no event tells that a parent has gone
        await asyncio.sleep(_LOOK_S)
    stop.set()


def _ready(started: Started) -> None:
    _tell({"port": started.port})


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
