"""Single edges of a recording, for a harness that needs one instant rather than a whole conversation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.waveform.detect import segments
from voicebench.audio.waveform.findings import Edge


def speech_end(samples: NDArray[np.float32], sample_rate: int) -> Edge | None:
    """The last sound of the speech in a recording of one speaker (mono, float +-1.0); None without speech.

    Clicks, breaths and constant noise are no speech. Raises ValueError as `segments` does.
    """
    found = segments(samples, sample_rate).segments
    if not found:
        return None
    last = found[-1]
    if last.end_s >= samples.size / sample_rate - 1e-9:
        return Edge(last.end_s, last.end_uncertainty_ms, False, "recording_ends")
    return Edge(last.end_s, last.end_uncertainty_ms, last.certain, last.reason)


def first_sound(samples: NDArray[np.float32], sample_rate: int, after_s: float = 0.0) -> Edge | None:
    """The first onset of speech at or after `after_s` seconds, on one side's channel; None where none comes.

    Speech already going on at `after_s` began before: its onset is not the one asked for. The next onset is
    then returned, as not certain (`already_sounding`). Raises ValueError as `segments` does.
    """
    found = segments(samples, sample_rate).segments
    going = any(s.start_s < after_s < s.end_s for s in found)
    for segment in found:
        if segment.start_s >= after_s:
            reason = "already_sounding" if going else segment.reason
            return Edge(segment.start_s, segment.start_uncertainty_ms, segment.certain and not going, reason)
    return None
