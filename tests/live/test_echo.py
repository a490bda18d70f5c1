"""The agent's own voice in the microphone, and a person who speaks over it; rates converted on the way."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from voicebench.audio.decode import decode
from voicebench.audio.echo import AHEAD, FRAME, RATE, REFERENCE, EchoGate, Floats
from voicebench.audio.pcm import resample
from voicebench.audio.streaming_rate import RateConverter

SAMPLES = Path(__file__).parents[2] / "audio_samples"


def _speech(name: str, length: int) -> Floats:
    clip = decode(SAMPLES / name)
    samples = resample(clip.samples[:, 0], clip.sample_rate, RATE)
    out = np.zeros(length, dtype=np.float32)
    out[: min(length, samples.size)] = samples[:length]
    return out


AGENT = _speech("minutes-in-an-hour-telephone.wav", 48_000) * np.float32(1.0)
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(48_000) / RATE)).astype(np.float32)
PERSON = np.roll(_speech("capital-of-france.wav", 48_000), 8_000)


def _echo(agent: Floats, db: float, delay: int) -> Floats:
    return np.concatenate((np.zeros(delay, np.float32), agent[:-delay])) * np.float32(10 ** (db / 20))


def _gated(mic: Floats, agent: Floats) -> NDArray[np.bool_]:
    """For each frame: was it taken for the agent's voice?"""
    gate = EchoGate()
    played = np.concatenate((np.zeros(REFERENCE, np.float32), agent, np.zeros(AHEAD, np.float32)))
    return np.array(
        [
            gate.is_echo(mic[end - FRAME : end], played[end + AHEAD : end + AHEAD + REFERENCE])
            for end in range(FRAME, mic.size + 1, FRAME)
        ]
    )


def _loud(samples: Floats, db: float = -45.0) -> NDArray[np.bool_]:
    power = np.mean(samples[: samples.size // FRAME * FRAME].reshape(-1, FRAME) ** 2, axis=1)
    return np.asarray(10 * np.log10(power + 1e-12) > db)


@pytest.mark.parametrize("agent", [AGENT, TONE], ids=["speech", "tone"])
@pytest.mark.parametrize("delay_ms", [1, 60, 200])
def test_an_echo_is_kept_from_the_detector(agent: Floats, delay_ms: int) -> None:
    """An echo 20 dB weaker never passes for as long as the detector needs to hear speech (200 ms)."""
    echo = _echo(agent, -20.0, RATE * delay_ms // 1000)
    passed = _loud(echo) & ~_gated(echo, agent)
    longest = max((sum(1 for _ in run) for value, run in groupby(passed) if value), default=0)
    assert longest * 20 < 100


@pytest.mark.parametrize("agent", [AGENT, TONE], ids=["speech", "tone"])
@pytest.mark.parametrize("echo_db", [-20.0, -120.0], ids=["echo", "headphones"])
def test_a_person_over_the_agent_passes(agent: Floats, echo_db: float) -> None:
    """Nine tenths of what a person says over the agent pass, with an echo or without."""
    mic = PERSON + _echo(agent, echo_db, RATE // 20)
    own = _loud(PERSON)
    assert np.mean(_gated(mic, agent)[own]) < 0.1


def test_without_the_agent_nothing_is_gated() -> None:
    """While the agent is silent every frame passes."""
    assert not _gated(PERSON, np.zeros_like(PERSON)).any()


@pytest.mark.parametrize(
    ("from_rate", "to_rate"), [(48_000, 16_000), (44_100, 16_000), (24_000, 48_000), (22_050, 48_000)]
)
def test_a_converted_stream_is_shifted_by_nothing(from_rate: int, to_rate: int) -> None:
    """However a tone is cut into blocks, sample m comes out as the sound at m / rate; ~1 ms is held back."""
    tone = np.sin(2 * np.pi * 500 * np.arange(from_rate) / from_rate).astype(np.float32)
    converter = RateConverter(from_rate, to_rate)
    cuts = np.cumsum(np.random.default_rng(3).integers(1, 900, 200))
    made = np.concatenate([converter.push(part) for part in np.split(tone, cuts[cuts < tone.size])])
    truth = np.sin(2 * np.pi * 500 * np.arange(made.size) / to_rate)
    assert np.max(np.abs(made - truth)[to_rate // 50 :]) < 1e-3
    assert converter.delay_s <= 0.0011
    assert abs(made.size / to_rate - (1.0 - converter.delay_s)) < 0.001


def test_what_is_above_half_the_new_rate_is_taken_out() -> None:
    """A tone that the lower rate cannot hold is at least 60 dB down, not folded back."""
    tone = np.sin(2 * np.pi * 11_000 * np.arange(48_000) / 48_000).astype(np.float32)
    assert float(np.std(RateConverter(48_000, 16_000).push(tone)[400:])) < 1e-3


@pytest.mark.parametrize("rates", [(0, 16_000), (48_000, -1)])
def test_a_rate_that_is_none_is_refused(rates: tuple[int, int]) -> None:
    """Rates that are not positive raise ValueError."""
    with pytest.raises(ValueError, match="positive"):
        RateConverter(*rates)
