"""A person who talks with `voicebench live` over a virtual sound card."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tests.live.virtual_card import MICROPHONE, SPEAKER, VirtualCard
from voicebench.audio.decode import decode

ROOT = Path(__file__).parents[2]
PARIS, YES, QUIET = (
    ROOT / "audio_samples" / f"{name}.wav" for name in ("capital-of-france", "yes", "capital-of-spain-quiet")
)

SCRIPTED = """\
name: scripted
modes: [test/scripted]
own_modes:
  - {{id: test/scripted, kind: emulated, provider: test, api: scripted, model: scripted,
     settings: {{text: "{reply}", first_text_ms: 100, per_word_ms: 2}}}}
  - {{id: test/other, kind: emulated, provider: test, api: scripted, model: scripted,
     settings: {{text: "{reply}", first_text_ms: 100, per_word_ms: 2}}}}
asr: {{kind: scripted, delay_ms: 60, text: "What is the capital city of France?"}}
tts: {{{tts}}}
turn: {{kind: vad}}
vad: {{start_secs: 0.1, min_volume: 0, stop_secs: 0.2}}
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: {timeout_s}
"""
TONE = "kind: tone, first_byte_ms: 40, leading_silence_ms: 20"
PIPER = "kind: piper, voice: en_US-joe-medium, threads: 2, trim_leading_silence: true"
_LIVE: tuple[str, ...] = (sys.executable, "-m", "voicebench", "live")
_AT_THE_CARD = ("--input-device", MICROPHONE, "--output-device", SPEAKER)

SHORT = "It is Paris."
LONG = "It is Paris, as far as anyone who was asked about it knows, and they all live there too."


def scripted(folder: Path, reply: str = SHORT, tts: str = TONE, timeout_s: float = 6) -> Path:
    """A configuration without models whose agent says `reply`: as a tone, or with `PIPER` as a voice."""
    path = folder / "live.yaml"
    path.write_text(SCRIPTED.format(reply=reply, tts=tts, timeout_s=timeout_s), "utf-8")
    return path


class Talk:
    """A running `voicebench live`. Its lines for eyes are waited for, never for ever."""

    def __init__(
        self,
        card: VirtualCard | None,
        folder: Path,
        *arguments: str | Path,
        terminal: int | None = None,
        devices: tuple[str, ...] = _AT_THE_CARD,
    ):
        self._card = card
        self.run = folder / "run"
        self.lines: list[str] = []
        self._told = threading.Condition()
        self.process = subprocess.Popen(
            [*_LIVE, *devices, "--out", str(self.run), *map(str, arguments)],
            cwd=ROOT,
            env={**(os.environ if card is None else card.environment), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._told:
                self.lines.append(line)
                self._told.notify_all()
        with self._told:
            self._told.notify_all()

    def wait_for(self, text: str, count: int = 1, within: float = 30.0) -> None:
        """Wait until `count` lines hold `text`."""

        def there() -> bool:
            return sum(text in line for line in self.lines) >= count

        deadline = time.monotonic() + within
        with self._told:
            while not there():
                left = deadline - time.monotonic()
                ended = self.process.poll() is not None and not self._reader.is_alive()
                assert left > 0, f"no {count} x {text!r} in:\n{''.join(self.lines)}"
                assert not ended, f"no {count} x {text!r} in:\n{''.join(self.lines)}"
                self._told.wait(min(left, 0.2))

    def wait_for_folder(self, within: float = 30.0) -> None:
        """Wait until the run's folder says what is planned."""
        deadline = time.monotonic() + within
        while not (self.run / "turns.jsonl").exists():
            assert time.monotonic() < deadline, "".join(self.lines)
            assert self.process.poll() is None, "".join(self.lines)
            time.sleep(0.01)

    def say(self, sample: Path = YES) -> subprocess.Popen[bytes]:
        """Speak a recording into the microphone."""
        clip = decode(sample)
        speech = np.concatenate((np.zeros(clip.sample_rate // 5, np.float32), clip.samples[:, 0]))
        assert self._card is not None
        return self._card.speak(speech, clip.sample_rate)

    def turns(self, count: int, sample: Path = YES) -> None:
        """Have so many turns, each begun when the one before is on disk."""
        for number in range(count):
            self.wait_for("test/scripted: ", number) if number else self.wait_for("Speak.")
            self.say(sample).wait(20)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, within: float = 30.0) -> int:
        """Wait for the process to leave; its status."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end:\n{''.join(self.lines)}") from None
        self._reader.join(5)
        return status

    def records(self) -> list[dict[str, Any]]:
        """The journal."""
        text = (self.run / "turns.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def report(self) -> dict[str, Any]:
        """The report on disk."""
        read: dict[str, Any] = json.loads((self.run / "report.json").read_text("utf-8"))
        return read


def environment_without_sound(folder: Path) -> dict[str, str]:
    """An environment in which no sound device answers."""
    (folder / "none.conf").write_text("</usr/share/alsa/alsa.conf>\n", "utf-8")
    (folder / "client.conf").write_text("autospawn = no\n", "utf-8")
    return {
        **os.environ,
        "ALSA_CONFIG_PATH": str(folder / "none.conf"),
        "PULSE_SERVER": f"unix:{folder}/nobody",
        "PULSE_CLIENTCONFIG": str(folder / "client.conf"),
    }
