"""`voicebench batch` as a person runs it, on scripted stages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import ENERGY, interrupted, scripted_config, tones, voicebench

SAMPLES = Path(__file__).parents[2] / "audio_samples"
YES, PARIS, SILENCE = SAMPLES / "yes.wav", SAMPLES / "capital-of-france.wav", SAMPLES / "silence.wav"


def _journal(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "turns.jsonl").read_text("utf-8").splitlines()]


def test_a_run_ends_with_its_report_on_screen_and_on_disk(tmp_path: Path) -> None:
    """A run writes its folder, prints one JSON object with --json, and both hold the same report."""
    done = voicebench(
        "batch", YES, PARIS, "--config", scripted_config(tmp_path), "--out", "run", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed == json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    (mode,) = printed["modes"]
    assert mode["turns"]["completed"] == 2
    assert printed["run"]["complete"] is True
    for row in _journal(tmp_path / "run"):
        stages = row["stages_ms"]
        assert isinstance(stages, dict)
        taken = sum(round(value * 1e6) for value in stages.values() if value is not None)
        assert taken == round(float(str(row["voice_to_voice_ms"])) * 1e6)


def test_a_file_that_cannot_be_read_is_a_failed_row_and_the_run_goes_on(tmp_path: Path) -> None:
    """One bad file among good ones is a failed row with its reason; the run ends with status 4."""
    bad = tmp_path / "broken.wav"
    bad.write_bytes(b"RIFF....WAVEjunk that is no audio")
    done = voicebench("batch", YES, bad, "--config", scripted_config(tmp_path), "--out", "run", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    rows = {row["outcome"]: row for row in _journal(tmp_path / "run")}
    assert set(rows) == {"completed", "failed"}
    assert "broken.wav" in str(rows["failed"]["reason"])


def test_silence_is_no_speech_and_no_failure(tmp_path: Path) -> None:
    """A recording of silence is `no_speech`, and the run ends with status 0."""
    done = voicebench("batch", SILENCE, "--config", scripted_config(tmp_path), "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["outcome"] for row in _journal(tmp_path / "run")] == ["no_speech"]


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


def test_kept_audio_agrees_with_the_timeline(tmp_path: Path) -> None:
    """With --keep-audio each turn has a stereo recording whose own figure agrees with the timeline."""
    config = scripted_config(tmp_path)
    config.write_text(config.read_text("utf-8").replace("hear: onset", "hear: reply"), "utf-8")
    done = voicebench("batch", PARIS, "--config", config, "--out", "run", "--keep-audio", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = _journal(tmp_path / "run")
    recording = tmp_path / "run" / str(row["audio"])
    assert recording.read_bytes()[:4] == b"fLaC"
    assert recording.stat().st_mode & 0o777 == 0o600
    assert abs(float(str(row["waveform_v2v_ms"])) - float(str(row["voice_to_voice_ms"]))) <= 10.0
