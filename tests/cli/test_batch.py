"""`voicebench batch` as a person runs it, on scripted stages."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ENERGY, interrupted, scripted_config, tones, voicebench

SAMPLES = Path(__file__).parents[2] / "audio_samples"
YES, PARIS, SILENCE = SAMPLES / "yes.wav", SAMPLES / "capital-of-france.wav", SAMPLES / "silence.wav"


Row = dict[str, Any]
"""A line of the journal."""


@dataclass(frozen=True)
class Heard:
    """A run that is over: its command, its folder, its journal."""

    done: subprocess.CompletedProcess[str]
    run: Path
    rows: list[Row]

    @property
    def answered(self) -> list[Row]:
        """The completed turns."""
        return [row for row in self.rows if row["outcome"] == "completed"]


def _journal(run: Path) -> list[Row]:
    return [json.loads(line) for line in (run / "turns.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """A run over two questions and a silence, whose replies are heard out and recorded."""
    folder = tmp_path_factory.mktemp("heard")
    config = scripted_config(folder)
    config.write_text(config.read_text("utf-8").replace("hear: onset", "hear: reply"), "utf-8")
    asked = ("--config", config, "--out", "run", "--keep-audio", "--json")
    done = voicebench("batch", YES, PARIS, SILENCE, *asked, cwd=folder)
    return Heard(done, folder / "run", _journal(folder / "run"))


def test_a_run_ends_with_its_report_on_screen_and_on_disk(heard: Heard) -> None:
    """A run writes its folder, prints one JSON object with --json, and both hold the same report."""
    assert heard.done.returncode == 0, heard.done.stderr
    printed = json.loads(heard.done.stdout)
    assert printed == json.loads((heard.run / "report.json").read_text("utf-8"))
    (mode,) = printed["modes"]
    assert mode["turns"]["completed"] == 2
    assert printed["run"]["complete"] is True
    for row in heard.answered:
        stages = row["stages_ms"]
        taken = sum(round(value * 1e6) for value in stages.values() if value is not None)
        assert taken == round(row["voice_to_voice_ms"] * 1e6)


def test_silence_is_no_speech_and_no_failure(heard: Heard) -> None:
    """A recording of silence is `no_speech`, and the run ends with status 0."""
    assert heard.done.returncode == 0, heard.done.stderr
    assert {str(row["sample"]): row["outcome"] for row in heard.rows} == {
        "yes": "completed",
        "capital-of-france": "completed",
        "silence": "no_speech",
    }


def test_kept_audio_agrees_with_the_timeline(heard: Heard) -> None:
    """With --keep-audio each turn has a stereo recording whose own figure agrees with the timeline."""
    for row in heard.answered:
        recording = heard.run / row["audio"]
        assert recording.read_bytes()[:4] == b"fLaC"
        assert recording.stat().st_mode & 0o777 == 0o600
        assert abs(row["waveform_v2v_ms"] - row["voice_to_voice_ms"]) <= 10.0


def test_a_file_that_cannot_be_read_is_a_failed_row_and_the_run_goes_on(tmp_path: Path) -> None:
    """One bad file among good ones is a failed row with its reason; the run ends with status 4."""
    bad = tones(tmp_path, 1) / "broken.wav"
    bad.write_bytes(b"RIFF....WAVEjunk that is no audio")
    config = scripted_config(tmp_path, ENERGY)
    done = voicebench("batch", bad.parent, "--config", config, "--out", "run", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    rows = {row["outcome"]: row for row in _journal(tmp_path / "run")}
    assert set(rows) == {"completed", "failed"}
    assert "broken.wav" in rows["failed"]["reason"]


def test_a_folder_with_something_in_it_is_never_written_over(tmp_path: Path) -> None:
    """--out with a folder that is not empty ends with status 2, and what was there stays."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep", "utf-8")
    done = voicebench("batch", YES, "--config", scripted_config(tmp_path), "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]


def test_interrupted_and_resumed_runs_hold_each_turn_once(tmp_path: Path) -> None:
    """Ctrl-C ends with status 130 and a partial report; --resume finishes what is missing, nothing twice."""
    config = scripted_config(tmp_path, f"repeats: 3\n{ENERGY}")
    ended = interrupted("batch", tones(tmp_path, 2), "--config", config, "--out", "run", cwd=tmp_path)
    assert ended.status == 130, ended.told
    run = tmp_path / "run"
    before = _journal(run)
    assert 1 <= len(before) < 6
    partial = json.loads((run / "report.json").read_text("utf-8"))
    assert partial["run"]["complete"] is False
    done = voicebench("batch", "--resume", "run", cwd=tmp_path)
    after = _journal(run)
    # On a machine without time left a turn may fail, which is no matter here.
    assert done.returncode == (0 if all(row["outcome"] == "completed" for row in after) else 4), done.stderr
    keys = [(row["mode"], row["sample"], row["repeat"]) for row in after]
    assert after[: len(before)] == before
    assert len(keys) == len(set(keys)) == 6
    assert json.loads((run / "report.json").read_text("utf-8"))["run"]["complete"] is True
