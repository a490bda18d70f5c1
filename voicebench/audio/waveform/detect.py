"""Speech segments of one channel, from its samples alone.

Where the background stays below the presence rule's threshold, the edges are that rule's own (5 ms windows).
Where it does not, each window is compared with the background band by band: voiced sounds stand out in a few
low bands, hissing ones in a few high bands, long before they stand out in the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import THRESHOLD_DBFS, window_samples
from voicebench.audio.waveform.channel import (
    LEAST_CONTRAST_DB,
    SHORTEST_MS,
    Island,
    Levels,
    channel_levels,
)
from voicebench.audio.waveform.findings import Analysis, Caveat, Segment
from voicebench.audio.waveform.islands import find_islands, plain_islands
from voicebench.audio.waveform.judging import is_gated, judged
from voicebench.audio.waveform.levels import Floats, decibel, smooth

BRIDGE_MS = 350.0
"""A pause of at most this inside one speaker's speech does not end the utterance."""
_GATED_MS = 300.0
_SPEECH_SPREAD_DB = 14.0
_LOW_SNR_DB = 5.0
_ECHO_SUSPECT = 4.0


def segments(
    samples: NDArray[np.float32],
    sample_rate: int,
    *,
    bridge_ms: float = BRIDGE_MS,
    shortest_ms: float = SHORTEST_MS,
    masker: Floats | None = None,
) -> Analysis:
    """The utterances in mono `samples` (float, +-1.0) at `sample_rate` Hz.

    Pauses of at most `bridge_ms` are closed (up to 200 ms always, as plosives close so long). Isolated sounds
    of less than `shortest_ms` are dropped, as are breaths, and what is 30 dB below the channel's speech.
    `masker` is a power for each 5 ms window that is not this speaker's (what is left of an echo):
    only windows above it count. No speech gives no segments and a caveat (`silent` or `no_speech`). Raises
    ValueError for a sample rate of 0 or less, an array that is not one-dimensional, or samples that are not
    finite.
    """
    checked(samples, sample_rate)
    duration = samples.size / sample_rate
    levels = channel_levels(np.asarray(samples, dtype=np.float32), sample_rate)
    if levels is None:
        code, text = ("silent", "silent throughout")
        return Analysis(
            (), sample_rate, duration, -120.0, THRESHOLD_DBFS, None, False, {}, (Caveat(code, text),)
        )
    flat = levels.split.high - levels.split.low < LEAST_CONTRAST_DB
    if flat and _spread_db(levels) < _SPEECH_SPREAD_DB:
        caveat = Caveat("no_speech", "no speech found; nothing stands out from the background")
        return Analysis(
            (), sample_rate, duration, levels.floor_db, levels.threshold_db, None, True, {}, (caveat,)
        )
    if flat:
        # Speech from end to end: no pause tells what its background is.
        threshold_db, noisy = levels.threshold_db, False
        islands = [
            island._replace(reason="no_background")
            for island in plain_islands(levels, sample_rate, threshold_db, masker)
        ]
    else:
        islands, threshold_db, noisy = find_islands(levels, sample_rate, masker)
    kept, dropped = judged(islands, levels, sample_rate, shortest_ms, noisy)
    gated = is_gated(kept, levels)
    if gated:
        kept = [
            island._replace(reason="gated_noise", start_doubt_ms=_GATED_MS, end_doubt_ms=_GATED_MS)
            for island in kept
        ]
    found = bridged(as_segments(kept, levels, sample_rate, masker), bridge_ms)
    speech = [s.level_dbfs for s in found]
    snr = max(speech) - levels.floor_db if speech else None
    caveats: list[Caveat] = []
    if not found:
        caveats.append(Caveat("no_speech", "no speech found; no sound is long and loud enough"))
    if gated:
        text = "a noise gate opens and closes with the speech: its noise hides the edges"
        caveats.append(Caveat("gated_noise", text, len(kept)))
    if found and noisy:
        caveats.append(
            Caveat(
                "noisy",
                f"the background is at {levels.floor_db:.0f} dBFS: the ends of speech are known to "
                f"{max(s.end_uncertainty_ms for s in found):.0f} ms",
            )
        )
    return Analysis(
        found,
        sample_rate,
        duration,
        levels.floor_db,
        threshold_db,
        snr,
        noisy,
        dropped,
        tuple(caveats),
    )


def _spread_db(levels: Levels) -> float:
    """How far levels over 25 ms range from quiet to loud: speech 17 dB and more, noise up to 11."""
    low, high = np.quantile(decibel(smooth(levels.power, 5)), [0.05, 0.95])
    return float(high - low)


def checked(samples: NDArray[np.float32], sample_rate: int) -> None:
    """Raise ValueError unless `samples` is one finite channel and `sample_rate` a positive number."""
    if sample_rate <= 0:
        raise ValueError(f"the sample rate is {sample_rate}; it must be positive")
    if samples.ndim != 1:
        raise ValueError(
            f"one channel is wanted, as a one-dimensional array; this one has shape {samples.shape}"
        )
    if not bool(np.isfinite(samples).all()):
        raise ValueError("some samples are not finite numbers")


def as_segments(
    islands: list[Island], levels: Levels, sample_rate: int, masker: Floats | None
) -> list[Segment]:
    """Each island as a segment in seconds, with what is doubtful about it."""
    width = window_samples(sample_rate)
    found: list[Segment] = []
    for island in islands:
        start, stop = island.run
        power = float(np.mean(levels.power[start:stop]))
        level = float(decibel(power))
        reason = island.reason
        if level - levels.floor_db < _LOW_SNR_DB:
            reason = "low_snr"
        if masker is not None and power < _ECHO_SUSPECT * float(np.mean(masker[start:stop])):
            reason = "echo_suspect"
        found.append(
            Segment(
                start_s=start * width / sample_rate,
                end_s=min(stop * width, levels.samples.size) / sample_rate,
                level_dbfs=level,
                certain=not reason,
                reason=reason,
                start_uncertainty_ms=island.start_doubt_ms,
                end_uncertainty_ms=island.end_doubt_ms,
            )
        )
    return found


def bridged(found: Sequence[Segment], bridge_ms: float) -> tuple[Segment, ...]:
    """Segments at most `bridge_ms` apart as one, whose level is the mean of its parts."""
    out: list[Segment] = []
    for part in found:
        if not out or (part.start_s - out[-1].end_s) * 1000 > bridge_ms:
            out.append(part)
            continue
        whole = out[-1]
        energy = sum(s.duration_s * 10 ** (s.level_dbfs / 10) for s in (whole, part))
        out[-1] = Segment(
            start_s=whole.start_s,
            end_s=part.end_s,
            level_dbfs=float(decibel(energy / (whole.duration_s + part.duration_s))),
            certain=whole.certain and part.certain,
            reason=whole.reason or part.reason,
            start_uncertainty_ms=whole.start_uncertainty_ms,
            end_uncertainty_ms=part.end_uncertainty_ms,
        )
    return tuple(out)
