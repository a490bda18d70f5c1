"""Faint beginnings and endings of speech in noise: the release of a final plosive, a soft hiss.

The release of a final t or k is a burst of some 20 ms, 15 to 20 dB below the vowel, up to 300 ms after the
last of the voice: in noise nothing joins it to the word. Around known speech it is looked for by itself.
"""

from __future__ import annotations

import numpy as np

from voicebench.audio.waveform.channel import windows
from voicebench.audio.waveform.levels import Floats, Mask, Run, band_centres, runs_of, smooth

REACH_AFTER_MS = 320.0
"""So long after the last of the voice a final plosive may be released."""
REACH_BEFORE_MS = 120.0
"""So long before the voice a soft first sound may begin."""
_SPANS = (3, 7, 15)
_GROUPS_HZ = (
    (0.0, 500.0),
    (0.0, 1100.0),
    (0.0, 9000.0),
    (1800.0, 9000.0),
    (3000.0, 5000.0),
    (4200.0, 9000.0),
)
_DEVIATIONS = 4.0
_BEYOND = 0.5
_SHARE = 0.999
_FAINT = 2.0


def burst_windows(bands: Floats, background: Floats, noise: Mask, sample_rate: int, least: float) -> Mask:
    """The windows in which some group of bands together exceeds all that the background shows.

    Each band's power over its background is averaged over 15, 35 and 75 ms, and pooled over a group of bands
    with the inverse of its variance as weight: a burst lies a little above the background in many bands, and
    in none of them clearly. It counts where the pool exceeds what 99.9 % of the background's windows stay
    below, by a margin, and its power over the background is twice `least`, the threshold of sound, or more.
    """
    middle = band_centres(sample_rate)
    ratio = bands / background
    found = np.zeros(noise.size, dtype=np.bool_)
    for span in _SPANS:
        mean = smooth(ratio, span)
        weight = 1 / np.maximum(np.var(mean[noise], axis=0), 1e-3)
        excess = (mean - 1) * background
        hit = np.zeros(noise.size, dtype=np.bool_)
        for low, high in _GROUPS_HZ:
            part = (middle > low) & (middle < high)
            if not part.any():
                continue
            pooled = mean[:, part] @ weight[part] / weight[part].sum()
            quiet = pooled[noise]
            usual, most = np.quantile(quiet, [0.5, _SHARE])
            limit = max(most + _BEYOND * (most - usual), usual + _DEVIATIONS * float(np.std(quiet)))
            hit |= (pooled > limit) & (excess[:, part].sum(axis=1) > _FAINT * least)
        found |= narrowed(hit, (span - _SPANS[0]) // 2)
    return found


def narrowed(mask: Mask, spare: int) -> Mask:
    """Each run of `mask` less the `spare` windows that averaging added on either side, never all of it."""
    out = np.zeros(mask.size, dtype=np.bool_)
    for run in runs_of(mask):
        cut = min(spare, (run.length - 1) // 2)
        out[run.start + cut : run.stop - cut] = True
    return out


def extended(runs: list[Run], bursts: Mask) -> list[Run]:
    """`runs` of speech out to the furthest burst within reach on either side, short of the next run."""
    after, before = windows(REACH_AFTER_MS), windows(REACH_BEFORE_MS)
    out: list[Run] = []
    for i, run in enumerate(runs):
        lower = runs[i - 1].stop if i else 0
        upper = runs[i + 1].start if i + 1 < len(runs) else bursts.size
        behind = np.flatnonzero(bursts[run.stop : min(upper, run.stop + after)])
        first = max(lower, run.start - before)
        ahead = np.flatnonzero(bursts[first : run.start])
        out.append(
            Run(
                first + int(ahead[0]) if ahead.size else run.start,
                run.stop + int(behind[-1]) + 1 if behind.size else run.stop,
            )
        )
    return out
