"""Speech segments of one channel, from its samples alone.

Where the background stays below the presence rule's threshold, the edges are that rule's own (5 ms windows).
Where it does not, each window is compared with the background band by band: voiced sounds stand out in a few
low bands, hissing ones in a few high bands, long before they stand out in the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.presence import (
    THRESHOLD_DBFS,
    WINDOW_MS,
    amplitude,
    present,
    threshold_for,
    window_samples,
)
from voicebench.audio.waveform.channel import (
    HISS_DB,
    ISLAND_MS,
    SHORTEST_MS,
    Island,
    Levels,
    channel_levels,
    windows,
)
from voicebench.audio.waveform.findings import Analysis, Caveat, Segment
from voicebench.audio.waveform.levels import (
    Floats,
    Mask,
    decibel,
    joined,
    low_and_high,
    runs_of,
    smooth,
)
from voicebench.audio.waveform.noisy import noisy_islands

BRIDGE_MS = 350.0
"""A pause of at most this inside one speaker's speech does not end the utterance."""
_LEAST_CONTRAST_DB = 6.0
_QUIET_ISLAND_DB = 30.0
_RAISE_DB = 3.0
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
    of less than `shortest_ms` are dropped, as are isolated ones 30 dB below the channel's speech (breaths,
    rustling). `masker` is a power for each 5 ms window that is not this speaker's (what is left of an echo):
    only windows above it count. No speech gives no segments and a caveat (`silent` or `no_speech`). Raises
    ValueError for a sample rate of 0 or less, an array that is not one-dimensional, or samples that are not
    finite.
    """
    checked(samples, sample_rate)
    duration = samples.size / sample_rate
    levels = channel_levels(np.asarray(samples, dtype=np.float32), sample_rate)
    if levels is None:
        code, text = ("silent", "the channel is silent")
        return Analysis(
            (), sample_rate, duration, -120.0, THRESHOLD_DBFS, None, False, {}, (Caveat(code, text),)
        )
    threshold_db = float(decibel(threshold_for(np.asarray([levels.peak], np.float32), quiet=True) ** 2))
    contrast = levels.split.high - levels.split.low
    if contrast < _LEAST_CONTRAST_DB:
        caveat = Caveat("no_speech", "nothing stands out from the background: no speech was found")
        return Analysis((), sample_rate, duration, levels.floor_db, threshold_db, None, True, {}, (caveat,))

    noisy = levels.noise_high_db + 1 > threshold_db + _RAISE_DB
    if noisy:
        islands = noisy_islands(levels, sample_rate, threshold_db, masker)
    else:
        threshold_db = max(threshold_db, levels.noise_high_db + 1)
        islands = plain_islands(levels, sample_rate, threshold_db, masker)
    kept, dropped = judged(islands, levels, shortest_ms)
    found = bridged(as_segments(kept, levels, sample_rate, masker), bridge_ms)
    speech = [s.level_dbfs for s in found]
    snr = max(speech) - levels.floor_db if speech else None
    caveats: list[Caveat] = []
    if not found:
        caveats.append(Caveat("no_speech", "no sound on the channel is long and loud enough to be speech"))
    elif noisy:
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


def plain_islands(
    levels: Levels, sample_rate: int, threshold_db: float, masker: Floats | None
) -> list[Island]:
    """Stretches of sound by the presence rule, gaps of up to 150 ms closed."""
    plain = present(levels.samples, sample_rate, amplitude(threshold_db))
    sound = plain.copy()
    if levels.narrow:
        low, high = low_and_high(levels.samples, sample_rate)
        sound |= hissing(low, high, levels, threshold_db)
    if masker is not None:
        sound &= levels.power > masker
        plain &= sound
    doubt = WINDOW_MS * (2.0 if levels.narrow else 1.0)
    islands = [
        Island(run, int(np.count_nonzero(plain[run.start : run.stop])), doubt, doubt)
        for run in joined(runs_of(sound), windows(ISLAND_MS))
    ]
    return [island for island in islands if island.sounding]


def hissing(low: Floats, high: Floats, levels: Levels, threshold_db: float) -> Mask:
    """Windows of a narrow-band channel with a hissing sound: more power above 2.2 kHz than below 1.5 kHz.

    The threshold is lower by what such a sound loses on the line, but stays above the background.
    """
    background = float(np.quantile(high[levels.noise], 0.98)) * 2
    return np.asarray(
        (high > low) & (high > max(10 ** ((threshold_db - HISS_DB) / 10), background)), np.bool_
    )


def judged(islands: list[Island], levels: Levels, shortest_ms: float) -> tuple[list[Island], dict[str, int]]:
    """The islands that can be speech, and how many were dropped for which reason."""
    kept: list[Island] = []
    dropped: dict[str, int] = {}
    short = decibel(smooth(levels.power, 5))
    tops = [float(short[i.run.start : i.run.stop].max()) for i in islands]
    loudest = max(
        (t for i, t in zip(islands, tops, strict=True) if i.sounding >= windows(shortest_ms)), default=0.0
    )
    for island, top in zip(islands, tops, strict=True):
        if island.sounding < windows(shortest_ms):
            dropped["click"] = dropped.get("click", 0) + 1
        elif top < loudest - _QUIET_ISLAND_DB:
            dropped["quiet"] = dropped.get("quiet", 0) + 1
        else:
            kept.append(island)
    return kept, dropped


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
