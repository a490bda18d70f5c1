"""A disk that fails: the n-th call that would change something in a folder raises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock


@dataclass
class Disk:
    """Counts the calls below `root`, and fails the `fail_at`-th (from 1) with `code`; with `stays`, all after
    it as well. 0: none fails."""

    root: Path
    fail_at: int
    code: int
    stays: bool = False
    calls: list[str] = field(default_factory=list)
    failed: int = 0
    _open: dict[int, str] = field(default_factory=dict)

    def _called(self, name: str) -> None:
        self.calls.append(name)
        number = len(self.calls)
        if self.fail_at and (number == self.fail_at or (self.stays and number > self.fail_at)):
            self.failed += 1
            raise OSError(self.code, os.strerror(self.code), name)

    def below(self, path: Any) -> bool:
        """Is that path in the folder, or the folder itself?"""
        try:
            place = Path(os.path.abspath(os.fsdecode(path)))
        except TypeError:
            return False
        return place == self.root or self.root in place.parents

    @contextmanager
    def in_place(self) -> Iterator[Disk]:
        """Stand in for the system's calls."""
        real = {name: getattr(os, name) for name in ("open", "close", "write", "fsync", "ftruncate")}

        def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
            # What is opened without waiting is only read: a full disk does not matter to it.
            if not self.below(path) or flags & (os.O_ACCMODE | os.O_NONBLOCK) == os.O_NONBLOCK:
                return int(real["open"](path, flags, *more, **named))
            self._called(f"open {Path(os.fsdecode(path)).name}")
            descriptor = int(real["open"](path, flags, *more, **named))
            self._open[descriptor] = Path(os.fsdecode(path)).name
            return descriptor

        def closed(descriptor: int) -> None:
            self._open.pop(descriptor, None)
            real["close"](descriptor)

        def on_descriptor(name: str) -> Any:
            def call(descriptor: int, *rest: Any) -> Any:
                if descriptor in self._open:
                    self._called(f"{name} {self._open[descriptor]}")
                return real[name](descriptor, *rest)

            return call

        def on_path(name: str) -> Any:
            genuine = getattr(os, name)

            def call(path: Any, *rest: Any, **named: Any) -> Any:
                there = name == "mkdir" and os.path.isdir(path)  # changes nothing
                if self.below(path) and not there:
                    self._called(f"{name} {Path(os.fsdecode(path)).name}")
                return genuine(path, *rest, **named)

            return call

        with (
            mock.patch.object(os, "open", opened),
            mock.patch.object(os, "close", closed),
            mock.patch.object(os, "write", on_descriptor("write")),
            mock.patch.object(os, "fsync", on_descriptor("fsync")),
            mock.patch.object(os, "ftruncate", on_descriptor("ftruncate")),
            mock.patch.object(os, "replace", on_path("replace")),
            mock.patch.object(os, "mkdir", on_path("mkdir")),
        ):
            yield self
