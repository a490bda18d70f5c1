"""Names with terminal escapes on the command line: they are shown, and steer nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from voicebench.__main__ import main

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil"


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", f"run{ESCAPES}"],
        ["check", f"run{ESCAPES}", "--p50-ms", "1"],
        ["compare", f"a{ESCAPES}", f"b{ESCAPES}"],
        ["measure", f"{ESCAPES}.wav"],
        ["measure", "FIFO"],
        ["batch", f"{ESCAPES}.wav"],
        ["batch", "--mode", f"x/{ESCAPES}"],
        ["batch", "--config", f"{ESCAPES}.yaml"],
        ["samples", "index", f"{ESCAPES}"],
    ],
)
def test_no_error_about_a_name_steers_the_terminal(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command refuses a hostile name, or a pipe, with status 2, in words without a control character."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("FIFO")
    assert main(arguments) == 2
    told = capsys.readouterr()
    said = told.out + told.err
    assert len(said) > 10
    assert not [one for one in said if not one.isprintable() and one != "\n"]


def test_a_hostile_usage_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command or a surplus argument with escapes ends with status 2."""
    assert main([f"no{ESCAPES}"]) == 2
    assert "\x1b[2J" not in capsys.readouterr().err
