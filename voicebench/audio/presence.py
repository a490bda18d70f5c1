"""Where sound is present: the one rule used by the sample maker, the playing sink and the waveform analyser.

Sound is present in a 5 ms window whose RMS exceeds a threshold, normally -45 dBFS. An onset is the start of
the first such window, an end the end of the last one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WINDOW_MS = 5
THRESHOLD_DBFS = -45.0
QUIET_CHANNEL_RANGE_DB = 40.0
"""A channel that never comes near full scale is judged against its own peak minus this."""

SEGMENT_GAP_S = 0.5
"""Silence of at least this many seconds separates two segments of speech."""


def window_samples(sample_rate: int) -> int:
    """The number of samples in one window at `sample_rate` Hz, at least 1."""
    return max(1, round(sample_rate * WINDOW_MS / 1000))


def amplitude(dbfs: float) -> float:
    """The linear amplitude (1.0 is full scale) of a level in dBFS."""
    return float(10 ** (dbfs / 20))


def threshold_for(samples: NDArray[np.float32], quiet: bool = False) -> float:
    """The RMS threshold, linear: -45 dBFS, or for a `quiet` channel its peak - 40 dB where that is lower."""
    fixed = amplitude(THRESHOLD_DBFS)
    if not quiet or samples.size == 0:
        return fixed
    peak = float(np.max(np.abs(samples)))
    return min(fixed, peak * amplitude(-QUIET_CHANNEL_RANGE_DB))


def present(
    samples: NDArray[np.float32], sample_rate: int, threshold: float | None = None
) -> NDArray[np.bool_]:
    """For each whole or final partial 5 ms window of mono `samples` (float, +-1.0): is there sound in it?

    `threshold` is a linear RMS; None means -45 dBFS. Empty input gives an empty array.
    """
    width = window_samples(sample_rate)
    limit = amplitude(THRESHOLD_DBFS) if threshold is None else threshold
    whole = samples.size // width
    windows = samples[: whole * width].reshape(whole, width)
    energy = np.einsum("ij,ij->i", windows, windows, dtype=np.float64)
    power = energy / width
    tail = samples[whole * width :].astype(np.float64)
    if tail.size:
        power = np.append(power, np.mean(tail**2))
    return np.asarray(power > limit**2, dtype=np.bool_)


def first_onset(samples: NDArray[np.float32], sample_rate: int, threshold: float | None = None) -> int | None:
    """The sample index at which sound first comes, None where there is none."""
    windows = np.flatnonzero(present(samples, sample_rate, threshold))
    return int(windows[0]) * window_samples(sample_rate) if windows.size else None


def last_end(samples: NDArray[np.float32], sample_rate: int, threshold: float | None = None) -> int | None:
    """The sample index just after the last sound, None where there is none."""
    windows = np.flatnonzero(present(samples, sample_rate, threshold))
    return min(samples.size, (int(windows[-1]) + 1) * window_samples(sample_rate)) if windows.size else None


def segments(
    samples: NDArray[np.float32],
    sample_rate: int,
    threshold: float | None = None,
    min_gap_s: float = SEGMENT_GAP_S,
) -> list[tuple[int, int]]:
    """The stretches of sound as (first sample, sample after the last), in order; empty where there is none.

    Two stretches that are less than `min_gap_s` seconds apart are one: the stops within words and between
    the words of one phrase do not end a segment.
    """
    windows = np.flatnonzero(present(samples, sample_rate, threshold))
    if windows.size == 0:
        return []
    width = window_samples(sample_rate)
    gaps = (np.diff(windows) - 1) * width
    breaks = np.flatnonzero(gaps >= max(1.0, min_gap_s * sample_rate))
    firsts = windows[np.concatenate(([0], breaks + 1))]
    lasts = windows[np.concatenate((breaks, [windows.size - 1]))]
    return [
        (int(first) * width, min(samples.size, (int(last) + 1) * width))
        for first, last in zip(firsts, lasts, strict=True)
    ]
