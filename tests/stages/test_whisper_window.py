"""Whisper on a window as long as the speech."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from voicebench.audio.manifest import load_manifest
from voicebench.audio.prepare import prepare
from voicebench.stages.asr_whisper import WhisperSettings, load
from voicebench.stages.tts_piper import trimmed
from voicebench.stages.whisper_window import RATE, WINDOWS_S, _doubt, decode, window_for
from voicebench.turns.quality import word_errors

SAMPLES = Path(__file__).parents[2] / "audio_samples"


def test_the_shortest_window_that_holds_the_speech_is_taken() -> None:
    """A window is 2 s longer than the audio at least, and beyond the last one there is none."""
    assert window_for(0.5) == 4.0
    assert window_for(2.0) == 4.0
    assert window_for(2.1) == 5.0
    assert window_for(WINDOWS_S[-1] - 2.0) == WINDOWS_S[-1]
    assert window_for(WINDOWS_S[-1] - 1.9) is None


@pytest.mark.parametrize(
    ("text", "mean", "seconds", "doubt"),
    [
        ("What is the capital?", -0.2, 2.0, ""),
        ("", -0.1, 2.0, "empty"),
        ("What is the capital?", -0.4, 2.0, "improbable"),
        ("Yes.", -0.6, 0.4, ""),
        ("Yes.", -0.9, 0.4, "improbable"),
        ("yes " * 30, -0.1, 20.0, "repetitive"),
        ("A great many quite different words, none of them ever spoken.", -0.1, 1.0, "too much text"),
    ],
)
def test_a_result_that_looks_wrong_is_doubted(text: str, mean: float, seconds: float, doubt: str) -> None:
    """An empty, improbable, repetitive or impossibly long transcript sends the audio to the full window."""
    assert _doubt(text, mean, seconds) == doubt


@pytest.mark.models
def test_short_windows_cost_no_accuracy_on_the_clean_samples() -> None:
    """Over the clean samples the short window makes at most 4 % word errors."""
    model = load(WhisperSettings(cpu_threads=1), offline=True)
    errors = words = 0
    for sample in load_manifest(SAMPLES):
        if sample.condition != "clean" or sample.segments is None:
            continue
        speech = prepare(sample).pcm.astype(np.float32) / 32768.0
        window = window_for(speech.size / RATE)
        assert window is not None
        found = word_errors(sample.transcript, decode(model, speech, window, "en").text, "en")
        assert found is not None
        errors, words = errors + found.errors, words + found.words
    assert words > 80
    assert errors / words <= 0.04


def test_a_voice_loses_its_leading_silence_and_nothing_else() -> None:
    """Trimming cuts the silence before the first sound, keeps 5 ms of it, and tells pure silence."""
    rate = 16_000
    tone = (np.sin(np.arange(rate // 2) * 0.3) * 9000).astype(np.int16)
    audio = np.concatenate((np.zeros(rate // 10, dtype=np.int16), tone))
    left = np.frombuffer(trimmed(audio.tobytes(), rate) or b"", dtype=np.int16)
    assert tone.size <= left.size <= tone.size + rate // 100
    assert np.array_equal(left[-tone.size :], tone)
    silence = np.zeros(1000, dtype=np.int16).tobytes()
    assert trimmed(silence, rate) is None
