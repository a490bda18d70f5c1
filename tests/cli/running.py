"""Run the command line as a person does: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
