"""Is what the microphone hears the agent's own voice? Decided every 20 ms against what is being played.

An echo follows its source: in the samples themselves where the path is short and clear, in the course of the
level where a room has smeared it. How much weaker it is, once seen, tells later echoes at once. A person who
speaks over the agent is louder than that and follows nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RATE = 16_000
FRAME = 320
WINDOW = 3_200
"""200 ms of the microphone are compared."""
AHEAD = 640
LONGEST_DELAY = 4_800
"""The echo comes up to 300 ms after the sound, by our clocks at most 40 ms before it."""
REFERENCE = WINDOW + LONGEST_DELAY + AHEAD
"""So many samples of what is played a decision looks at."""

_SILENT_DB = -60.0
_AGENT_SOUNDS_DB = -50.0
_SAME_SHARE = 0.6
"""So much of the microphone's energy must be the delayed source's."""
_LIKE = 0.85
"""So closely must the levels follow each other: two people's hardly ever do by 0.75."""
_WEAKER_DB = 6.0
_MARGIN_DB = 6.0
_AT_FIRST_DB = 10.0
_AT_FIRST = 15
_SPEAKING = 2
"""So many frames in a row above the echo are a person;"""
_HOLD = 15
"""so many more frames then pass, since the quiet parts of words belong to them."""
_BEFORE, _AFTER = 480, 2_400
"""Around a known delay the source is looked at so far ahead, and as far back as a room rings."""
"""For so many frames after the agent began, what is far weaker than it is held for an echo unseen."""
_LEVEL = 80
_LEVELS_COMPARED = 100


class EchoGate:
    """Judges frame by frame. `coupling_db` is how loud the echo is beside its source; None: none was seen."""

    def __init__(self) -> None:
        self.coupling_db: float | None = None
        self.gated = 0
        """Frames that were echo."""
        self._heard: Floats = np.zeros(_LEVEL * _LEVELS_COMPARED, dtype=np.float32)
        self._past: Floats = np.zeros(0, dtype=np.float32)
        self._sounding = 0
        self._delay: int | None = None
        """Where the echo's source ends, in samples before the reference's end."""
        self._above = 0
        self._hold = 0

    def is_echo(self, frame: Floats, reference: Floats) -> bool:
        """Is this frame (320 samples at 16 kHz) echo?

        `reference` are the last `REFERENCE` samples of what is played, at the same rate, its end 40 ms after
        the frame's.
        """
        self._heard = np.concatenate((self._heard[frame.size :], frame))
        loudest = _loudest_db(reference)
        if loudest < _AGENT_SOUNDS_DB:
            self._sounding = 0
            self._past = np.zeros(0, dtype=np.float32)
            return False
        self._sounding += 1
        self._past = np.concatenate((self._past, reference[-frame.size :]))[-_LEVEL * _LEVELS_COMPARED * 2 :]
        level = _db(frame)
        if level < _SILENT_DB:
            return False
        found = self._seen(reference)
        if found is not None:
            old = self.coupling_db
            self.coupling_db = found if old is None else 0.8 * old + 0.2 * found
            self._above = self._hold = 0
        elif self._passes(level, loudest, reference):
            return False
        self.gated += 1
        return True

    def _passes(self, level: float, loudest: float, reference: Floats) -> bool:
        """Does a frame pass that does not follow the source?"""
        if self.coupling_db is None:
            return self._sounding > _AT_FIRST or level > loudest - _AT_FIRST_DB
        if self._delay is not None:
            end = reference.size - self._delay
            near = reference[max(0, end - FRAME - _AFTER) : end + _BEFORE]
            loudest = _loudest_db(near)
        above = level > loudest + self.coupling_db + _MARGIN_DB
        self._above = self._above + 1 if above else 0
        if self._above >= _SPEAKING:
            self._hold = _HOLD
        elif self._hold:
            self._hold -= 1
        return above or self._hold > 0

    def _seen(self, reference: Floats) -> float | None:
        """How many dB louder than the source the microphone is, where it clearly follows it."""
        window = self._heard[-WINDOW:]
        energy = float(np.dot(window, window))
        size = 1 << (REFERENCE + WINDOW - 1).bit_length()
        product = np.fft.rfft(reference, size) * np.conj(np.fft.rfft(window, size))
        lags = REFERENCE - WINDOW + 1
        cross = np.fft.irfft(product, size)[:lags]
        sums = np.concatenate(([0.0], np.cumsum(reference.astype(np.float64) ** 2)))
        sources = sums[WINDOW:] - sums[:-WINDOW]
        usable = sources > energy * 10 ** (_WEAKER_DB / 10)
        if energy <= 0 or not usable.any():
            return None
        share = np.where(usable, cross**2 / np.maximum(sources * energy, 1e-12), 0.0)
        best = int(np.argmax(share))
        if share[best] >= _SAME_SHARE:
            self._delay = REFERENCE - WINDOW - best
            return 10 * float(np.log10(energy / sources[best]))
        return self._follows()

    def _follows(self) -> float | None:
        """The same by the course of the levels over half a second, once the agent has spoken that long."""
        course = _levels(self._heard)
        there = _levels(self._past)
        if there.size < _LEVELS_COMPARED + 8:
            return None
        here = _standardised(course)
        for back in range(min(68, there.size - _LEVELS_COMPARED) + 1):
            end = there.size - back
            part = there[end - _LEVELS_COMPARED : end]
            weaker = float(np.mean(course) - np.mean(part))
            if weaker < -_WEAKER_DB and float(np.mean(here * _standardised(part))) > _LIKE:
                self._delay = back * _LEVEL
                return weaker
        return None


def _db(samples: Floats) -> float:
    return 10 * float(np.log10(np.mean(samples.astype(np.float64) ** 2) + 1e-12))


def _levels(samples: Floats) -> NDArray[np.float64]:
    """The level in dB of each 5 ms, smoothed over 25 ms."""
    whole = samples.size // _LEVEL
    if whole < 5:
        return np.zeros(0)
    power = np.mean(samples[-whole * _LEVEL :].reshape(whole, _LEVEL).astype(np.float64) ** 2, axis=1)
    return np.asarray(10 * np.log10(np.convolve(power, np.full(5, 0.2), mode="same") + 1e-9))


def _loudest_db(samples: Floats) -> float:
    """The loudest 20 ms, in dBFS."""
    whole = samples.size // FRAME
    power = np.mean(samples[-whole * FRAME :].reshape(whole, FRAME).astype(np.float64) ** 2, axis=1)
    return 10 * float(np.log10(power.max() + 1e-12))


def _standardised(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(levels.std())
    return np.asarray((levels - levels.mean()) / max(spread, 3.0))
