"""One process at a time may fetch into a folder."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_S = 0.2
_HELD_BY_ANOTHER = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK}


@contextmanager
def exclusive(lock_file: Path, on_wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock on `lock_file` (made if absent) for the block; wait for it, calling `on_wait` once before.

    The system lets go of the lock when its holder ends, however it ends. Yields False where the file system
    knows no locks: the block then runs all the same, and must not remove what may be another's. OSError
    where the file cannot be opened.
    """
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _acquire(descriptor, on_wait)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, on_wait: Callable[[], None] | None) -> bool:
    waiting = False
    while True:
        try:
            _try_lock(descriptor)
            return True
        except OSError as error:
            if error.errno not in _HELD_BY_ANOTHER:
                return False
        if not waiting and on_wait is not None:
            on_wait()
        waiting = True
        time.sleep(_RETRY_S)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
