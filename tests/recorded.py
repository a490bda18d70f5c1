"""Small recordings on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray


def write_wav(path: Path, samples: NDArray[np.int16], sample_rate: int = 16_000) -> Path:
    """Write mono samples as a WAV file and return its path."""
    soundfile.write(path, samples, sample_rate, subtype="PCM_16")
    return path
