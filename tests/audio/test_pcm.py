"""One channel, another rate, 16-bit PCM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.audio.signals import Signal, burst, lag_samples, rms
from voicebench.audio.clip import Clip
from voicebench.audio.pcm import downmix, mono, resample, to_pcm16


def clip(*channels: Signal) -> Clip:
    """A clip of these channels at 16 kHz."""
    return Clip(np.stack(channels, axis=1), 16000, Path("x.wav"), "WAV", "PCM_16")


def test_a_mono_clip_stays_as_it_is() -> None:
    """The only channel comes out unchanged, as a plain row of samples."""
    sound = burst()
    assert np.array_equal(mono(clip(sound)), sound)


def test_two_like_channels_are_averaged() -> None:
    """The mix of two equal channels is the channel itself, at its own level."""
    sound = burst()
    assert np.allclose(mono(clip(sound, sound)), sound, atol=1e-7)
    assert downmix(clip(sound, sound).samples).reason is None


def test_anti_phase_stereo_does_not_cancel() -> None:
    """Of two channels that are each other's negative, the louder one is taken, and the reason is told."""
    sound = burst()
    inverted = -0.9 * sound
    assert np.array_equal(mono(clip(sound, inverted)), sound)
    assert downmix(clip(sound, inverted).samples).reason == "antiphase"
    assert np.array_equal(mono(clip(inverted, sound)), sound)


def test_anti_phase_is_seen_in_spite_of_a_constant_offset() -> None:
    """A DC offset in both channels, which never cancels, does not hide that the sound does."""
    sound = burst()
    mixed = mono(clip(sound + np.float32(0.3), -sound + np.float32(0.3)))
    assert rms(mixed - mixed.mean()) == pytest.approx(rms(sound), rel=0.01)


def test_a_voice_on_one_side_keeps_its_level() -> None:
    """Where all other channels are silent the mix would lose 6 dB or more: the one with sound is taken."""
    sound, nothing = burst(), np.zeros(16000, np.float32)
    assert np.array_equal(mono(clip(nothing, sound)), sound)
    assert np.array_equal(mono(clip(nothing, nothing, sound, nothing, nothing, nothing)), sound)
    assert downmix(clip(nothing, sound).samples).reason == "one_channel"


def test_unrelated_channels_are_mixed() -> None:
    """Two different sounds of one level lose 3 dB in the mix, which is no cancellation."""
    one, other = burst(seed=1), burst(seed=2)
    assert downmix(clip(one, other).samples).channel is None
    assert np.allclose(mono(clip(one, other)), (one + other) / 2, atol=1e-6)


def test_silent_stereo_is_mixed_without_a_reason() -> None:
    """Silence in all channels is neither cancelled nor one-sided."""
    nothing = np.zeros(1000, np.float32)
    assert downmix(clip(nothing, nothing).samples).reason is None
    assert not mono(clip(nothing, nothing)).any()


def test_a_named_channel_is_taken_whatever_the_others_hold() -> None:
    """`channel` picks by number from 0; one that is not there is an IndexError, negative numbers too."""
    one, other = burst(seed=1), burst(seed=2)
    assert np.array_equal(mono(clip(one, other), channel=1), other)
    for wrong in (2, -1):
        with pytest.raises(IndexError):
            mono(clip(one, other), channel=wrong)


@pytest.mark.parametrize(
    ("from_rate", "to_rate"), [(8000, 16000), (44100, 16000), (48000, 16000), (22050, 48000)]
)
def test_resampling_moves_nothing_and_keeps_level_and_length(from_rate: int, to_rate: int) -> None:
    """A burst comes out at the same instant, equally loud and equally long, at the other rate."""
    sound = burst(from_rate)
    there = resample(sound, from_rate, to_rate)
    assert there.dtype == np.float32
    assert abs(there.size - to_rate) <= 1
    again = resample(there, to_rate, from_rate)
    assert lag_samples(again, sound) == 0
    assert rms(there) == pytest.approx(rms(sound), rel=0.01)


def test_equal_rates_change_nothing() -> None:
    """Resampling to the same rate is the identity."""
    sound = burst()
    assert resample(sound, 16000, 16000) is sound


def test_resampling_nothing_gives_nothing() -> None:
    """An empty array stays empty."""
    assert resample(np.zeros(0, np.float32), 8000, 16000).size == 0


@pytest.mark.parametrize("rates", [(0, 16000), (16000, 0), (-1, 16000)])
def test_impossible_rates_are_refused(rates: tuple[int, int]) -> None:
    """A rate that is not positive is a ValueError, not silence."""
    with pytest.raises(ValueError, match="positive"):
        resample(burst(), *rates)


def test_pcm16_rounds_and_saturates() -> None:
    """Values go to the nearest step; what lies beyond full scale stops there and does not wrap around."""
    values = np.array([0.0, 1.0, -1.0, 1.7, -2.0, 0.4 / 32768, 0.6 / 32768, -0.6 / 32768], np.float32)
    assert np.frombuffer(to_pcm16(values), "<i2").tolist() == [0, 32767, -32768, 32767, -32768, 0, 1, -1]


def test_pcm16_keeps_decoded_16_bit_samples_exactly() -> None:
    """Every 16-bit value survives the way to float and back."""
    every = np.arange(-32768, 32768, dtype="<i2")
    assert to_pcm16(every.astype(np.float32) / 32768) == every.tobytes()


def test_pcm16_of_values_that_are_no_numbers() -> None:
    """NaN becomes 0, infinity full scale; no warning is raised."""
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert np.frombuffer(to_pcm16(values), "<i2").tolist() == [0, 32767, -32768]
