"""What `voicebench live` reports against a recording of the sound card, on one sample clock."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.live.over import barge_ins
from tests.live.talking import LONG, PARIS, QUIET, ROOT, Talk, scripted
from tests.live.virtual_card import RATE, VirtualCard
from voicebench.audio.waveform import conversation

TURNS = 6


def test_reported_latency_is_that_of_the_recording(card: VirtualCard, tmp_path: Path) -> None:
    """V2V agrees with the recorded bus within 25 ms at the median and within its stated uncertainty."""
    with Talk(card, tmp_path, "--config", scripted(tmp_path), "--turns", str(TURNS)) as talk:
        talk.turns(TURNS, PARIS)
        assert talk.end() == 0, "".join(talk.lines)
        sound = card.recording()
        truth = [one.voice_to_voice_ms for one in conversation(sound[:, 0], sound[:, 1], RATE).turns]
        records = talk.records()
        assert [one["outcome"] for one in records] == ["completed"] * TURNS
        assert {one["anchor"] for one in records} == {"vad_backdated"}
        assert len(truth) == TURNS
        off = [
            one["voice_to_voice_ms"] - real
            for one, real in zip(records, truth, strict=True)
            if real is not None
        ]
        stated = [one["uncertainty_ms"] for one in records]
        told = f"off by {[round(value, 1) for value in off]}, stated {[round(value, 1) for value in stated]}"
        assert abs(statistics.median(off)) <= 25.0, told
        assert abs(statistics.median(off)) <= statistics.median(stated) <= 40.0, told
        assert talk.report()["run"]["complete"] is True


def test_kept_audio_gives_the_end_of_speech(card: VirtualCard, tmp_path: Path) -> None:
    """With --keep-audio the anchor is the recording, whose own figure agrees with the reported one."""
    with Talk(card, tmp_path, "--config", scripted(tmp_path), "--turns", "1", "--keep-audio") as talk:
        talk.turns(1, PARIS)
        assert talk.end() == 0, "".join(talk.lines)
        (one,) = talk.records()
        assert one["anchor"] == "waveform"
        kept = talk.run / one["audio"]
        assert kept.read_bytes()[:4] == b"fLaC"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert abs(one["waveform_v2v_ms"] - one["voice_to_voice_ms"]) <= 10.0
        sound = card.recording()
        (turn,) = conversation(sound[:, 0], sound[:, 1], RATE).turns
        assert turn.voice_to_voice_ms is not None
        assert abs(turn.voice_to_voice_ms - one["voice_to_voice_ms"]) <= 40.0


def test_speaking_over_the_agent_stops_it(echoing_card: VirtualCard, tmp_path: Path) -> None:
    """A person who speaks over the agent silences it within 350 ms at the median, reported within 50 ms; the
    agent's own echo takes no turn and stops nothing, also while the person speaks."""
    config = scripted(tmp_path, LONG)
    with Talk(echoing_card, tmp_path, "--config", config, "--turns", "4") as talk:
        found = barge_ins(echoing_card, talk, 3)
        last = talk.records()[-1]
        assert "echo_suspect" in last["caveats"]
        assert talk.report()["modes"][0]["turns"]["interrupted"] == 3
    real = [round(one.real_ms) for one in found]
    reported = [round(one.reported_ms) for one in found]
    assert statistics.median(real) <= 350, (real, reported)
    assert all(abs(a - b) <= 50 for a, b in zip(real, reported, strict=True)), (real, reported)


def test_a_quiet_speaker_is_heard(card: VirtualCard, tmp_path: Path) -> None:
    """Someone at -35 dBFS, by the same settings, takes a turn and is answered."""
    with Talk(card, tmp_path, "--config", scripted(tmp_path), "--turns", "1") as talk:
        talk.turns(1, QUIET)
        assert talk.end() == 0, "".join(talk.lines)
        (one,) = talk.records()
        assert one["outcome"] == "completed"


@pytest.mark.models
def test_the_embedded_models_answer_a_spoken_question(card: VirtualCard, tmp_path: Path) -> None:
    """The real models hear the question, answer it aloud, and the latency is that of the recording."""
    config = (ROOT / "configs" / "fast.yaml").read_text("utf-8")
    path = tmp_path / "models.yaml"
    path.write_text(config + "\ncalibration_turns: 0\n", "utf-8")
    with Talk(card, tmp_path, "--config", path, "--turns", "1", "--offline") as talk:
        talk.wait_for("Speak.", within=90)
        talk.say(PARIS).wait(20)
        assert talk.end(60) == 0, "".join(talk.lines)
        (one,) = talk.records()
        assert one["outcome"] == "completed"
        assert "france" in one["transcript"].casefold()
        assert one["reply"]
        sound = card.recording()
        turn = conversation(sound[:, 0], sound[:, 1], RATE).turns[0]
        assert turn.voice_to_voice_ms is not None
        assert abs(turn.voice_to_voice_ms - one["voice_to_voice_ms"]) <= 60.0
