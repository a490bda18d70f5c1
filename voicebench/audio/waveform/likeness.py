"""Utterances that are the other side's, heard late and weaker, by the course of their level alone.

A linear filter cannot describe an echo whose delay wanders or that a codec has mangled; its rise and fall
still follows its source's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import WINDOW_MS, window_samples
from voicebench.audio.waveform.findings import Segment
from voicebench.audio.waveform.leak import LONGEST_DELAY_S
from voicebench.audio.waveform.levels import SILENCE_DB, Floats, decibel, smooth, window_power, without_offset

_LIKE = 0.85
"""Echoes of speech correlate by 0.85 and more, speech of two people over a second hardly ever by 0.75."""
_SHORTEST_S = 0.5
_WEAKER_DB = 6.0
_RANGE_DB = 45.0


def level_course(samples: NDArray[np.float32], sample_rate: int) -> Floats:
    """The level in dB of each 5 ms window, averaged over 25 ms."""
    return decibel(smooth(window_power(without_offset(samples, sample_rate), sample_rate), 5))


def is_echo(segment: Segment, sink: Floats, source: Floats, sample_rate: int) -> bool:
    """Does the level in `segment` follow the source's, 0 to 350 ms late and at least 6 dB weaker?

    `sink` and `source` are the `level_course` of the segment's own channel and of the other. Segments of less
    than half a second are too short to tell and give False.
    """
    width = window_samples(sample_rate)
    first = round(segment.start_s * sample_rate / width)
    last = min(round(segment.end_s * sample_rate / width), sink.size)
    if (last - first) * WINDOW_MS < _SHORTEST_S * 1000:
        return False
    here = _standardised(sink[first:last])
    weight = sink[first:last] > sink[first:last].max() - 20
    for lag in range(min(round(LONGEST_DELAY_S * 1000 / WINDOW_MS), first) + 1):
        there = source[first - lag : last - lag]
        if float(np.mean(there[weight])) - float(np.mean(sink[first:last][weight])) < _WEAKER_DB:
            continue
        if float(np.mean(here * _standardised(there))) > _LIKE:
            return True
    return False


def could_be_echo(segment: Segment, sink: Floats, source: Floats, sample_rate: int) -> bool:
    """Was the source at least 6 dB louder within the last 350 ms during most of `segment`?"""
    width = window_samples(sample_rate)
    first = round(segment.start_s * sample_rate / width)
    last = min(round(segment.end_s * sample_rate / width), sink.size)
    reach = round(LONGEST_DELAY_S * 1000 / WINDOW_MS)
    heard = source[max(0, first - reach) : last]
    if last <= first:
        return False
    padded = np.concatenate([np.full(last - first + reach - heard.size, SILENCE_DB), heard])
    loudest = np.lib.stride_tricks.sliding_window_view(padded, reach + 1).max(axis=1)[: last - first]
    return bool(np.mean(loudest > sink[first:last] + _WEAKER_DB) > 0.5)


def _standardised(level: Floats) -> Floats:
    """`level` limited to the 45 dB below its maximum, with mean 0 and standard deviation 1."""
    limited = np.maximum(level, level.max() - _RANGE_DB)
    return np.asarray((limited - limited.mean()) / max(float(limited.std()), 1e-6), dtype=np.float64)
