"""Levels of a recording over time: 5 ms window power, bands, the noise floor and where it was heard.

Every function works on a mono float array (+-1.0) or on one value a 5 ms window; none knows of turns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import window_samples

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SILENCE_DB = -120.0
"""What an all-zero window counts as, so that levels stay finite."""
_OFFSET_BLOCK_S = 5.0
_RUMBLE_HZ = 65.0
_RUMBLE_FILTER_S = 0.08
_FRAME_WINDOWS = 4
_CHUNK_FRAMES = 4096
_CHUNK_SAMPLES = 1 << 20
_LOWEST_BAND_HZ = 90.0
_HIGHEST_BAND_HZ = 7600.0


def decibel(power: Floats | float) -> Floats:
    """Power (1.0 is a full-scale square wave) as dB, never below -120."""
    floor = 10 ** (SILENCE_DB / 10)
    return np.asarray(10 * np.log10(np.maximum(power, floor)), dtype=np.float64)


def windows_of(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` as rows of one 5 ms window each; the last row is padded with zeros."""
    width = window_samples(sample_rate)
    count = -(-samples.size // width)
    if samples.size == count * width:
        return samples.reshape(count, width)
    padded = np.zeros(count * width, dtype=np.float32)
    padded[: samples.size] = samples
    return padded.reshape(count, width)


def window_power(samples: NDArray[np.float32], sample_rate: int) -> Floats:
    """The mean square of each 5 ms window; a final partial window is averaged over what it holds."""
    rows = windows_of(samples, sample_rate)
    if rows.size == 0:
        return np.zeros(0)
    power: Floats = np.einsum("ij,ij->i", rows, rows, dtype=np.float64) / rows.shape[1]
    tail = samples.size - (rows.shape[0] - 1) * rows.shape[1]
    power[-1] *= rows.shape[1] / tail
    return power


def without_offset(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` less their constant (DC) offset, which is read where the channel is quietest.

    A high-pass filter would do the same but rings after a loud ending, and so would move it.
    """
    rows = windows_of(samples, sample_rate)
    if rows.shape[0] < 3:
        return samples
    means = rows[:-1].mean(axis=1, dtype=np.float64)
    spread = rows[:-1].var(axis=1, dtype=np.float64)
    per_block = max(1, round(_OFFSET_BLOCK_S * 200))
    blocks = -(-means.size // per_block)
    quiet = spread <= np.quantile(spread, 0.25)
    whole = float(np.median(means[quiet]))
    values = np.full(blocks, whole)
    for block in range(blocks):
        part = slice(block * per_block, (block + 1) * per_block)
        if np.count_nonzero(quiet[part]) >= 20:
            values[block] = np.median(means[part][quiet[part]])
    if float(np.max(np.abs(values))) < 1e-5:
        return samples
    if float(np.ptp(values)) < 1e-4:
        return np.asarray(samples - np.float32(whole), dtype=np.float32)
    centres = (np.arange(blocks) + 0.5) * per_block * window_samples(sample_rate)
    out = np.empty_like(samples)
    for start in range(0, samples.size, _CHUNK_SAMPLES):
        stop = min(start + _CHUNK_SAMPLES, samples.size)
        out[start:stop] = samples[start:stop] - np.interp(np.arange(start, stop), centres, values)
    return out


def without_rumble(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` less what lies below some 60 Hz (rumble, drift, the lowest mains hum), without a delay."""
    half = round(_RUMBLE_FILTER_S * sample_rate / 2)
    at = np.arange(-half, half + 1) / sample_rate
    kernel = np.sinc(2 * _RUMBLE_HZ * at) * np.hanning(2 * half + 3)[1:-1]
    kernel /= kernel.sum()
    size = 1 << max(15, (4 * kernel.size).bit_length())
    block = size - kernel.size + 1
    spectrum = np.fft.rfft(kernel, size)
    low = np.zeros(samples.size + 2 * half, dtype=np.float32)
    for start in range(0, samples.size, block):
        piece = np.fft.irfft(np.fft.rfft(samples[start : start + block], size) * spectrum, size)
        room = min(piece.size, low.size - start)
        low[start : start + room] += piece[:room].astype(np.float32)
    return np.asarray(samples - low[half : half + samples.size], dtype=np.float32)


def smooth(values: Floats, windows: int) -> Floats:
    """The centred moving average over `windows` (odd) entries of the first axis, fewer at the ends."""
    half = windows // 2
    total = np.cumsum(values, axis=0, dtype=np.float64)
    total = np.concatenate([np.zeros((1, *values.shape[1:])), total])
    index = np.arange(values.shape[0])
    low = np.maximum(index - half, 0)
    high = np.minimum(index + half + 1, values.shape[0])
    width = (high - low).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(np.maximum((total[high] - total[low]) / width, 0.0), dtype=np.float64)


def widened(mask: Mask, windows: int) -> Mask:
    """True also within `windows` entries of a true one."""
    if windows <= 0 or not mask.any():
        return mask
    total = np.concatenate([[0], np.cumsum(mask)])
    index = np.arange(mask.size)
    low = np.maximum(index - windows, 0)
    high = np.minimum(index + windows + 1, mask.size)
    return np.asarray(total[high] > total[low], dtype=np.bool_)


class Run(NamedTuple):
    """A stretch of windows, `stop` exclusive."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """How many windows it spans."""
        return self.stop - self.start


def runs_of(mask: Mask) -> list[Run]:
    """The stretches of true entries, in order."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [Run(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def joined(runs: list[Run], gap: int) -> list[Run]:
    """`runs` with every gap of at most `gap` windows closed."""
    out: list[Run] = []
    for run in runs:
        if out and run.start - out[-1].stop <= gap:
            out[-1] = Run(out[-1].start, run.stop)
        else:
            out.append(run)
    return out


class Split(NamedTuple):
    """Two classes of level, in dB: their means, and the level midway that parts them."""

    low: float
    high: float

    @property
    def cut(self) -> float:
        """The level that parts the two classes."""
        return (self.low + self.high) / 2


def two_levels(level_db: Floats) -> Split:
    """The quiet and the loud class of `level_db` (two-means, started from the extremes)."""
    low, high = float(np.quantile(level_db, 0.08)), float(np.max(level_db))
    for _ in range(30):
        cut = (low + high) / 2
        below, above = level_db[level_db <= cut], level_db[level_db > cut]
        if below.size == 0 or above.size == 0:
            break
        new = float(np.mean(below)), float(np.mean(above))
        if math.isclose(new[0], low, abs_tol=0.01) and math.isclose(new[1], high, abs_tol=0.01):
            break
        low, high = new
    return Split(low, high)


def band_power(samples: NDArray[np.float32], sample_rate: int) -> Floats:
    """Power in some twenty bands (rows: 5 ms windows, each seen through 20 ms centred on it).

    The bands are about equally wide to the ear, from 90 Hz to 7.6 kHz or to just below half the sample rate.
    """
    width = window_samples(sample_rate)
    frame = _FRAME_WINDOWS * width
    count = -(-samples.size // width)
    lead = (frame - width) // 2
    padded = np.zeros((count - 1) * width + frame, dtype=np.float32)
    padded[lead : lead + samples.size] = samples
    taper = np.hanning(frame + 2)[1:-1].astype(np.float32)
    scale = 2 / (frame * float(np.sum(taper.astype(np.float64) ** 2)))
    edges = _band_edges(sample_rate, frame)
    out = np.empty((count, edges.size - 1), dtype=np.float64)
    views = np.lib.stride_tricks.sliding_window_view(padded, frame)[::width]
    for start in range(0, count, _CHUNK_FRAMES):
        spectrum = np.fft.rfft(views[start : start + _CHUNK_FRAMES] * taper, axis=1)
        power = (spectrum.real**2 + spectrum.imag**2)[:, : edges[-1]]
        out[start : start + _CHUNK_FRAMES] = np.add.reduceat(power, edges[:-1], axis=1)
    return np.maximum(out * scale, 1e-14)


def band_centres(sample_rate: int) -> Floats:
    """The middle of each band of `band_power`, in Hz."""
    frame = _FRAME_WINDOWS * window_samples(sample_rate)
    edges = _band_edges(sample_rate, frame) * (sample_rate / frame)
    return np.asarray((edges[:-1] + edges[1:]) / 2, dtype=np.float64)


def low_and_high(samples: NDArray[np.float32], sample_rate: int) -> tuple[Floats, Floats]:
    """Power below 1.5 kHz and from 2.2 kHz up to 4 kHz, each for every 5 ms window (seen through 20 ms)."""
    bands = band_power(samples, sample_rate)
    centres = band_centres(sample_rate)
    low = bands[:, centres < 1500].sum(axis=1)
    return low, bands[:, (centres > 2200) & (centres < 4000)].sum(axis=1)


def share_above(samples: NDArray[np.float32], sample_rate: int, hertz: float, where: Mask) -> float:
    """The share of the power above `hertz` in windows where `where` is true (at most 2000 are looked at)."""
    width = window_samples(sample_rate)
    frame = _FRAME_WINDOWS * width
    starts = np.flatnonzero(where) * width
    starts = starts[starts + frame <= samples.size]
    if starts.size == 0:
        return 0.0
    starts = starts[:: max(1, starts.size // 2000)]
    taper = np.hanning(frame + 2)[1:-1]
    frames = samples[starts[:, None] + np.arange(frame)] * taper
    power = (np.abs(np.fft.rfft(frames, axis=1)) ** 2).sum(axis=0)
    above = np.arange(power.size) * sample_rate / frame >= hertz
    return float(power[above].sum() / max(float(power.sum()), 1e-30))


def _band_edges(sample_rate: int, frame: int) -> NDArray[np.intp]:
    """The first spectrum line of each band, and one past the last."""
    top = min(_HIGHEST_BAND_HZ, 0.48 * sample_rate)

    def ear(hz: float) -> float:
        return 2595 * math.log10(1 + hz / 700)

    marks = np.linspace(ear(_LOWEST_BAND_HZ), ear(top), 25)
    hertz = 700 * (10 ** (marks / 2595) - 1)
    return np.unique(np.round(hertz * frame / sample_rate).astype(np.intp))


def local_mean(values: Floats, mask: Mask, reach: int) -> Floats:
    """The mean of `values` (first axis: windows) over the windows in `mask` near each window.

    Near means about +-2 x `reach` windows; where the mask holds nothing near, the mean over the whole mask.
    The mask must hold at least one window.
    """
    block = max(1, reach)
    blocks = -(-mask.size // block)
    total = np.zeros((blocks, *values.shape[1:]))
    count = np.zeros(blocks)
    starts = np.arange(0, mask.size, block)
    weights = mask.astype(np.float64)
    shaped = weights.reshape(-1, *([1] * (values.ndim - 1)))
    total += np.add.reduceat(values * shaped, starts, axis=0)
    count += np.add.reduceat(weights, starts)
    kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.5) ** 2)
    near = np.zeros_like(total)
    seen = np.zeros_like(count)
    for shift, weight in zip(range(-4, 5), kernel, strict=True):
        src = slice(max(0, -shift), blocks - max(0, shift))
        dst = slice(max(0, shift), blocks - max(0, -shift))
        if src.start < src.stop:
            near[dst] += weight * total[src]
            seen[dst] += weight * count[src]
    whole = total.sum(axis=0) / count.sum()
    # The whole recording's mean weighs as much as a tenth of a second: it fills in where nothing is near.
    prior = 20.0
    mean = (near + prior * whole) / (seen + prior).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(np.repeat(mean, block, axis=0)[: mask.size], dtype=np.float64)
