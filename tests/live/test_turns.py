"""Which stretch of speech a turn's end belongs to, where its edges are, and what is shown of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.live.virtual_card import MICROPHONE
from voicebench.audio.devices import Device
from voicebench.audio.echo import FRAME, RATE
from voicebench.audio.microphone import Capture
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.live.edges import speech_end, speech_start
from voicebench.live.keys import Wishes
from voicebench.live.screen import LiveScreen
from voicebench.live.session import Segment, answered_segment, segments
from voicebench.pipeline.observer import Event, Kind
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.timeline import Anchor

T0 = 10**12


def _events(*told: tuple[Kind, int]) -> list[Event]:
    return [Event(kind, at, "words" if kind is Kind.TRANSCRIPT else "") for kind, at in told]


SPOKEN = ((Kind.VAD_START, 10), (Kind.VAD_STOP, 20), (Kind.TRANSCRIPT, 25))


def test_a_pause_in_the_speech_moves_the_end() -> None:
    """Two stretches with words are one turn, which ends with the second."""
    events = _events(*SPOKEN, (Kind.VAD_START, 30), (Kind.VAD_STOP, 40), (Kind.TRANSCRIPT, 45))
    assert answered_segment(segments(events), events, True) == Segment(30, 40)


def test_a_cough_moves_no_end_of_speech() -> None:
    """A stretch that no words came of is not the end of what was said."""
    events = _events(*SPOKEN, (Kind.VAD_START, 30), (Kind.VAD_STOP, 40))
    assert answered_segment(segments(events), events, True) == Segment(10, 20)


def test_a_streaming_recogniser_may_be_ahead_of_the_detector() -> None:
    """Words that come before the detector's stop belong to the stretch they came in."""
    events = _events((Kind.VAD_START, 10), (Kind.TRANSCRIPT, 15), (Kind.VAD_STOP, 20))
    assert answered_segment(segments(events), events, False) == Segment(10, 20)


def test_speech_that_goes_on_has_no_end() -> None:
    """Before the detector's first stop there is no end of speech."""
    events = _events((Kind.VAD_START, 10))
    assert segments(events) == [Segment(10, None)]
    assert answered_segment(segments(events), events, True) is None


async def _heard(sound: NDArray[np.float32]) -> Capture:
    """A microphone that has heard `sound` at 16 kHz, its first sample at T0."""
    capture = Capture(Device(0, MICROPHONE, "ALSA", 1, 0, RATE))
    capture.stream.rate = capture.stream.clock.rate = RATE
    for number in range(5):
        capture.stream.clock.note(number * FRAME, FRAME, T0 + (number + 1) * 20 * NS_PER_MS, -0.02)
    for start in range(0, sound.size, FRAME):
        await capture._take(sound[start : start + FRAME])
    return capture


def _tone(start_s: float, end_s: float, level: float = 0.2, noise: float = 0.0) -> NDArray[np.float32]:
    sound = np.random.default_rng(5).normal(0, noise or 1e-9, RATE * 2)
    at = np.arange(round(start_s * RATE), round(end_s * RATE))
    sound[at] += level * np.sin(2 * np.pi * 300 * at / RATE)
    return sound.astype(np.float32)


def _ns(seconds: float) -> int:
    return T0 + round(seconds * NS_PER_S)


@pytest.mark.parametrize("level", [0.2, 0.004], ids=["usual", "quiet"])
async def test_the_end_of_speech_is_its_last_sound(level: float) -> None:
    """The end is the last 5 ms window with sound, whenever the stop came; also for quiet voices."""
    capture = await _heard(_tone(0.5, 1.2, level))
    for stop_s in (1.40, 1.46):
        found = speech_end(capture, _ns(stop_s), 0.2)
        assert found.refined
        assert abs(found.at_ns - _ns(1.2)) <= 5 * NS_PER_MS


async def test_in_noise_the_end_is_the_detectors() -> None:
    """Where sound goes on up to the stop, the end is the stop less its silence, and says so."""
    capture = await _heard(_tone(0.5, 1.2, noise=0.05))
    found = speech_end(capture, _ns(1.4), 0.2)
    assert not found.refined
    assert found.at_ns == _ns(1.2)


async def test_the_beginning_of_speech_is_its_first_sound() -> None:
    """The onset is where the sound before the detector's start begins."""
    capture = await _heard(_tone(0.8, 1.6))
    found = speech_start(capture, _ns(1.05), 0.2)
    assert found.refined
    assert abs(found.at_ns - _ns(0.8)) <= 5 * NS_PER_MS


async def test_a_muted_microphone_hears_nothing() -> None:
    """While muted, silence is recorded and heard."""
    capture = await _heard(_tone(0.0, 0.5))
    before = capture.count
    capture.muted = True
    await capture._take(np.full(FRAME, 0.5, dtype=np.float32))
    assert not capture.between(before, capture.count)[1].any()


def test_keys_without_a_meaning_change_nothing() -> None:
    """Only n, r and q ask for something before the next turn."""
    wishes = Wishes()
    for key in "xyzm\n":
        wishes.press(key)
    assert not wishes.any
    wishes.press("q")
    assert wishes.any


def _record(v2v: float, **more: object) -> TurnRecord:
    fields: dict[str, object] = {
        "run": "r",
        "turn": 0,
        "mode": "test/scripted",
        "mode_kind": "live",
        "model": "m",
        "sample": "microphone",
        "repeat": 0,
        "outcome": Outcome.COMPLETED,
        "anchor": Anchor.VAD_BACKDATED,
        "marks_ns": {"speech_end": 0, "vad_stop": 200_000_000, "first_audible": round(v2v * 1e6)},
        "stages_ms": {"endpointing": 200.0, "playout": v2v - 200.0},
        "voice_to_voice_ms": v2v,
        "transcript": "what is \x1b[31mred",
        "reply": "It is.",
    }
    return TurnRecord.model_validate({**fields, **more})


def test_each_turn_is_shown_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Transcript, reply, the stages against the budget, p50 and budget share; nothing steers the terminal."""
    screen = LiveScreen(800.0, plain=False)
    screen.turn(_record(600.0))
    screen.turn(_record(1000.0))
    shown = capsys.readouterr().err
    assert "It is." in shown
    assert "200 ms within the budget of 800 ms" in shown
    assert "p50 800 ms (n 2), 1 of 2 within 800 ms" in shown
    assert "\x1b[31m" not in shown


def test_an_interrupted_turn_tells_how_soon_the_agent_was_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """A turn that was spoken over shows its barge-in time, and does not count."""
    screen = LiveScreen(800.0, plain=True)
    screen.turn(_record(600.0, outcome=Outcome.INTERRUPTED, stages_ms=None, barge_in_ms=312.0))
    shown = capsys.readouterr().err
    assert "silent 312 ms after you began" in shown
    assert "no latency yet" in shown
