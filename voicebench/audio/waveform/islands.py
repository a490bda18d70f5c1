"""Stretches of sound on a channel, before they are judged."""

from __future__ import annotations

import numpy as np

from voicebench.audio.presence import WINDOW_MS, amplitude, present, window_samples
from voicebench.audio.waveform.channel import (
    HISS_DB,
    ISLAND_MS,
    LEAST_CONTRAST_DB,
    Island,
    Levels,
    channel_levels,
    windows,
)
from voicebench.audio.waveform.levels import Floats, Mask, Run, joined, low_and_high, runs_of
from voicebench.audio.waveform.noisy import noisy_islands

_RAISE_DB = 3.0
_LONE_MS = 50.0
_LONE_WINDOWS = 2
_CLICK_DB = 20.0
_HIDDEN_MS = 90.0
"""How far off an onset may be before which the rest of an echo could hide sound."""
_HIDDEN_END_MS = 300.0
"""How far off an end may be after which it could: the release of a final plosive comes so late."""
_BREATHLESS_MS = 12_000.0
_DEEPEST = 3


def find_islands(
    levels: Levels, sample_rate: int, masker: Floats | None, depth: int = 0
) -> tuple[list[Island], float, bool]:
    """The stretches of sound, the threshold in dBFS, and whether the background reaches it.

    Nobody speaks for twelve seconds without a pause of 200 ms: so long a stretch is one in which the
    background has risen. It is looked at by itself where it holds two seconds of a background of its own.
    """
    threshold_db = levels.threshold_db
    noisy = levels.noise_peak_db + 1 > threshold_db + _RAISE_DB
    if noisy:
        islands = noisy_islands(levels, sample_rate, threshold_db, masker)
    else:
        threshold_db = max(threshold_db, levels.noise_peak_db + 1)
        islands = plain_islands(levels, sample_rate, threshold_db, masker)
    if depth == _DEEPEST:
        return islands, threshold_db, noisy
    out: list[Island] = []
    for island in islands:
        inner = (
            None if island.run.length < windows(_BREATHLESS_MS) else _within(island.run, levels, sample_rate)
        )
        if inner is None:
            out.append(island)
        elif inner.split.high - inner.split.low >= LEAST_CONTRAST_DB:
            start = island.run.start
            hidden = None if masker is None else masker[start : island.run.stop]
            parts, _, rough = find_islands(inner, sample_rate, hidden, depth + 1)
            noisy = noisy or rough
            out.extend(p._replace(run=Run(p.run.start + start, p.run.stop + start)) for p in parts)
    return out, threshold_db, noisy


def _within(run: Run, levels: Levels, sample_rate: int) -> Levels | None:
    """The levels of one stretch by itself; None where no background is heard in it."""
    width = window_samples(sample_rate)
    part = levels.samples[run.start * width : run.stop * width]
    inner = channel_levels(part, sample_rate)
    return inner if inner is not None and inner.background_heard else None


def plain_islands(
    levels: Levels, sample_rate: int, threshold_db: float, masker: Floats | None
) -> list[Island]:
    """Stretches of sound by the presence rule, gaps of up to 200 ms closed."""
    plain = present(levels.samples, sample_rate, amplitude(threshold_db))
    sound = plain.copy()
    if levels.narrow:
        low, high = low_and_high(levels.samples, sample_rate)
        sound |= hissing(low, high, levels, threshold_db)
    if masker is not None:
        sound &= levels.power > masker
        plain &= sound
    doubt = WINDOW_MS * (2.0 if levels.narrow else 1.0)
    sound &= ~clicks(runs_of(sound), levels.power)
    hidden = np.zeros(sound.size, dtype=np.bool_)
    if masker is not None:
        hidden = masker > amplitude(threshold_db) ** 2
    reach = windows(ISLAND_MS)
    islands = [
        Island(
            run,
            int(np.count_nonzero(plain[run.start : run.stop])),
            _HIDDEN_MS if hidden[max(0, run.start - reach) : run.start].any() else doubt,
            _HIDDEN_END_MS if hidden[run.stop : run.stop + reach].any() else doubt,
            "drowned" if hidden[run.stop : run.stop + reach].any() else "",
        )
        for run in joined(runs_of(sound), reach)
    ]
    return [island for island in islands if island.sounding]


def clicks(runs: list[Run], power: Floats) -> Mask:
    """Sounds of one or two windows, as loud as speech, with 50 ms of nothing on both sides.

    The release of a final plosive may stand as alone, but is far weaker.
    """
    found = np.zeros(power.size, dtype=np.bool_)
    far = windows(_LONE_MS)
    loud = float(power.max(initial=0.0)) * 10 ** (-_CLICK_DB / 10)
    for i, run in enumerate(runs):
        before = run.start - runs[i - 1].stop if i else far
        after = runs[i + 1].start - run.stop if i + 1 < len(runs) else far
        if run.length <= _LONE_WINDOWS and min(before, after) >= far:
            found[run.start : run.stop] = power[run.start : run.stop].max() > loud
    return found


def hissing(low: Floats, high: Floats, levels: Levels, threshold_db: float) -> Mask:
    """Windows of a narrow-band channel with a hissing sound: more power above 2.2 kHz than below 1.5 kHz.

    The threshold is lower by what such a sound loses on the line, but stays above the background.
    """
    background = float(np.quantile(high[levels.noise], 0.98)) * 2
    return np.asarray(
        (high > low) & (high > max(10 ** ((threshold_db - HISS_DB) / 10), background)), np.bool_
    )
