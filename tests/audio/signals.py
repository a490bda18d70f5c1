"""Sounds for the tests of this room, and ways to compare them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.float32]


def burst(rate: int = 16000, seconds: float = 1.0, level: float = 0.5, seed: int = 7) -> Signal:
    """Silence with a stretch of band-limited noise in its middle two fifths, peak `level`."""
    count = round(rate * seconds)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    frequencies = np.fft.rfftfreq(count, 1 / rate)
    spectrum[(frequencies < 200) | (frequencies > 3000)] = 0
    noise = np.fft.irfft(spectrum, count)
    noise[: round(0.3 * count)] = 0
    noise[round(0.7 * count) :] = 0
    return np.asarray(noise * (level / np.max(np.abs(noise))), dtype=np.float32)


def lag_samples(later: Signal, earlier: Signal) -> int:
    """By how many samples `later` lies behind `earlier`, by cross-correlation."""
    size = 1 << (later.size + earlier.size).bit_length()
    product = np.fft.rfft(later, size) * np.conj(np.fft.rfft(earlier, size))
    best = int(np.argmax(np.fft.irfft(product, size)))
    return best if best < size // 2 else best - size


def rms(samples: Signal) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
