"""From one sample rate to another while the sound goes on, with a delay of about a millisecond.

Files are resampled with soxr; its streams hold back 10 to 40 ms, which a conversation would hear.
"""

from __future__ import annotations

from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ZEROS = 16
"""Zero crossings of the kernel on each side."""
_BETA = 8.0


class RateConverter:
    """Polyphase windowed-sinc conversion of one channel. Sample m that comes out sounds at m / to_rate s.

    It holds back `delay_s` seconds: the kernel's half. Raises ValueError for a rate that is not positive.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        if from_rate <= 0 or to_rate <= 0:
            raise ValueError(f"sample rates must be positive, not {from_rate} -> {to_rate}")
        self.from_rate, self.to_rate = from_rate, to_rate
        common = gcd(from_rate, to_rate)
        self._up, self._down = to_rate // common, from_rate // common
        cutoff = min(1.0, to_rate / from_rate)
        self._half = ceil(_ZEROS / cutoff)
        offsets = np.arange(1 - self._half, self._half + 1, dtype=np.float64)
        phases = np.arange(self._up, dtype=np.float64)[:, None] / self._up
        distance = offsets[None, :] - phases
        window = np.i0(_BETA * np.sqrt(np.clip(1 - (distance / self._half) ** 2, 0, None))) / np.i0(_BETA)
        kernel = np.sinc(distance * cutoff * 0.95) * window
        self._kernel = (kernel / kernel.sum(axis=1, keepdims=True)).astype(np.float32)
        self._same = from_rate == to_rate
        self.reset()

    @property
    def delay_s(self) -> float:
        """Seconds of sound that are held back."""
        return 0.0 if self._same else self._half / self.from_rate

    def reset(self) -> None:
        """Begin anew: the next sample is number 0."""
        self._held: Floats = np.zeros(self._half - 1, dtype=np.float32)
        self._base = 1 - self._half
        """The number of the first held sample."""
        self._made = 0

    def push(self, samples: Floats) -> Floats:
        """Convert what came; gives what can be given by now."""
        if self._same:
            return samples
        held = np.concatenate((self._held, samples.astype(np.float32, copy=False)))
        last = self._base + held.size - 1
        end = ((last - self._half + 1) * self._up - 1) // self._down + 1
        if end <= self._made:
            self._held = held
            return np.zeros(0, dtype=np.float32)
        places = np.arange(self._made, end, dtype=np.int64) * self._down
        starts = places // self._up + 1 - self._half - self._base
        windows = np.lib.stride_tricks.sliding_window_view(held, 2 * self._half)[starts]
        made: Floats = np.einsum("ij,ij->i", windows, self._kernel[places % self._up]).astype(np.float32)
        self._made = end
        needed = end * self._down // self._up + 1 - self._half
        drop = max(0, min(needed - self._base, held.size))
        self._held, self._base = held[drop:], self._base + drop
        return made
