"""What a person asks for by pressing a key while a conversation goes on."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any

LEGEND = "n next mode   m mute   r repeat last   q quit"


@dataclass
class Wishes:
    """What was asked for and not done yet."""

    next_mode: bool = False
    repeat: bool = False
    quit: bool = False
    mute_changed: bool = False
    mode: str | None = None
    """The mode to go on with, by its id."""

    @property
    def any(self) -> bool:
        """Is there something to do before the next turn?"""
        return self.next_mode or self.repeat or self.quit or self.mode is not None

    def press(self, key: str) -> None:
        """Take one key; one without a meaning changes nothing."""
        if key == "n":
            self.next_mode = True
        elif key == "r":
            self.repeat = True
        elif key == "q":
            self.quit = True
        elif key == "m":
            self.mute_changed = not self.mute_changed


class Keys:
    """Reads single keys from the terminal while entered; does nothing where standard input is none."""

    def __init__(self, wishes: Wishes, on_key: Any) -> None:
        self._wishes = wishes
        self._on_key = on_key
        self._before: Any = None
        self.active = False

    def __enter__(self) -> Keys:
        try:
            import termios
            import tty

            if not sys.stdin.isatty():
                return self
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            asyncio.get_running_loop().add_reader(descriptor, self._read)
            self.active = True
        except (ImportError, OSError, ValueError, NotImplementedError):
            # A system or a terminal without single keys: lines are printed all the same.
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.active:
            import termios

            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self.active = False

    def _read(self) -> None:
        import os

        for key in os.read(sys.stdin.fileno(), 64).decode("utf-8", "ignore"):
            self._wishes.press(key)
            self._on_key(key)
