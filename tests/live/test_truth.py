"""What `voicebench live` reports against a recording of the sound card, on one sample clock."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest

from tests.live.talking import LONG, PARIS, ROOT, Talk, scripted
from tests.live.virtual_card import RATE, VirtualCard
from voicebench.audio.waveform import conversation, segments

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
    """The agent's echo takes no turn and stops nothing; a person over it does, and is answered next."""
    config = scripted(tmp_path, LONG)
    with Talk(echoing_card, tmp_path, "--config", config, "--turns", "3") as talk:
        talk.turns(1, PARIS)
        talk.wait_for("test/scripted: ", 1)
        talk.say(PARIS).wait(20)
        _wait_until_the_agent_sounds(echoing_card)
        talk.say(PARIS).wait(20)
        assert talk.end() == 0, "".join(talk.lines)
        sound = echoing_card.recording()
        quiet, spoken_over, answered = talk.records()
        assert quiet["outcome"] == "completed"
        assert "echo_suspect" in quiet["caveats"]
        assert spoken_over["outcome"] == "interrupted"
        assert answered["outcome"] == "completed"
        agent = segments(sound[:, 1], RATE).segments
        assert len(agent) == 3
        onset = _onset_after(sound[:, 0], agent[1].start_s)
        real = (agent[1].end_s - onset) * 1000
        assert abs(spoken_over["barge_in_ms"] - real) <= 40.0, (spoken_over["barge_in_ms"], real)
        assert talk.report()["modes"][0]["turns"]["interrupted"] == 1


def _wait_until_the_agent_sounds(card: VirtualCard) -> None:
    """Wait until the last 50 ms of the recorded bus hold the agent's voice."""
    card.wait_until(lambda tail: float(np.sqrt(np.mean(tail[:, 1] ** 2))) > 0.05, 0.05)


def _onset_after(person: np.ndarray, seconds: float) -> float:
    """The person's onset after `seconds`: louder than the echo can be."""
    window = RATE // 200
    start = round(seconds * RATE)
    whole = (person.size - start) // window
    power = np.mean(person[start : start + whole * window].reshape(whole, window) ** 2, axis=1)
    return seconds + float(np.flatnonzero(np.sqrt(power) > 0.035)[0]) * 0.005


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
