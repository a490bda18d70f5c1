"""Names with terminal escapes on the command line: they are shown, and steer nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from voicebench.__main__ import main
from voicebench.audio.manifest import load_manifest

SAMPLE = Path(__file__).parents[2] / "audio_samples" / "yes.wav"
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


def test_an_index_of_odd_names_is_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names with spaces, quotes, YAML's own signs or other scripts are listed under plain ids, each its own;
    what no manifest can name, or nobody can decode, is left out in words; no name becomes an entry."""
    listed = ("my call.wav", "my-call.wav", "-i.wav", "'q': {x}.wav", "*a.wav", "!!python.wav", "☃ é.wav")
    left_out = ("a\nsamples: [].wav", "x\x1b[2J.wav", "back\\slash.wav")
    for name in (*listed, *left_out):
        shutil.copy(SAMPLE, tmp_path / name)
    (tmp_path / "bad\u2028- id: pwn.wav").write_bytes(b"RIFF\0\0\0\0WAVE")
    assert main(["samples", "index", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert told.count("left out") == len(left_out) + 1
    assert not [one for one in told if not one.isprintable() and one != "\n"]
    found = load_manifest(tmp_path)
    assert {one.path.name for one in found} == set(listed)
    assert len({one.id for one in found}) == len(listed)
    assert main(["samples", "list", str(tmp_path)]) == 0


def test_a_hostile_usage_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command or a surplus argument with escapes ends with status 2."""
    assert main([f"no{ESCAPES}"]) == 2
    assert "\x1b[2J" not in capsys.readouterr().err
