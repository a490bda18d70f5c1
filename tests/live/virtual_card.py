"""A virtual sound card of one's own: a private PulseAudio whose stereo bus records person and agent at once.

The person is the bus's left channel, the agent its right one, on one sample clock: a recording of the bus is
the truth of the whole loop, exact to the sample.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

RATE = 48_000
PLAYS_IN = "micfeed"
MICROPHONE, SPEAKER = "vbmic", "vbspeaker"
"""The devices' names as the audio library shows them."""

_MODULES = (
    "module-native-protocol-unix socket={folder}/native auth-anonymous=1 auth-cookie-enabled=0",
    "module-null-sink sink_name=bus norewinds=1 rate=48000 channels=2 channel_map=front-left,front-right",
    "module-remap-sink sink_name=micfeed master=bus channels=1 channel_map=front-left "
    "master_channel_map=front-left remix=no",
    "module-remap-sink sink_name=speaker master=bus channels=1 channel_map=front-right "
    "master_channel_map=front-right remix=no",
    "module-remap-source source_name=vmic master=bus.monitor channels=1 channel_map=front-left "
    "master_channel_map=front-left remix=no",
)
_DAEMON = (
    "pulseaudio",
    "-n",
    "--daemonize=no",
    "--fail=yes",
    "--use-pid-file=no",
    "--exit-idle-time=-1",
    "--realtime=no",
    "--high-priority=no",
    "--log-target=stderr",
)
_RECORDER = ("parec", "--format=s16le", "--rate=48000", "--channels=2", "--raw", "--latency-msec=20")
_PLAYER = ("pacat", "--playback", "--format=s16le", "--channels=1", "--latency-msec=50", "--raw")

_ALSA = """\
</usr/share/alsa/alsa.conf>
pcm.vbmic { type pulse device "vmic" }
pcm.vbspeaker { type pulse device "speaker" }
"""


@dataclass
class VirtualCard:
    """A running card. `environment` is what a program needs in order to see it and no other one.

    With `echo_db`, the agent's sound comes back into the microphone, so many dB louder (negative: weaker),
    as long as the bus is recorded.
    """

    folder: Path
    echo_db: float | None = None
    environment: dict[str, str] = field(default_factory=dict)
    _daemon: subprocess.Popen[bytes] | None = None
    _recorder: subprocess.Popen[bytes] | None = None
    _taken: list[bytes] = field(default_factory=list)
    _echo: subprocess.Popen[bytes] | None = None
    _rest: bytes = b""
    _speaking: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _reader: threading.Thread | None = None
    _came: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> VirtualCard:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        (self.folder / "daemon.conf").write_text("default-sample-rate = 48000\n", "utf-8")
        (self.folder / "client.conf").write_text("autospawn = no\n", "utf-8")
        (self.folder / "asound.conf").write_text(_ALSA, "utf-8")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PULSE_")},
            "PULSE_RUNTIME_PATH": str(self.folder),
            "PULSE_STATE_PATH": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
            "PULSE_CONFIG": str(self.folder / "daemon.conf"),
            "PULSE_CLIENTCONFIG": str(self.folder / "client.conf"),
            "PULSE_SERVER": f"unix:{self.folder}/native",
            "PULSE_SINK": "speaker",
            "PULSE_SOURCE": "vmic",
            "ALSA_CONFIG_PATH": str(self.folder / "asound.conf"),
        }
        loads = [part for module in _MODULES for part in ("-L", module.format(folder=self.folder))]
        with (self.folder / "daemon.log").open("wb") as log:
            self._daemon = subprocess.Popen(
                [*_DAEMON, *loads],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._wait_until_it_answers()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._recorder is not None:
            self.recording()
        for speaking in self._speaking:
            speaking.terminate()
            speaking.wait()
        self.kill()

    def kill(self) -> None:
        """End the daemon at once, as a card that is pulled out."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()
            self._daemon = None

    def record(self) -> None:
        """Begin to record the bus; returns when the first samples have come."""
        self._recorder = subprocess.Popen(
            [*_RECORDER, "--device=bus.monitor"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

        def read(pipe: subprocess.Popen[bytes]) -> None:
            assert pipe.stdout is not None
            while block := pipe.stdout.read1(65536):  # type: ignore[attr-defined]
                self._taken.append(block)
                self._give_back(block)
                self._came.set()

        self._reader = threading.Thread(target=read, args=(self._recorder,), daemon=True)
        self._reader.start()
        assert self._came.wait(10), "the bus gives no sound"

    def _give_back(self, block: bytes) -> None:
        """Play what the agent said into the microphone, weaker: an echo some 50 to 100 ms late."""
        if self.echo_db is None:
            return
        if self._echo is None:
            self._echo = subprocess.Popen(
                [*_PLAYER, f"--device={PLAYS_IN}", "--rate=48000"],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        assert self._echo.stdin is not None
        whole = self._rest + block
        frames = np.frombuffer(whole[: len(whole) // 4 * 4], dtype=np.int16).reshape(-1, 2)
        self._rest = whole[len(whole) // 4 * 4 :]
        agent = frames[:, 1].astype(np.float64) * 10 ** (self.echo_db / 20)
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._echo.stdin.write(np.rint(agent).astype("<i2").tobytes())
            self._echo.stdin.flush()

    def recording(self) -> NDArray[np.float32]:
        """End recording; what was recorded, float32 of shape (frames, 2): the person, the agent."""
        assert self._recorder is not None
        assert self._reader is not None
        self._recorder.terminate()
        self._reader.join(10)
        self._recorder.wait()
        assert self._recorder.stdout is not None
        self._recorder.stdout.close()
        self._recorder = None
        if self._echo is not None:
            assert self._echo.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._echo.stdin.close()
            self._echo.terminate()
            self._echo.wait()
            self._echo = None
        data = b"".join(self._taken)
        samples = np.frombuffer(data[: len(data) // 4 * 4], dtype=np.int16).reshape(-1, 2)
        return samples.astype(np.float32) / np.float32(32768.0)

    def wait_until(
        self, seen: Callable[[NDArray[np.float32]], bool], seconds: float, within: float = 20.0
    ) -> None:
        """Wait until the recording's last `seconds` fulfil `seen`, which is asked whenever samples come."""
        deadline = time.monotonic() + within
        size = round(seconds * RATE) * 4
        while time.monotonic() < deadline:
            self._came.clear()
            data = b"".join(self._taken[-64:])
            tail = data[len(data) % 4 :][-size:]
            samples = np.frombuffer(tail, dtype=np.int16).reshape(-1, 2).astype(np.float32) / 32768.0
            if samples.size and seen(samples):
                return
            self._came.wait(0.2)
        raise AssertionError("what was waited for did not sound")

    def speak(self, samples: NDArray[np.float32], rate: int) -> subprocess.Popen[bytes]:
        """Speak into the microphone; returns at once. Wait for the process to know that all was spoken."""
        path = self.folder / f"speech-{time.monotonic_ns()}.s16"
        path.write_bytes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
        speaking = subprocess.Popen(
            [*_PLAYER, f"--device={PLAYS_IN}", f"--rate={rate}", str(path)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._speaking.append(speaking)
        return speaking

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 15
        while True:
            asked = subprocess.run(["pactl", "info"], env=self.environment, capture_output=True, check=False)
            if asked.returncode == 0:
                return
            assert self._daemon is not None
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "daemon.log").read_text("utf-8", "replace")
                raise AssertionError(f"PulseAudio did not start: {log[-800:]}")
            time.sleep(0.02)
