"""The emulator's process: it starts, serves, stops, and never outlives the one that started it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from voicebench.emulator.process import start
from voicebench.emulator.timing import TimingScript
from voicebench.errors import BadRequest

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="waits on a process descriptor")

PARENT = """
import os, sys
from voicebench.emulator.process import start
emulator = start()
held = os.fork() if {fork} else 0
if {fork} and held == 0:
    os.close(1)
    sys.stdin.read()  # holds the emulator's pipe open
    os._exit(0)
print(emulator.pid, held, emulator.port, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def parent(fork: bool) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """A process that has started an emulator: itself, the emulator's process id, and its port."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(fork=fork)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        held = 0
        try:
            assert process.stdout is not None
            emulator, held, port = (int(word) for word in process.stdout.readline().split())
            yield process, emulator, port
        finally:
            for number in (process.pid, held):
                if number:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)


@linux_only
@pytest.mark.parametrize("fork", [False, True])
def test_the_emulator_ends_with_its_parent(fork: bool) -> None:
    """After kill -9 of the parent the emulator is gone within 2 s, also where another holds its pipe."""
    with parent(fork) as (process, emulator, port):
        with urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert json.load(answer) == {"status": "ok"}
        ended = os.pidfd_open(emulator)
        try:
            process.kill()
            readable, _, _ = select.select([ended], [], [], 2.0)
            assert readable, "the emulator outlived its parent"
        finally:
            os.close(ended)


def test_stopping_twice_is_harmless() -> None:
    """stop() ends the process; a second call does nothing."""
    emulator = start()
    emulator.stop()
    with pytest.raises(OSError, match="refused"):
        urlopen(f"http://127.0.0.1:{emulator.port}/health")
    emulator.stop()


def test_what_cannot_be_served_is_told(tmp_path: Path) -> None:
    """An unknown fault, clashing names, a taken port or an impossible log end the start in words."""
    with pytest.raises(BadRequest, match="no-such-fault"):
        start(fault="no-such-fault")
    with pytest.raises(BadRequest, match="alias"):
        start(scripts=[TimingScript("mine", aliases=("opus-4.6",))])
    with pytest.raises(BadRequest, match="log"):
        start(log=tmp_path / "absent" / "log.jsonl")
    with start() as emulator, pytest.raises(BadRequest, match="cannot listen"):
        start(port=emulator.port)


def test_the_parent_loads_no_server() -> None:
    """Importing what starts the emulator loads neither the server library nor the vocabulary."""
    code = (
        "import sys, voicebench.emulator.process as p; "
        "print([name for name in ('aiohttp', 'bpe_openai', 'pydantic', 'numpy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_nothing_is_taken_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a standard name in the working folder is not run by the emulator's process."""
    (tmp_path / "json.py").write_text("raise SystemExit('run from the working folder')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with start() as emulator:
        assert emulator.statistics()["requests"] == 0


def test_an_unknown_record_is_told() -> None:
    """Asking for a request that was never made says so."""
    with start() as emulator, pytest.raises(BadRequest, match="no record"):
        emulator.record("req_unknown")
