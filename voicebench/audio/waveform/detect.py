"""Speech segments of one channel, from its samples alone.

Where the background stays below the presence rule's threshold, the edges are that rule's own (5 ms windows).
Where it does not, each window is compared with the background band by band: voiced sounds stand out in a few
low bands, hissing ones in a few high bands, long before they stand out in the whole.
"""

from __future__ import annotations

from typing import NamedTuple

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
from voicebench.audio.waveform.findings import Analysis, Caveat, Segment
from voicebench.audio.waveform.levels import (
    Floats,
    Mask,
    Run,
    Split,
    decibel,
    joined,
    low_and_high,
    runs_of,
    share_above,
    smooth,
    two_levels,
    widened,
    window_power,
    windows_of,
    without_offset,
)

BRIDGE_MS = 350.0
"""A pause of at most this inside one speaker's speech does not end the utterance."""
SHORTEST_MS = 60.0
"""A sound with less than this above the threshold, away from others, is a click, not speech."""
_ISLAND_MS = 200.0
_LEAST_CONTRAST_DB = 6.0
_SILENT_DBFS = -80.0
_QUIET_ISLAND_DB = 30.0
_RAISE_DB = 3.0
_LOW_SNR_DB = 5.0
_ECHO_SUSPECT = 4.0
_NARROW_HZ = 4300.0
_NARROW_DB = -50.0
HISS_DB = 14.0
"""How much weaker a hissing sound is where a line ends near 4 kHz, its energy being above."""


class Island(NamedTuple):
    """A stretch of sound before it is judged: its windows, how many sound, how far off its edges may be.

    `reason` is a code where the edges cannot be relied on, else empty.
    """

    run: Run
    sounding: int
    start_doubt_ms: float
    end_doubt_ms: float
    reason: str = ""


class Levels(NamedTuple):
    """What a channel's windows look like as a whole."""

    samples: NDArray[np.float32]
    power: Floats
    split: Split
    noise: Mask
    floor_db: float
    noise_high_db: float
    peak: float
    narrow: bool
    """True where the sound ends below 4.3 kHz, as on a telephone line: hissing sounds arrive weakened."""


def windows(milliseconds: float) -> int:
    """A duration in whole 5 ms windows, at least 1."""
    return max(1, round(milliseconds / WINDOW_MS))


def segments(
    samples: NDArray[np.float32],
    sample_rate: int,
    *,
    bridge_ms: float = BRIDGE_MS,
    shortest_ms: float = SHORTEST_MS,
    masker: Floats | None = None,
) -> Analysis:
    """The utterances in mono `samples` (float, +-1.0) at `sample_rate` Hz.

    Pauses of at most `bridge_ms` are closed; isolated sounds of less than `shortest_ms` are dropped, as are
    isolated ones 30 dB below the channel's speech (breaths, rustling). `masker` is a power for each 5 ms
    window that is not this speaker's (what is left of an echo): only windows above it count. No speech gives
    no segments and a caveat (`silent` or `no_speech`). Raises ValueError for a sample rate of 0 or less, an
    array that is not one-dimensional, or samples that are not finite.
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
        from voicebench.audio.waveform.noisy import noisy_islands

        islands = noisy_islands(levels, sample_rate, threshold_db, masker)
    else:
        threshold_db = max(threshold_db, levels.noise_high_db + 1)
        islands = plain_islands(levels, sample_rate, threshold_db, masker)
    kept, dropped = judged(islands, levels, shortest_ms)
    found = utterances(kept, levels, sample_rate, bridge_ms, masker)
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
        tuple(found),
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


def channel_levels(samples: NDArray[np.float32], sample_rate: int) -> Levels | None:
    """The channel's levels, its background and its peak; None where it is silent throughout."""
    if samples.size == 0:
        return None
    clean = without_offset(samples, sample_rate)
    power = window_power(clean, sample_rate)
    level = decibel(smooth(power, windows(100) | 1))
    split = two_levels(level)
    if split.high < _SILENT_DBFS:
        return None
    loud = level > split.cut
    noise = background_windows(loud, windows(100))
    if noise is None:
        noise = level <= np.quantile(level, 0.1)
    return Levels(
        samples=clean,
        power=power,
        split=split,
        noise=noise,
        floor_db=float(decibel(float(np.mean(power[noise])))),
        noise_high_db=float(decibel(float(np.quantile(power[noise], 0.98)))),
        peak=_speech_peak(clean, sample_rate, power, split),
        narrow=sample_rate < 2 * _NARROW_HZ
        or share_above(clean, sample_rate, _NARROW_HZ, loud) < 10 ** (_NARROW_DB / 10),
    )


def background_windows(speech: Mask, least: int) -> Mask | None:
    """The windows that hold background: well away from `speech` where there are 2 s of such, else near it.

    None where even 50 ms away from speech fewer than `least` windows are left.
    """
    for distance_ms, enough in ((400, windows(2000)), (150, windows(500)), (50, least)):
        away = ~widened(speech, windows(distance_ms))
        if np.count_nonzero(away) >= enough:
            return away
    return None


def _speech_peak(samples: NDArray[np.float32], sample_rate: int, power: Floats, split: Split) -> float:
    """The highest sample of what lasts long enough to be speech, so that a click does not count."""
    highs = np.abs(windows_of(samples, sample_rate)).max(axis=1)
    long = [r for r in runs_of(decibel(smooth(power, 5)) > split.cut) if r.length >= windows(SHORTEST_MS)]
    return float(max((highs[r.start : r.stop].max() for r in long), default=highs.max()))


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
        for run in joined(runs_of(sound), windows(_ISLAND_MS))
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


def utterances(
    islands: list[Island], levels: Levels, sample_rate: int, bridge_ms: float, masker: Floats | None
) -> list[Segment]:
    """Segments in seconds: islands at most `bridge_ms` apart are one utterance."""
    groups: list[list[Island]] = []
    for island in islands:
        if groups and (island.run.start - groups[-1][-1].run.stop) * WINDOW_MS <= bridge_ms:
            groups[-1].append(island)
        else:
            groups.append([island])
    width = window_samples(sample_rate)
    found: list[Segment] = []
    for group in groups:
        start, stop = group[0].run.start, group[-1].run.stop
        power = np.concatenate([levels.power[i.run.start : i.run.stop] for i in group])
        level = float(decibel(float(np.mean(power))))
        reason = next((i.reason for i in group if i.reason), "")
        if level - levels.floor_db < _LOW_SNR_DB:
            reason = "low_snr"
        if masker is not None:
            heard = np.concatenate([masker[i.run.start : i.run.stop] for i in group])
            if float(np.mean(power)) < _ECHO_SUSPECT * float(np.mean(heard)):
                reason = "echo_suspect"
        found.append(
            Segment(
                start_s=start * width / sample_rate,
                end_s=min(stop * width, levels.samples.size) / sample_rate,
                level_dbfs=level,
                certain=not reason,
                reason=reason,
                start_uncertainty_ms=group[0].start_doubt_ms,
                end_uncertainty_ms=group[-1].end_doubt_ms,
            )
        )
    return found
