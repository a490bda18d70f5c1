"""A decoded audio file, and the codes of what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

ClipCaveat = Literal[
    "wav_length",
    "trailing_bytes",
    "cut_short",
    "non_finite",
    "over_full_scale",
    "clipped",
    "antiphase",
    "one_channel",
]
"""What a listener to the figures should know about a clip that was read nevertheless.

- `wav_length`: the WAV header's length is unknown or wrong; the file was read to its end.
- `trailing_bytes`: bytes that belong to nothing, or in Ogg to another recording, follow the sound; they were
  left out.
- `cut_short`: the decoder stopped before the announced end; what had come until then is the clip.
- `non_finite`: some samples were NaN or infinite; they were set to 0.
- `over_full_scale`: some samples lie beyond +-1.0; they stay so, and saturate in 16-bit PCM.
- `clipped`: runs of samples sit at full scale: the recording was overdriven.
- `antiphase`: the channels cancel each other; mixing to mono takes the louder one instead.
- `one_channel`: nearly all sound is in one channel; mixing to mono takes that one, at its own level.
"""


@dataclass(frozen=True, eq=False)
class Clip:
    """The sound of one file, decoded.

    `samples` has the shape (frames, channels), float32, full scale +-1.0 (float files may lie beyond); all
    values are finite and there is at least one frame. `sample_rate` is the file's own, in Hz. `container`
    and `codec` are the names that the decoding library gives, for records and messages. Two clips are equal
    only where they are the same object.
    """

    samples: Samples
    sample_rate: int
    source: Path
    container: str
    codec: str
    caveats: tuple[ClipCaveat, ...] = ()

    @property
    def frames(self) -> int:
        """The number of samples in each channel."""
        return int(self.samples.shape[0])

    @property
    def channels(self) -> int:
        """The number of channels."""
        return int(self.samples.shape[1])

    @property
    def duration_s(self) -> float:
        """The length in seconds."""
        return self.frames / self.sample_rate
