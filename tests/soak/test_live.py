"""The long forms of the live tests: `make soak` speaks over the agent ten times, and has five real turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.live.conftest import sound
from tests.live.over import barge_ins
from tests.live.talking import PARIS, PIPER, ROOT, Talk, scripted
from tests.live.virtual_card import RATE, VirtualCard
from voicebench.audio.waveform import conversation

pytestmark = pytest.mark.soak

__all__ = ["sound"]

TIMES = 10
REPLY = "Everyone who was ever asked about that town by the river knows that its name is Paris of course."
"""Said without a pause, in which the agent would fall silent by itself."""


@pytest.fixture
def echoing_card(sound: None, tmp_path: Path) -> Iterator[VirtualCard]:
    """A virtual card whose microphone hears the agent 20 dB weaker."""
    with VirtualCard(tmp_path / "card", echo_db=-20.0) as running:
        running.record()
        yield running


@pytest.mark.models
def test_speaking_over_the_agents_voice_ten_times(echoing_card: VirtualCard, tmp_path: Path) -> None:
    """At the median the agent is silent 350 ms after the person's onset, each time reported to 50 ms; its own
    voice in the microphone takes no turn."""
    config = scripted(tmp_path, REPLY, PIPER, 15)
    with Talk(echoing_card, tmp_path, "--config", config, "--turns", str(TIMES + 1), "--offline") as talk:
        found = barge_ins(echoing_card, talk, TIMES)
        assert talk.end(60) == 0, "".join(talk.lines)
    for one in found:
        print("silent after", round(one.real_ms, 1), "reported", round(one.reported_ms, 1))
    real = [one.real_ms for one in found]
    print("median", statistics.median(real), "min", min(real), "max", max(real))
    assert len(found) == TIMES
    assert statistics.median(real) <= 350.0
    assert all(abs(one.reported_ms - one.real_ms) <= 50.0 for one in found)


@pytest.fixture
def card(sound: None, tmp_path: Path) -> Iterator[VirtualCard]:
    """A virtual card."""
    with VirtualCard(tmp_path / "card") as running:
        running.record()
        yield running


@pytest.mark.models
def test_five_turns_with_the_embedded_models(card: VirtualCard, tmp_path: Path) -> None:
    """Each of five spoken turns is answered; V2V is the recording's within 25 ms at the median, and each
    within its stated uncertainty, which is at most 40 ms."""
    path = tmp_path / "models.yaml"
    config = (ROOT / "configs" / "default.yaml").read_text("utf-8")
    path.write_text(config + "\ncalibration_turns: 0\n", "utf-8")
    mode = "local/smollm2-135m"
    with Talk(
        card, tmp_path, "--config", path, "--mode", mode, "--turns", "5", "--offline", "--keep-audio"
    ) as talk:
        talk.wait_for("Speak.", within=90)
        for number in range(5):
            if number:
                talk.wait_for(f"{mode}: ", number, within=60)
            talk.say(PARIS).wait(20)
        assert talk.end(60) == 0, "".join(talk.lines)
        sound = card.recording()
        records = talk.records()
    assert [one["outcome"] for one in records] == ["completed"] * 5
    truth = [one.voice_to_voice_ms for one in conversation(sound[:, 0], sound[:, 1], RATE).turns]
    assert len(truth) == 5
    off = []
    for one, real in zip(records, truth, strict=True):
        assert real is not None
        off.append(one["voice_to_voice_ms"] - real)
        print("V2V", round(one["voice_to_voice_ms"], 1), "off by", round(off[-1], 1), one["uncertainty_ms"])
    assert abs(statistics.median(off)) <= 25.0
    assert all(one["uncertainty_ms"] <= 40.0 for one in records)
    assert all(abs(value) <= one["uncertainty_ms"] for one, value in zip(records, off, strict=True))
    assert np.isfinite(off).all()
