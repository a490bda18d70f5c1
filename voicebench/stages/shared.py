"""What the stages of a run share: loaded models, local servers, and the log of work done inside stages."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from voicebench.clock import now_ns
from voicebench.errors import RunProblem

Made = TypeVar("Made")

TTS_IDLE_S = 60.0
"""pipecat takes a voice that gives nothing for so long to be done: a slow one must not look silent."""


@dataclass(frozen=True)
class Work:
    """A piece of work inside a stage, in ns of the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int


class WorkLog:
    """Work that stages report from any thread; the session reads it turn by turn."""

    def __init__(self) -> None:
        self._items: list[Work] = []
        self._notes: dict[str, Any] = {}
        self._lock = threading.Lock()

    def add(self, name: str, start_ns: int, end_ns: int | None = None) -> None:
        """Report work that began at `start_ns` and ends now, or at `end_ns`."""
        item = Work(name, start_ns, now_ns() if end_ns is None else end_ns)
        with self._lock:
            self._items.append(item)

    def note(self, name: str, value: Any) -> None:
        """Report a fact of the current turn, e.g. the detected language. The last one counts."""
        with self._lock:
            self._notes[name] = value

    def take(self) -> tuple[list[Work], dict[str, Any]]:
        """All since the last call."""
        with self._lock:
            items, notes = self._items, self._notes
            self._items, self._notes = [], {}
        return items, notes


@dataclass
class Shared:
    """Loaded once per run, used by every session. `close` ends servers and frees models."""

    log_folder: Path | None = None
    """Where local servers write their logs, None for nowhere."""
    offline: bool = False
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    """Where keys are looked up."""
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the run is being ended: whoever still waits for something to start gives it up."""
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)
    _stack: ExitStack = field(default_factory=ExitStack)
    _making: set[tuple[Any, ...]] = field(default_factory=set)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def get(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """What was made for `key`, making it the first time; who asks meanwhile waits for it.

        Different keys are made at the same time where they are asked for in different threads.

        Raises RunProblem after `close`: a pipeline that is still being built in a thread when its run ends
        must start nothing that nobody would end.
        """
        with self._lock:
            self._lock.wait_for(lambda: key not in self._making)
            if self.closing.is_set():
                raise RunProblem("The run is over: nothing more is loaded for it.")
            if key in self._made:
                found: Made = self._made[key]
                return found
            self._making.add(key)
        try:
            made = make()
            with self._lock:
                if not self.closing.is_set():
                    self._made[key] = made
            return made
        finally:
            with self._lock:
                self._making.discard(key)
                self._lock.notify_all()

    def on_close(self, action: Callable[[], object]) -> None:
        """Do this at `close`, last one first; after `close` at once."""
        with self._lock:
            if not self.closing.is_set():
                self._stack.callback(action)
                return
        action()

    async def close_clients(self) -> None:
        """Close the connections of clients that were made, in the loop that used them. One that cannot be
        closed keeps no other open; afterwards `get` makes new ones."""
        with self._lock:
            clients = [(key, client) for key, made in self._made.items() for client in _clients_of(made)]
            for key, _ in clients:
                self._made.pop(key, None)
        await asyncio.gather(*(client.close() for _, client in clients), return_exceptions=True)

    def close(self) -> None:
        """End what was started. Safe to call twice. An SDK's clients are for `close_clients`, before."""
        self.closing.set()
        with self._lock:
            self._stack.close()
            self._made.clear()


def _clients_of(made: Any) -> list[Any]:
    """The clients with connections, whose `close` has to be awaited, that something made is or holds."""
    parts = made if isinstance(made, tuple) else (made,)
    return [part for part in parts if inspect.iscoroutinefunction(getattr(part, "close", None))]
