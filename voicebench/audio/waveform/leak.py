"""One channel heard on the other: echo of the agent in the user's microphone, cross-talk on the line.

The leak is found by correlating the channels where one side speaks and the other is quieter, then estimated
as a short filter and subtracted. What may be left of it becomes a masker, so that it makes no turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import WINDOW_MS, window_samples
from voicebench.audio.waveform.findings import Leak
from voicebench.audio.waveform.levels import (
    Floats,
    Mask,
    decibel,
    smooth,
    two_levels,
    window_power,
    without_offset,
)

Samples = NDArray[np.float32]

LONGEST_DELAY_S = 0.35
"""An echo later than this is not looked for."""
_FRAME_S = 0.5
_LEAD_S = 0.002
_FILTER_S = 0.12
_MOST_TAPS = 2000
_LEAST_FRAMES = 3
_MOST_FRAMES = 300
_SOURCE_SHARE = 0.6
_PEAK_RATIO = 6.0
_RIDGE = 1e-4
_LEAST_GAIN_DB = 1.5
_HANGOVER_MS = 60.0
_MASK_MARGIN = 6.0


class Removed(NamedTuple):
    """A channel with the other's leak taken out, the power that may be left of it, and what was found."""

    samples: Samples
    masker: Floats
    found: Leak


def remove_leak(source: Samples, sink: Samples, sample_rate: int, name: str) -> Removed | None:
    """`sink` without what leaks into it from `source` (named `name`); None where nothing does.

    Both are mono and equally long. A leak is weaker than its source and 0 to 350 ms late. It is believed only
    where one delay stands out of all, and subtracting it takes away at least 1.5 dB of the sink's power in
    the windows where only the source speaks. `masker` has one power for each 5 ms window.
    """
    source = without_offset(source, sample_rate)
    sink = without_offset(sink, sample_rate)
    source_power, sink_power = window_power(source, sample_rate), window_power(sink, sample_rate)
    frames = _frames_led(source_power, sink_power, sample_rate)
    if frames.size < _LEAST_FRAMES:
        return None
    delay = _delay(source, sink, frames, sample_rate)
    if delay is None:
        return None
    found = _subtracted(source, sink, frames, delay, sample_rate)
    better = _frames_alone(found, sink_power, frames, sample_rate)
    if better.size >= _LEAST_FRAMES:
        found = _subtracted(source, sink, better, delay, sample_rate)
    left, heard = found
    heard_power, left_power = window_power(heard, sample_rate), window_power(left, sample_rate)
    alone = _alone(heard_power, sink_power)
    if np.count_nonzero(alone) < 50:
        return None
    gain_db = float(decibel(float(sink_power[alone].sum())) - decibel(float(left_power[alone].sum())))
    if gain_db < _LEAST_GAIN_DB:
        return None
    # The share of the heard leak that the subtraction leaves, in the worst tenth of the windows.
    floor = float(np.quantile(sink_power, 0.1))
    share = float(np.quantile(np.maximum(left_power[alone] - floor, 0) / heard_power[alone], 0.9))
    level = float(decibel(float(heard_power.sum())) - decibel(float(source_power.sum())))
    masker = max(share, 1e-3) * _MASK_MARGIN * _held(heard_power, round(_HANGOVER_MS / WINDOW_MS))
    return Removed(left, masker, Leak(name, max(0.0, delay / sample_rate * 1000), level))


def _frames_led(source: Floats, sink: Floats, sample_rate: int) -> NDArray[np.intp]:
    """First samples of half-second frames in which the source speaks and the sink is at least 3 dB weaker."""
    per_frame = round(_FRAME_S * 1000 / WINDOW_MS)
    tail = round(LONGEST_DELAY_S * 1000 / WINDOW_MS)
    margin = round(_FILTER_S * 1000 / WINDOW_MS) + 2
    last = source.size - per_frame - tail - margin
    if last <= margin:
        return np.zeros(0, dtype=np.intp)
    level = decibel(smooth(source, 21))
    speaking = np.concatenate([[0], np.cumsum(level > two_levels(level).cut)])
    source_sum = np.concatenate([[0], np.cumsum(source)])
    sink_sum = np.concatenate([[0], np.cumsum(sink)])
    starts = np.arange(margin, last, per_frame // 2)
    share = (speaking[starts + per_frame] - speaking[starts]) / per_frame
    loud = (source_sum[starts + per_frame] - source_sum[starts]) / per_frame
    other = (sink_sum[starts + per_frame + tail] - sink_sum[starts]) / (per_frame + tail)
    chosen = starts[(share > _SOURCE_SHARE) & (other < 0.5 * loud) & (other > 1e-11)]
    step = max(1, -(-chosen.size // _MOST_FRAMES))
    return np.asarray(chosen[::step] * window_samples(sample_rate), dtype=np.intp)


def _delay(source: Samples, sink: Samples, frames: NDArray[np.intp], sample_rate: int) -> int | None:
    """The delay in samples that stands out in the correlation of all frames (phase transform), or None."""
    length, reach = round(_FRAME_S * sample_rate), round(LONGEST_DELAY_S * sample_rate)
    size = 1 << (length + reach - 1).bit_length()
    total = np.zeros(size // 2 + 1, dtype=np.complex128)
    taper = np.hanning(length)
    for start in frames:
        a = np.fft.rfft(source[start : start + length] * taper, size)
        b = np.fft.rfft(sink[start : start + length + reach], size)
        cross = np.conj(a) * b
        total += cross / (np.abs(cross) + 1e-12)
    correlation = np.abs(np.fft.irfft(total, size)[:reach])
    peak = int(np.argmax(correlation))
    if correlation[peak] < _PEAK_RATIO * float(np.sqrt(np.mean(correlation**2))):
        return None
    return peak


def _response(
    source: Samples, sink: Samples, frames: NDArray[np.intp], delay: int, sample_rate: int
) -> Floats:
    """The leak's impulse response from `delay` on, by least squares over the frames.

    With a tapered source x' the normal equations are sums of x'(t) x(t + m), which depend on m alone, so they
    hold exactly for each frame, whatever happens outside it.
    """
    taps, length = min(round(_FILTER_S * sample_rate), _MOST_TAPS), round(_FRAME_S * sample_rate)
    size = 1 << (length + 2 * taps).bit_length()
    taper = np.hanning(length)
    auto, cross = np.zeros(2 * taps - 1), np.zeros(taps)
    for start in frames:
        inner = np.conj(np.fft.rfft(source[start : start + length] * taper, size))
        around = source[start - taps + 1 : start + length + taps - 1].astype(np.float64)
        late = sink[start + delay : start + delay + length + taps - 1].astype(np.float64)
        auto += np.fft.irfft(inner * np.fft.rfft(around, size), size)[: 2 * taps - 1]
        cross += np.fft.irfft(inner * np.fft.rfft(late, size), size)[:taps]
    index = np.arange(taps)
    matrix = auto[taps - 1 + index[:, None] - index[None, :]]
    matrix[index, index] += _RIDGE * auto[taps - 1]
    return np.asarray(np.linalg.solve(matrix, cross), dtype=np.float64)


def _subtracted(
    source: Samples, sink: Samples, frames: NDArray[np.intp], delay: int, sample_rate: int
) -> tuple[Samples, Samples]:
    """The sink less the leak estimated over the frames, and that leak."""
    begin = max(0, delay - round(_LEAD_S * sample_rate))
    response = _response(source, sink, frames, begin, sample_rate)
    heard = np.zeros(sink.size, dtype=np.float32)
    size = 1 << max(14, (4 * response.size).bit_length())
    block = size - response.size + 1
    spectrum = np.fft.rfft(response, size)
    for start in range(0, source.size, block):
        piece = np.fft.irfft(np.fft.rfft(source[start : start + block], size) * spectrum, size)
        at = start + begin
        room = min(piece.size, max(0, heard.size - at))
        heard[at : at + room] += piece[:room].astype(np.float32)
    return np.asarray(sink - heard, dtype=np.float32), heard


def _frames_alone(
    found: tuple[Samples, Samples], sink: Floats, frames: NDArray[np.intp], sample_rate: int
) -> NDArray[np.intp]:
    """Of the frames, those in which the sink holds little but the leak."""
    width = window_samples(sample_rate)
    span = round((_FRAME_S + LONGEST_DELAY_S) * 1000 / WINDOW_MS)
    left = np.concatenate([[0], np.cumsum(window_power(found[0], sample_rate))])
    whole = np.concatenate([[0], np.cumsum(sink)])
    first = frames // width
    last = np.minimum(first + span, sink.size)
    share = (left[last] - left[first]) / np.maximum(whole[last] - whole[first], 1e-20)
    return np.asarray(frames[share <= max(0.1, float(np.median(share)))], dtype=np.intp)


def _alone(heard: Floats, sink: Floats) -> Mask:
    """Windows in which the sink is about as loud as the leak alone would make it."""
    around, there = smooth(heard, 21), smooth(sink, 21)
    floor = float(np.quantile(there, 0.1))
    return np.asarray((heard > 4 * floor + 1e-10) & (there < 4 * (around + floor)), dtype=np.bool_)


def _held(power: Floats, count: int) -> Floats:
    """The highest power of the last `count` windows and the next one."""
    padded = np.concatenate([np.zeros(count), power, np.zeros(1)])
    return np.asarray(
        np.lib.stride_tricks.sliding_window_view(padded, count + 2).max(axis=1), dtype=np.float64
    )
