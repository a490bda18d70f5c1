"""Run the command line as a person does: in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.pipeline.driven import clip
from tests.recorded import write_wav

ROOT = Path(__file__).parents[2]
SCRIPTED = """\
name: scripted
modes: [test/scripted]
own_modes:
  - {id: test/scripted, kind: emulated, provider: test, api: scripted, model: scripted,
     settings: {text: "It is Paris.", first_text_ms: 30, per_word_ms: 2}}
asr: {kind: scripted, delay_ms: 20, text: "What is the capital city of France?"}
tts: {kind: tone, first_byte_ms: 10, leading_silence_ms: 20}
turn: {kind: speech_timeout, speech_timeout_secs: 0.0}
hear: onset
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: 6
"""
"""A configuration without models: every stage scripted, the detector real."""


def scripted_config(folder: Path, more: str = "") -> Path:
    """A file with the scripted configuration and `more` lines."""
    path = folder / "scripted.yaml"
    path.write_text(SCRIPTED + more, "utf-8")
    return path


def voicebench(*arguments: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`voicebench arguments...` in `cwd`, ended after two minutes."""
    return subprocess.run(
        [sys.executable, "-m", "voicebench", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


ENERGY = "vad: {kind: energy, start_secs: 0.1, stop_secs: 0.2}\n"
"""A detector that counts energy: a tone is speech, however busy the machine is."""


def tones(folder: Path, count: int) -> Path:
    """A folder with so many short recordings, each a tone."""
    (folder / "audio").mkdir()
    for number in range(count):
        write_wav(folder / "audio" / f"s{number}.wav", clip(0.3))
    return folder / "audio"


@dataclass(frozen=True)
class Interrupted:
    """What became of a run that was ended with Ctrl-C."""

    status: int
    took_s: float
    """From the key to the end of the process."""
    told: str
    """What it said on standard error after the key."""


def interrupted(*arguments: str | Path, cwd: Path, after: str = " ms", **variables: str) -> Interrupted:
    """`voicebench arguments...` in `cwd`, with Ctrl-C pressed when it has said a line that holds `after`.

    Without another `after` that is when the first turn is on disk.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "voicebench", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if after in line:
                break
        else:
            raise AssertionError(f"the run ended before it said {after!r}: {''.join(said)}")
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            rest = process.communicate(timeout=60)[1]
        except BaseException:
            process.kill()
            raise
        return Interrupted(process.returncode, time.monotonic() - pressed, rest)
