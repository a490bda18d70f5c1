"""A process of its own that fetches: `python fetching_child.py CATALOGUE MODEL...`; it tells its progress."""

from __future__ import annotations

import sys
from pathlib import Path

from voicebench.errors import VoicebenchError
from voicebench.models.catalogue import load_catalogue
from voicebench.models.store import ensure


class Told:
    """Progress as lines on standard output."""

    def start(self, model: str, total_bytes: int) -> None:
        """Tell the model."""
        self._say(f"start {model} {total_bytes}")

    def update(self, bytes_done: int) -> None:
        """Tell the bytes."""
        self._say(f"update {bytes_done}")

    def finish(self) -> None:
        """Tell the end."""
        self._say("finish")

    def _say(self, line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        ensure(sys.argv[2:], Told(), catalogue=load_catalogue(Path(sys.argv[1])))
    except VoicebenchError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
