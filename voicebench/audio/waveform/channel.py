"""A channel as a whole: its levels, its background, its peak; and what is found in it before it is judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import WINDOW_MS, threshold_for
from voicebench.audio.waveform.levels import (
    Floats,
    Mask,
    Run,
    Split,
    decibel,
    runs_of,
    share_above,
    smooth,
    two_levels,
    widened,
    window_power,
    windows_of,
    without_offset,
    without_rumble,
)

SHORTEST_MS = 60.0
"""A sound with less than this above the threshold, away from others, is a click, not speech."""
ISLAND_MS = 200.0
"""Sounds up to this far apart belong together: plosives close so long."""
HISS_DB = 14.0
"""How much weaker a hissing sound is where a line ends near 4 kHz, its energy being above."""
LEAST_CONTRAST_DB = 6.0
"""Where the loud and the quiet windows of a channel are closer than this, nothing stands out."""
_SILENT_DBFS = -80.0
_FAR_MS = 400.0
_BACKGROUND_MS = 2000.0
_WELL_BELOW_DB = 5.0
_NARROW_HZ = 4300.0
_NARROW_DB = -50.0


class Island(NamedTuple):
    """A stretch of sound before it is judged: its windows, how many sound, how far off its edges may be.

    `reason` is a code where the edges cannot be relied on, else empty.
    """

    run: Run
    sounding: int
    start_doubt_ms: float
    end_doubt_ms: float
    reason: str = ""


class Levels(NamedTuple):
    """What a channel's windows look like as a whole."""

    samples: NDArray[np.float32]
    power: Floats
    split: Split
    noise: Mask
    floor_db: float
    noise_high_db: float
    """What 98 % of the background's windows stay below."""
    noise_peak_db: float
    """What 99.9 % of them stay below."""
    peak: float
    threshold_db: float
    background_heard: bool
    """True where two seconds of it lie well away from anything louder."""
    narrow: bool
    """True where the sound ends below 4.3 kHz, as on a telephone line: hissing sounds arrive weakened."""


def windows(milliseconds: float) -> int:
    """A duration in whole 5 ms windows, at least 1."""
    return max(1, round(milliseconds / WINDOW_MS))


def channel_levels(samples: NDArray[np.float32], sample_rate: int) -> Levels | None:
    """The channel's levels, its background and its peak; None where it is silent throughout."""
    if samples.size == 0:
        return None
    clean = without_offset(samples, sample_rate)
    levels = _levels(clean, sample_rate)
    if levels is None or levels.noise_high_db < levels.threshold_db:
        return levels
    filtered = without_rumble(clean, sample_rate)
    left = float(np.mean(window_power(filtered, sample_rate)[levels.noise]))
    rumbling = left < 0.5 * float(np.mean(levels.power[levels.noise]))
    return _levels(filtered, sample_rate) if rumbling else levels


def _levels(clean: NDArray[np.float32], sample_rate: int) -> Levels | None:
    """As `channel_levels`, for samples without offset."""
    power = window_power(clean, sample_rate)
    level = decibel(smooth(power, windows(100) | 1))
    split = two_levels(level)
    if split.high < _SILENT_DBFS:
        return None
    loud = level > split.cut
    peak = _speech_peak(clean, sample_rate, power, split)
    threshold_db = float(decibel(threshold_for(np.asarray([peak], np.float32), quiet=True) ** 2))
    heard = np.count_nonzero(~widened(loud, windows(_FAR_MS))) >= windows(_BACKGROUND_MS)
    noise = background_windows(loud)
    if noise is None:
        noise = _between_words(loud, power, threshold_db)
    return Levels(
        samples=clean,
        power=power,
        split=split,
        noise=noise,
        floor_db=float(decibel(float(np.mean(power[noise])))),
        noise_high_db=float(decibel(float(np.quantile(power[noise], 0.98)))),
        noise_peak_db=float(decibel(float(np.quantile(power[noise], 0.999)))),
        peak=peak,
        threshold_db=threshold_db,
        background_heard=bool(heard),
        narrow=sample_rate < 2 * _NARROW_HZ
        or share_above(clean, sample_rate, _NARROW_HZ, loud) < 10 ** (_NARROW_DB / 10),
    )


def background_windows(speech: Mask) -> Mask | None:
    """The windows that hold background: well away from `speech` where there are 2 s of such, else near it.

    None where less than 300 ms lie 150 ms away from speech.
    """
    for distance_ms, enough_ms in ((_FAR_MS, _BACKGROUND_MS), (150, 300)):
        away = ~widened(speech, windows(distance_ms))
        if np.count_nonzero(away) >= windows(enough_ms):
            return away
    return None


def _between_words(speech: Mask, power: Floats, threshold_db: float) -> Mask:
    """The background of a recording that is nearly all speech, as it shows in the shortest pauses.

    Where one window in fifty is far below the threshold, those tell how quiet it is. Else what lies 50 ms
    away from speech may be noise, or where nothing does, the quietest windows.
    """
    quietest = np.asarray(power <= np.quantile(power, 0.02), dtype=np.bool_)
    if float(decibel(float(power[quietest].max()))) < threshold_db - _WELL_BELOW_DB:
        return quietest
    away = ~widened(speech, windows(50))
    return away if np.count_nonzero(away) >= windows(100) else quietest


def _speech_peak(samples: NDArray[np.float32], sample_rate: int, power: Floats, split: Split) -> float:
    """The highest sample of what lasts long enough to be speech, so that a click does not count."""
    rows = windows_of(samples, sample_rate)
    highs = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    long = [r for r in runs_of(decibel(smooth(power, 5)) > split.cut) if r.length >= windows(SHORTEST_MS)]
    return float(max((highs[r.start : r.stop].max() for r in long), default=highs.max()))
