"""A log of every socket that Python processes open: for `sitecustomize`, so that children write it, too."""

from __future__ import annotations

from pathlib import Path

HOOK = """\
import json, os, sys

LOG = {log!r}

def note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        told = arguments[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        told = arguments[0]
    else:
        return
    told = told.decode("utf-8", "replace") if isinstance(told, bytes) else told
    line = json.dumps([os.getpid(), event, told], default=repr) + "\\n"
    handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, line.encode())
    os.close(handle)

sys.addaudithook(note)
"""


def plant(folder: Path, log: Path) -> Path:
    """A folder for PYTHONPATH: every Python process that starts with it notes its sockets in `log`."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HOOK.format(log=str(log)), "utf-8")
    return folder
