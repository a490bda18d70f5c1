"""`voicebench batch` on files whose names mean something to a shell, a terminal or an option parser."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.running import ENERGY, scripted_config, voicebench
from tests.pipeline.driven import clip
from tests.recorded import write_wav

GOOD = ("-i", "$(touch made).wav", "a;touch made;.wav", "☃ é.wav", "new\nline.wav")
BAD = ("\x1b[2Jclear.wav", "pipe.wav", "letter ☃.mp3")


def test_names_are_only_names_to_the_whole_command(tmp_path: Path) -> None:
    """Five good files of hostile names are measured, three bad ones are listed by name with the reason, and
    nothing that a name says is done: no escape reaches the terminal. The status is that of failed turns."""
    for name in GOOD:
        write_wav(tmp_path / "made.wav", clip(0.3)).rename(tmp_path / name)
    (tmp_path / BAD[0]).touch()
    os.mkfifo(tmp_path / BAD[1])
    (tmp_path / BAD[2]).write_bytes(b"Dear voicebench, " * 100)
    config = scripted_config(tmp_path, ENERGY)
    done = voicebench("batch", "--config", config, "--out", "run", "--json", "--", *GOOD, *BAD, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    [mode] = json.loads(done.stdout)["modes"]
    assert (mode["turns"]["completed"], mode["turns"]["failed"]) == (5, 3)
    rows = [json.loads(line) for line in (tmp_path / "run" / "turns.jsonl").read_text("utf-8").splitlines()]
    assert len({row["sample"] for row in rows}) == 8
    reasons = " ".join(row["reason"] or "" for row in rows if row["outcome"] == "failed")
    for said in (
        "\\x1b[2Jclear.wav",
        "empty",
        "pipe.wav",
        "a named pipe",
        "letter ☃.mp3",
        "not an audio file",
        "Readable are wav",
        "saved to one first",
    ):
        assert said in reasons
    assert not (tmp_path / "made").exists()
    assert "\x1b[2J" not in done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*GOOD, *BAD, "run", config.name])
