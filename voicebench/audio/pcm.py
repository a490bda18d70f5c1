"""From a decoded clip to what a model or a device takes: one channel, another rate, 16-bit PCM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.clip import Clip, Samples

RATES_HZ = (4000, 768_000)
"""Sample rates outside this range are a mistake, not sound."""

MIX_LOSS_DB = 6.0
"""A mix that lies further than this below the louder channel is not used."""

_CANCELLED_DB = 3.0
"""Channels cancel where their mix lies this far below the mix of unrelated channels of the same levels."""

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Downmix:
    """How several channels become one: `channel` is the one to take, None to mix them all."""

    channel: int | None
    reason: Literal["antiphase", "one_channel"] | None


def downmix(samples: Samples) -> Downmix:
    """Decide how to make one channel of `samples` (frames, channels).

    The mix is the mean of the channels. Where its level (RMS without the DC part) lies more than 6 dB below
    that of the loudest channel, that channel is to be taken: because the others cancel it (`antiphase`) or
    because they are silent (`one_channel`).
    """
    frames, channels = samples.shape
    if channels == 1 or frames == 0:
        return Downmix(0 if channels == 1 else None, None)
    sums = np.zeros(channels + 1)
    squares = np.zeros(channels + 1)
    for start in range(0, frames, _BLOCK):
        block = samples[start : start + _BLOCK].astype(np.float64)
        signals = np.column_stack([block, block.mean(axis=1)])
        sums += signals.sum(axis=0)
        squares += np.einsum("ij,ij->j", signals, signals)
    power = np.maximum(squares / frames - (sums / frames) ** 2, 0.0)
    each, mix = power[:-1], power[-1]
    loudest = int(np.argmax(each))
    if mix >= each[loudest] * 10 ** (-MIX_LOSS_DB / 10):
        return Downmix(None, None)
    unrelated = each.sum() / channels**2
    cancels = mix < unrelated * 10 ** (-_CANCELLED_DB / 10)
    return Downmix(loudest, "antiphase" if cancels else "one_channel")


def mono(clip: Clip, channel: int | None = None) -> Samples:
    """One channel of `clip`, shape (frames,): the given `channel` (from 0), or with None all of them mixed.

    Mixing takes the mean, but never lets channels cancel each other: see `downmix`. Raises IndexError for a
    channel that the clip does not have.
    """
    if channel is None:
        channel = downmix(clip.samples).channel
    elif not 0 <= channel < clip.channels:
        raise IndexError(f"channel {channel} of a clip with {clip.channels}")
    if channel is not None:
        return np.ascontiguousarray(clip.samples[:, channel])
    mixed: Samples = clip.samples.mean(axis=1, dtype=np.float32)
    return mixed


def resting_level(samples: Samples) -> float:
    """The level at which a mono signal rests, +-1.0 being full scale: its DC offset. 0.0 for no samples.

    It is the mean or the median, whichever is nearer to 0, and 0.0 where they have different signs: a
    lopsided waveform moves the mean alone, one that jumps between two levels the median alone.
    """
    if not samples.size:
        return 0.0
    mean, median = float(samples.mean(dtype=np.float64)), float(np.median(samples))
    return min(mean, median, key=abs) if mean * median > 0 else 0.0


def resample(samples: Samples, from_rate: int, to_rate: int) -> Samples:
    """`samples` (frames,) or (frames, channels) at another rate in Hz, by soxr at quality HQ.

    Nothing is shifted: sample n of the result is the sound at n / `to_rate` seconds. Equal rates give
    `samples` itself, unchanged. Raises ValueError for a rate that is not positive.
    """
    if from_rate <= 0 or to_rate <= 0:
        raise ValueError(f"sample rates must be positive, not {from_rate} -> {to_rate}")
    if from_rate == to_rate or samples.shape[0] == 0:
        return samples
    import soxr

    resampled: Samples = soxr.resample(samples, from_rate, to_rate, quality="HQ")
    return resampled


def to_pcm16(samples: NDArray[np.floating]) -> bytes:
    """Signed 16-bit little-endian PCM: +-1.0 is +-32768, rounded to nearest, saturated at both ends.

    (frames, channels) comes out interleaved. NaN has no place here and becomes 0.
    """
    scaled = np.rint(np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0) * 32768.0)
    return bytes(np.clip(scaled, -32768, 32767).astype("<i2").tobytes())
