"""Faint ends of speech in noise, found beside the runs of speech that are known."""

from __future__ import annotations

import numpy as np

from tests.audio.waveform_calls import RATE
from voicebench.audio.waveform.levels import Run, band_power
from voicebench.audio.waveform.tails import burst_windows, extended, narrowed

LEAST = 10 ** (-45 / 10)


def found_in(burst_db: float, seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where a burst of 20 ms at 2 s is found in 4 s of noise at -40 dBFS."""
    rng = np.random.default_rng(seed)
    sound = rng.standard_normal(4 * RATE) * 10 ** (-40 / 20)
    sound[2 * RATE : 2 * RATE + 320] += rng.standard_normal(320) * 10 ** (burst_db / 20)
    bands = band_power(sound.astype(np.float32), RATE)
    noise = np.ones(bands.shape[0], dtype=np.bool_)
    noise[380:430] = False
    return burst_windows(bands, np.tile(bands[noise].mean(axis=0), (noise.size, 1)), noise, RATE, LEAST)


def test_a_burst_over_the_background_is_found_in_its_place() -> None:
    """A burst 6 dB over the noise is found to 15 ms; one 20 dB below it is not."""
    for seed in range(5):
        where = np.flatnonzero(found_in(-34.0, seed))
        assert 397 <= where.min() <= where.max() <= 407
        assert not found_in(-60.0, seed)[380:430].any()


def test_runs_reach_to_bursts_near_them_only() -> None:
    """A run is prolonged to a burst within reach on either side, never into the next run."""
    bursts = np.zeros(600, dtype=np.bool_)
    bursts[[90, 250, 251, 345, 420]] = True
    assert extended([Run(100, 200), Run(340, 350)], bursts) == [Run(90, 252), Run(340, 350)]
    assert extended([], bursts) == []


def test_what_averaging_added_is_taken_off() -> None:
    """A run loses the spare windows on both sides, and a short one keeps its middle."""
    mask = np.zeros(30, dtype=np.bool_)
    mask[5:15] = mask[20:23] = True
    assert np.flatnonzero(narrowed(mask, 3)).tolist() == [8, 9, 10, 11, 21]
