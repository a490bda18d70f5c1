"""The emulator as a process of its own, started from Python. Importing this loads no server library."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from voicebench.emulator.running import Settings
from voicebench.emulator.timing import TimingScript
from voicebench.errors import BadRequest, VoicebenchError

_START_S = 30.0
_STOP_S = 3.0


class EmulatorProcess:
    """A running emulator on loopback. Use it as a context manager, or call `stop()`.

    It ends with this process, however this process ends. `port` is where it listens; `token` opens its own
    pages.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, token: str) -> None:
        self._process = process
        self.port = port
        self.token = token

    @property
    def pid(self) -> int:
        """The emulator's process id."""
        return self._process.pid

    @property
    def base_url_openai(self) -> str:
        """What OpenAI's SDK takes as `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def base_url_anthropic(self) -> str:
        """What Anthropic's SDK takes as `base_url`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def websocket_url(self) -> str:
        """Where the Responses API listens for WebSockets."""
        return f"ws://127.0.0.1:{self.port}/v1/responses"

    def record(self, request: str) -> dict[str, Any]:
        """The write log's record of one request, by the id in its reply's header (see `writelog`).

        Raises `BadRequest` where there is none.
        """
        return self._get(f"/emulator/log?request={quote(request)}")

    def requests(self) -> list[str]:
        """The ids of the requests that have a record, oldest first."""
        return list(self._get("/emulator/log")["requests"])

    def statistics(self) -> dict[str, Any]:
        """Number of finished requests, and `lateness_us` of the written events: n, p50, p99, max."""
        return self._get("/emulator/statistics")

    def stop(self) -> None:
        """End the emulator and wait for it; the log file is complete then. A second call does nothing."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> EmulatorProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _get(self, path: str) -> dict[str, Any]:
        request = Request(  # the address is this object's own, on loopback
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=10) as answer:
                return dict(json.load(answer))
        except HTTPError as error:
            with error:
                message = json.load(error)["error"]["message"]
            raise BadRequest(f"emulator {path}: {message}") from None


def start(
    scripts: Mapping[str, TimingScript] | Sequence[TimingScript] = (),
    seed: int = 0,
    log: Path | None = None,
    port: int = 0,
    fault: str = "",
) -> EmulatorProcess:
    """Start an emulator on loopback and return when it answers requests.

    `scripts` come on top of the seed scripts (a mapping's keys become their names); `fault` is planted in
    every request that names none; `log` is a file for the write log; `port` 0 takes a free one. Raises
    `BadRequest` for settings that cannot be served, `VoicebenchError` where the process does not come up.
    """
    if isinstance(scripts, Mapping):
        scripts = [
            script if script.name == name else replace(script, name=name) for name, script in scripts.items()
        ]
    token = secrets.token_urlsafe(24)
    settings = Settings(tuple(scripts), seed, fault, log and log.absolute(), port=port, token=token)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # -P: no module is taken from the working folder
            [sys.executable, "-P", "-m", "voicebench.emulator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        running = EmulatorProcess(process, port, token)
        try:
            answer = _exchange(process, {**settings.to_dict(), "parent": os.getpid()})
            if "error" in answer:
                raise BadRequest(str(answer["error"]), str(answer["remedy"]))
            if "port" not in answer:
                raise VoicebenchError(f"the emulator did not start: {_tail(errors)}")
            running.port = int(answer["port"])
        except BaseException:
            running.stop()
            raise
    return running


def _exchange(process: subprocess.Popen[bytes], first: Mapping[str, Any]) -> dict[str, Any]:
    """Send the first line and wait for the answer; an empty one where the process ends or says nothing in
    time."""
    lines: list[bytes] = []

    def talk() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(first).encode() + b"\n")
            process.stdin.flush()
            lines.append(process.stdout.readline())

    talking = threading.Thread(target=talk, daemon=True)
    talking.start()
    talking.join(_START_S)
    if talking.is_alive():
        process.kill()
        talking.join()
    return dict(json.loads(lines[0])) if lines and lines[0] else {}


def _tail(errors: BinaryIO) -> str:
    """The last line of what the process said on standard error."""
    errors.seek(0)
    said = errors.read().decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else "it said nothing."
