"""Silence, noise, breath and music through real Whisper: nobody is understood, and no model is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.pipeline.driven import Driver, scripted
from voicebench.audio.manifest import load_manifest
from voicebench.audio.prepare import prepare
from voicebench.plan.config import PluginSpec, Vad
from voicebench.stages import asr_whisper
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.shared import WorkLog
from voicebench.stages.vad import build_vad
from voicebench.turns.quality import normalized
from voicebench.turns.records import Outcome

SAMPLES = Path(__file__).parents[2] / "audio_samples"
RATE = 16_000
Sound = NDArray[np.float64]


def silence(seconds: float) -> Sound:
    """Nothing."""
    return np.zeros(round(seconds * RATE))


def noise(seconds: float) -> Sound:
    """White noise at -30 dBFS, far above what counts as sound."""
    return 0.03 * np.random.default_rng(5).standard_normal(round(seconds * RATE))


def breath(seconds: float) -> Sound:
    """Noise in the bands of a breath, that swells and fades."""
    count = round(seconds * RATE)
    hertz = np.fft.rfftfreq(count, 1 / RATE)
    shape = np.exp(-(((hertz - 900) / 700) ** 2)) + 0.3 * np.exp(-(((hertz - 2_500) / 900) ** 2))
    blown = np.fft.irfft(np.fft.rfft(np.random.default_rng(6).standard_normal(count)) * shape, count)
    swell = np.sin(np.pi * np.arange(count) / count) ** 2
    return np.asarray(0.15 * blown / np.abs(blown).max() * swell, dtype=np.float64)


def music(seconds: float) -> Sound:
    """A chord of four tones with overtones that dies away, as after a jingle."""
    time = np.arange(round(seconds * RATE)) / RATE
    chord = sum(
        np.sin(2 * np.pi * hertz * overtone * time) / overtone**1.5
        for hertz in (261.6, 329.6, 392.0, 523.2)
        for overtone in range(1, 6)
    )
    return np.asarray(0.3 * chord / np.abs(chord).max() * np.exp(-1.2 * time))


MADE: list[Callable[[float], Sound]] = [silence, noise, breath, music]


def pcm(*sounds: Sound) -> NDArray[np.int16]:
    """The sounds one after the other."""
    return (np.concatenate(sounds) * 32767).astype(np.int16)


@pytest.mark.parametrize("made", MADE)
async def test_the_detector_hears_no_voice(made: Callable[[float], Sound]) -> None:
    """Silero takes none of these for speech, so nothing of them is transcribed."""
    vad = build_vad(Vad())
    vad.set_sample_rate(RATE)
    audio = pcm(silence(0.3), made(2.0), silence(0.3))
    states = {
        (await vad.analyze_audio(audio[at : at + 320].tobytes())).name for at in range(0, audio.size, 320)
    }
    await vad.cleanup()
    assert "SPEAKING" not in states


@pytest.fixture(scope="module")
def model() -> Any:
    """The embedded model."""
    return asr_whisper.load(WhisperSettings(cpu_threads=1), offline=True)


async def understood(model: Any, audio: NDArray[np.int16], **settings: Any) -> str:
    """What Whisper's service makes of a segment with its half second of silence."""
    service = asr_whisper._service_class()(model, WhisperSettings(cpu_threads=1, **settings), WorkLog())
    given = np.append(audio, np.zeros(RATE // 2, dtype=np.int16)).tobytes()
    return " ".join([frame.text async for frame in service.run_stt(given)])


@pytest.mark.models
@pytest.mark.parametrize("made", MADE)
async def test_whisper_invents_nothing(model: Any, made: Callable[[float], Sound]) -> None:
    """Even where a detector took it for speech, no word is understood: neither by a short window, which is
    doubted, nor by the full one that decides then."""
    assert await understood(model, pcm(made(1.5)), window="speech") == ""


@pytest.mark.models
async def test_music_behind_the_speech_adds_no_words(model: Any) -> None:
    """A question with a jingle's tail behind it is the question."""
    sample = next(one for one in load_manifest(SAMPLES) if one.id == "capital-of-france")
    audio = np.concatenate((prepare(sample).pcm, pcm(0.5 * music(1.5))))
    assert normalized(await understood(model, audio)) == normalized(sample.transcript or "")


@pytest.mark.models
async def test_a_turn_without_speech_asks_no_model() -> None:
    """Noise, breath and music that a detector of energy takes for speech go to Whisper, and the turn ends as
    `no_speech`, without a request to the language model."""
    config = scripted(turn_timeout_s=12).model_copy(
        update={"asr": PluginSpec.model_validate({"kind": "whisper", "cpu_threads": 1, "window": "speech"})}
    )
    driver = Driver(config)
    try:
        audio = pcm(noise(0.5), silence(0.3), breath(0.6), silence(0.3), music(0.8))
        record = await driver.record(audio, speech_end_s=None)
        assert driver.session is not None
    finally:
        await driver.close()
        driver.shared.close()
    assert record.outcome is Outcome.NO_SPEECH, record.reason
    assert record.transcript is None
    assert record.attempts == ()
    assert record.reply is None
    assert record.work_ms["asr"] > 0, "Whisper was asked"
