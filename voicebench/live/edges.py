"""Where a person's speech began and ended, in the samples that were heard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.echo import RATE
from voicebench.audio.microphone import Capture
from voicebench.audio.presence import amplitude, present, threshold_for, window_samples
from voicebench.clock import NS_PER_MS, NS_PER_S

LOOK_BACK_MS = 600
"""So far before the detector's own estimate an edge is looked for."""
QUIET_TAIL_MS = 40
"""Right before the detector's stop it must be quiet, or the end cannot be told from noise."""
BRIDGE_MS = 150
"""A gap of so much inside a sound's beginning belongs to it."""
BACKDATED, REFINED = "the detector's stop less its silence", "the last 5 ms with sound before that"


@dataclass(frozen=True)
class Found:
    """An edge: its instant in ns, and whether the samples themselves show it."""

    at_ns: int
    refined: bool


def speech_end(capture: Capture, vad_stop_ns: int, stop_s: float) -> Found:
    """The end of speech that led to the detector's stop: the last 5 ms window with sound.

    Where sound goes on up to the stop (a noisy place), or none is found, it is the stop less `stop_s`.
    """
    dated = vad_stop_ns - round(stop_s * NS_PER_S)
    start = dated - LOOK_BACK_MS * NS_PER_MS
    first, heard = _heard(capture, start, vad_stop_ns)
    for flags in _windows(heard):
        tail = QUIET_TAIL_MS // 5
        if not flags.any() or flags[-tail:].any():
            continue
        end = (int(np.flatnonzero(flags)[-1]) + 1) * window_samples(RATE)
        return Found(capture.instant(first + end), True)
    return Found(dated, False)


def speech_start(capture: Capture, vad_start_ns: int, start_s: float) -> Found:
    """The beginning of the speech that the detector announced: where the sound before it begins."""
    dated = vad_start_ns - round(start_s * NS_PER_S)
    first, heard = _heard(capture, dated - LOOK_BACK_MS * NS_PER_MS, vad_start_ns)
    for flags in _windows(heard):
        sounding = np.flatnonzero(flags)
        if not sounding.size or sounding[0] == 0:
            continue
        gaps = np.flatnonzero(np.diff(sounding) > BRIDGE_MS // 5)
        begin = int(sounding[gaps[-1] + 1]) if gaps.size else int(sounding[0])
        return Found(capture.instant(first + begin * window_samples(RATE)), True)
    return Found(dated, False)


def _heard(capture: Capture, start_ns: int, end_ns: int) -> tuple[int, NDArray[np.float32]]:
    first, pcm = capture.between(capture.sample_at(start_ns), capture.sample_at(end_ns), clean=True)
    return first, pcm.astype(np.float32) / np.float32(32768.0)


def _windows(heard: NDArray[np.float32]) -> list[NDArray[np.bool_]]:
    """For each 5 ms window: is there sound? By the fixed threshold, then by one for quiet channels."""
    quiet = threshold_for(heard, quiet=True)
    limits = [amplitude(-45.0)] + ([quiet] if quiet < amplitude(-45.0) else [])
    return [present(heard, RATE, limit) for limit in limits]
