"""Which stretches of sound can be speech: not clicks, not breaths, not what is far too quiet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import window_samples
from voicebench.audio.waveform.channel import Island, Levels, windows
from voicebench.audio.waveform.levels import decibel, smooth

_QUIET_DB = 30.0
_BREATH_DB = 20.0
_BREATH_MS = 1500.0
_PLATEAU_MS = 100.0
_STEADY_DB = 1.5
_BELOW_DB = 10.0
_LEAST_GATED = 3
_VOICED = 0.55
_VOICED_FRAMES = 2
_PITCH_HZ = (70.0, 420.0)
_FRAME_S = 0.03


def judged(
    islands: list[Island], levels: Levels, sample_rate: int, shortest_ms: float, noisy: bool
) -> tuple[list[Island], dict[str, int]]:
    """The islands that can be speech, and how many were dropped as `click`, `quiet` or `breath`.

    Quiet is 30 dB below the loudest; a breath (or a rustle) is 20 dB below it, shorter than 1.5 s and
    without voice (in noise, where voice cannot be told, none is dropped as such).
    """
    short = decibel(smooth(levels.power, 5))
    tops = [float(short[i.run.start : i.run.stop].max()) for i in islands]
    long = [i.sounding >= windows(shortest_ms) for i in islands]
    loudest = max((top for top, enough in zip(tops, long, strict=True) if enough), default=0.0)
    kept: list[Island] = []
    dropped: dict[str, int] = {}
    for island, top, enough in zip(islands, tops, long, strict=True):
        if not enough:
            reason = "click"
        elif top < loudest - _QUIET_DB:
            reason = "quiet"
        elif not noisy and top < loudest - _BREATH_DB and is_breath(island, levels, sample_rate):
            reason = "breath"
        else:
            kept.append(island)
            continue
        dropped[reason] = dropped.get(reason, 0) + 1
    return kept, dropped


def is_gated(islands: list[Island], levels: Levels) -> bool:
    """Does a noise gate open and close with the speech, so that its noise hides where speech begins and ends?

    Then most stretches of sound begin and end with 100 ms of a steady low level, the same
    everywhere.
    """
    length, skip = windows(_PLATEAU_MS), 2
    course = decibel(smooth(levels.power, 5))
    long = [i.run for i in islands if i.run.length >= 4 * length]
    if len(long) < _LEAST_GATED:
        return False
    first = np.array([course[r.start + skip : r.start + skip + length] for r in long])
    last = np.array([course[r.stop - skip - length : r.stop - skip] for r in long])
    tops = np.array([course[r.start : r.stop].max() for r in long])
    steady: list[NDArray[np.float64]] = []
    for plateau in (first, last):
        level = plateau.mean(axis=1)
        steady.append(level[(plateau.std(axis=1) < _STEADY_DB) & (level < tops - _BELOW_DB)])
    enough = min(part.size for part in steady) >= len(long) / 2
    return enough and float(np.std(np.concatenate(steady))) < _STEADY_DB


def is_breath(island: Island, levels: Levels, sample_rate: int) -> bool:
    """Is it shorter than 1.5 s and without a voice's pitch?"""
    if island.run.length > windows(_BREATH_MS):
        return False
    width = window_samples(sample_rate)
    sound = levels.samples[island.run.start * width : island.run.stop * width]
    return voiced_frames(sound, sample_rate) < _VOICED_FRAMES


def voiced_frames(samples: NDArray[np.float32], sample_rate: int) -> int:
    """How many 30 ms frames (every 15 ms) repeat themselves with a period of 70 to 420 Hz.

    The measure is the normalised autocorrelation at the best such period (1 for a perfect repetition).
    """
    frame = round(_FRAME_S * sample_rate)
    shortest, longest = (round(sample_rate / hertz) for hertz in reversed(_PITCH_HZ))
    count = 0
    for start in range(0, samples.size - frame - longest, frame // 2):
        here = samples[start : start + frame].astype(np.float64)
        ahead = samples[start : start + frame + longest].astype(np.float64)
        energy = np.cumsum(np.concatenate([[0.0], ahead**2]))
        lags = np.arange(shortest, longest)
        cross = np.correlate(ahead, here, mode="valid")[lags]
        norm = np.sqrt(energy[frame] * (energy[lags + frame] - energy[lags]))
        count += bool(norm.max() > 0 and (cross / np.maximum(norm, 1e-20)).max() > _VOICED)
    return count
