"""Sound in a noisy channel: each window is compared with the background band by band."""

from __future__ import annotations

import numpy as np

from voicebench.audio.presence import WINDOW_MS
from voicebench.audio.waveform.channel import (
    HISS_DB,
    ISLAND_MS,
    Island,
    Levels,
    background_windows,
    windows,
)
from voicebench.audio.waveform.levels import (
    Floats,
    Mask,
    Run,
    band_centres,
    band_power,
    decibel,
    joined,
    local_mean,
    runs_of,
    smooth,
)
from voicebench.audio.waveform.tails import burst_windows, extended

_ROUNDS = 2
_REACH_MS = 2000.0
_CLOSURE_MS = 60.0
_SEED_MS = 30.0
_LEAST_WINDOWS = 3
_HISS_FROM_HZ = 2300.0
_CLOSE_DB = 6.0
_STANDS_OUT = 2.0
_DECAY_MS = 2.5
_MADE_UP_DB = 6.0
_MOST_LATER_MS = 15.0
_RELEASE_DB = 16.5
"""A background nearer than this to the speech's level can hide the release of a final plosive."""
_RELEASE_DOUBT_MS = 300.0
_SOFT_ONSET_MS = 90.0
"""So long a soft f at the threshold of sound may last before the vowel, unseen in any background."""
MOST_DOUBT_MS = 100.0
"""An edge that may be further off than this is not certain."""
_SPANS = (5, 15)


def evidence(ratio: Floats, noise: Mask, span: int) -> Floats:
    """How unlike the background each window is: a log likelihood ratio summed over bands (0 or more).

    `ratio` is each band's power over its background, here averaged over `span` windows. A band's ratio g has
    the log likelihood ratio g - ln g - 1 for the best-fitting signal level (Sohn, Kim and Sung 1999), times
    its degrees of freedom, which are read from how much g varies in the background: an unsteady band counts
    less.
    """
    mean = smooth(ratio, span)
    freedom = np.minimum(1 / np.maximum(np.var(mean[noise], axis=0), 1e-3), 60.0)
    mean = np.maximum(mean, 1.0)
    return np.asarray(((mean - np.log(mean) - 1) * freedom).sum(axis=1), dtype=np.float64)


def hiss_evidence(ratio: Floats, noise: Mask, span: int, sample_rate: int) -> Floats:
    """How far the high bands together exceed their background, in standard deviations of the latter.

    A final hiss lies a little above the background in many neighbouring high bands at once. None of them
    shows it by itself, so two groups are pooled (3 to 5 kHz and above 4.2 kHz), and the clearer one counts.
    """
    middle = band_centres(sample_rate)
    mean = smooth(ratio, span)
    weight = 1 / np.maximum(np.var(mean[noise], axis=0), 1e-3)
    best = np.zeros(noise.size)
    for part in ((middle > 3000) & (middle < 5000), middle > 4200):
        if part.any():
            pooled = mean[:, part] @ weight[part] / weight[part].sum() - 1
            best = np.maximum(best, pooled / max(float(np.std(pooled[noise])), 1e-3))
    return best


def noisy_islands(
    levels: Levels, sample_rate: int, threshold_db: float, masker: Floats | None
) -> list[Island]:
    """Stretches that differ from the background, grown from their clear middles out to their faint edges.

    Two rounds: the first finds where there is speech, the second knows the background from the rest. A faint
    long sound (a final hiss) shows only in the long average, a sharp edge only in the short one.
    """
    bands = band_power(levels.samples, sample_rate)
    noise = levels.noise
    level = decibel(smooth(levels.power, windows(100) | 1))
    runs: list[Run] = []
    for _ in range(_ROUNDS):
        background = local_mean(bands, noise, windows(_REACH_MS))
        ratio = bands / background
        audible = _audible(ratio, background, noise, levels, sample_rate, threshold_db)
        if masker is not None:
            audible &= (bands - background).sum(axis=1) > masker
        faint = np.zeros(noise.size, dtype=np.bool_)
        clear = np.zeros(noise.size, dtype=np.bool_)
        for span in _SPANS:
            score = evidence(ratio, noise, span)
            _mark(faint, score > _quantile(score, noise, 0.98) * 1.1 + 1, (span - _SPANS[0]) // 2)
            clear |= score > _quantile(score, noise, 0.999) * 1.2 + 3
        hiss = hiss_evidence(ratio, noise, _SPANS[-1], sample_rate)
        _mark(faint, hiss > _quantile(hiss, noise, 0.98) + 0.2, (_SPANS[-1] - _SPANS[0]) // 2)
        clear |= hiss > _quantile(hiss, noise, 0.998) + 0.3
        short = [r for r in runs_of(faint & audible) if r.length >= _LEAST_WINDOWS]
        runs = grown(short, clear & audible, level > levels.split.cut)
        speech = np.zeros(noise.size, dtype=np.bool_)
        for run in runs:
            speech[run.start : run.stop] = True
        quiet = background_windows(speech)
        if quiet is None:
            break
        noise = quiet
    background = local_mean(bands, noise, windows(_REACH_MS))
    bursts = burst_windows(bands, background, noise, sample_rate, 10 ** (threshold_db / 10))
    if masker is not None:
        bursts &= (bands - background).sum(axis=1) > masker
    whole = joined(extended(joined(runs, windows(ISLAND_MS)), bursts), windows(ISLAND_MS))
    doubt = edge_doubt_ms(bands, noise, levels, sample_rate, threshold_db)
    later = round(hidden_ms(bands, noise, sample_rate, threshold_db) / WINDOW_MS)
    start_doubt = max(doubt / 2, _SOFT_ONSET_MS)
    if levels.split.high - levels.floor_db < _RELEASE_DB:
        doubt = max(doubt, _RELEASE_DOUBT_MS)
    reason = "drowned" if doubt > MOST_DOUBT_MS else ""
    # A 20 ms look sees an onset some 5 ms before it comes.
    return [
        Island(
            Run(min(r.start + 1, r.stop - 1), min(r.stop + later, noise.size)),
            r.length,
            start_doubt,
            doubt,
            reason,
        )
        for r in whole
    ]


def _quantile(score: Floats, noise: Mask, share: float) -> float:
    """The score that `share` of the background windows stay below."""
    return float(np.quantile(score[noise], share))


def _mark(faint: Mask, high: Mask, spare: int) -> None:
    """Set `faint` in each run of `high`, less the `spare` windows that averaging added on either side."""
    for run in runs_of(high):
        if run.length >= _LEAST_WINDOWS + 2 * spare:
            faint[run.start + spare : run.stop - spare] = True


def hidden_ms(bands: Floats, noise: Mask, sample_rate: int, threshold_db: float) -> float:
    """How much of an ending lies unseen under the background on average, in ms: what an end is put later by.

    A 20 ms look prolongs an end by some 5 ms, which makes up for what a background of little more than the
    threshold hides. Beyond that a decay of 1 dB in 2.5 ms is assumed, up to 15 ms.
    """
    above = high_db(bands, noise, band_centres(sample_rate) > _HISS_FROM_HZ) - threshold_db
    return min(_MOST_LATER_MS, _DECAY_MS * max(0.0, above - _MADE_UP_DB))


def high_db(bands: Floats, noise: Mask, part: Mask) -> float:
    """What 98 % of the background's windows stay below in some bands together, in dB; -120 without a band."""
    high = float(np.quantile(bands[noise][:, part].sum(axis=1), 0.98)) if part.any() else 0.0
    return float(decibel(high))


def edge_doubt_ms(bands: Floats, noise: Mask, levels: Levels, sample_rate: int, threshold_db: float) -> float:
    """How far an end may lie from the one that would be found without the noise, in ms (about 19 in 20 ends).

    What counts is how far the background rises above the threshold: in the high bands it swallows final
    hisses, more so where a narrow line has weakened them; in the low bands, where it is unsteady as voices
    are, it passes for speech and speech for it. The factors are fitted to synthetic mixtures.
    """
    middle = band_centres(sample_rate)

    hissing = high_db(bands, noise, middle > _HISS_FROM_HZ) - threshold_db
    hiss = max(0.0, hissing + (HISS_DB if levels.narrow else 0.0))
    voice = max(0.0, high_db(bands, noise, middle <= _HISS_FROM_HZ) - threshold_db)
    unsteady = float(np.std(decibel(smooth(bands.sum(axis=1), windows(100) | 1))[noise]))
    doubt = (
        15 + hiss * (20 if levels.narrow else 5) + voice * (1 + 8 * min(1.0, max(0.0, unsteady - 0.5) / 1.5))
    )
    close = levels.split.high - levels.noise_high_db < _CLOSE_DB and unsteady > 1
    return min(300.0, doubt * (1.6 if close else 1.0))


def _audible(
    ratio: Floats, background: Floats, noise: Mask, levels: Levels, sample_rate: int, threshold_db: float
) -> Mask:
    """Windows in which what stands out of the background would be above the threshold by itself.

    Only bands that clearly stand out are summed: over 25 ms all of them, over 75 ms the high ones, where a
    hiss shows so late. A narrow line weakens hisses, and so their threshold.
    """
    least = 10 ** (threshold_db / 10)
    high = band_centres(sample_rate) > _HISS_FROM_HZ

    def standing_out(span: int) -> Floats:
        mean = smooth(ratio, span)
        clear = mean > 1 + _STANDS_OUT * np.std(mean[noise], axis=0)
        return np.where(clear, (mean - 1) * background, 0.0)

    short, long = (standing_out(span) for span in _SPANS)
    hiss = long[:, high].sum(axis=1)
    there = np.maximum((ratio - 1) * background, 0.0).sum(axis=1) > least
    audible = there & ((short.sum(axis=1) > least) | (hiss > least))
    if levels.narrow:
        audible |= (hiss > short[:, ~high].sum(axis=1)) & (hiss > least * 10 ** (-HISS_DB / 10))
    return np.asarray(audible, dtype=np.bool_)


def grown(faint: list[Run], clear: Mask, loud: Mask) -> list[Run]:
    """Of the `faint` runs, those that belong to speech.

    A group of them (closures of 60 ms bridged) is speech where it is `clear` and `loud` for long enough; a
    group that is clear but not loud (a final hiss) where it lies within 200 ms of such a one.
    """
    groups = joined(faint, windows(_CLOSURE_MS))
    need = windows(_SEED_MS)
    sure = [int(np.count_nonzero(clear[g.start : g.stop] & loud[g.start : g.stop])) >= need for g in groups]
    plain = [int(np.count_nonzero(clear[g.start : g.stop])) >= _LEAST_WINDOWS for g in groups]
    reach = windows(ISLAND_MS)
    for order in (range(1, len(groups)), range(len(groups) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            near, other = groups[i], groups[i - step]
            gap = near.start - other.stop if step > 0 else other.start - near.stop
            if plain[i] and sure[i - step] and gap <= reach:
                sure[i] = True
    return [g for g, keep in zip(groups, sure, strict=True) if keep]
