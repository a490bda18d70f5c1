"""What the waveform analyser reports: segments, edges, turns, overlaps, and what it could not tell.

All times are seconds from the start of the recording, found in its samples alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something a reader of the figures must know: a stable `code`, a sentence, and how often it applies."""

    code: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """One onset or end of sound.

    `at_s` is the edge of the 5 ms window in which the sound begins or ends; `uncertainty_ms` is how far the
    true edge may lie to either side; `certain` is False where the sound may not be speech or the edge is
    drowned, and `reason` then says why (empty otherwise).
    """

    at_s: float
    uncertainty_ms: float
    certain: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """One utterance on one channel: sound from `start_s` to `end_s`, pauses inside it closed.

    `level_dbfs` is the RMS level over its sounding windows. The uncertainties say how far the true edges may
    lie to either side. `certain` is False where it may not be this speaker's speech; `reason` says why.
    """

    start_s: float
    end_s: float
    level_dbfs: float
    certain: bool
    reason: str = ""
    start_uncertainty_ms: float = 5.0
    end_uncertainty_ms: float = 5.0

    @property
    def duration_s(self) -> float:
        """How long it lasts, its inner pauses included."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Analysis:
    """The speech of one channel.

    `floor_dbfs` is the level of its background, `threshold_dbfs` the level above which a window counts as
    sound, `snr_db` the speech's level above the background (None where there is no speech). `noisy`: the
    background reaches the threshold, so that edges were found band by band and are less sharp. `dropped`
    counts sounds that were taken for no speech, by reason.
    """

    segments: tuple[Segment, ...]
    sample_rate: int
    duration_s: float
    floor_dbfs: float
    threshold_dbfs: float
    snr_db: float | None
    noisy: bool
    dropped: dict[str, int] = field(default_factory=dict)
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True, slots=True)
class Leak:
    """One channel heard on the other, `delay_ms` later: echo or cross-talk.

    `source` is who is heard, "user" or "agent"; `level_db` (negative) the level against the source's own.
    """

    source: str
    delay_ms: float
    level_db: float


@dataclass(frozen=True, slots=True)
class Turn:
    """The user speaks, the agent answers.

    `voice_to_voice_ms` is `agent_onset_s` - `user_end_s` in ms: negative where the agent began before the
    user had ended, None where no reply was heard. `interrupted`: the user talked over the reply and it
    stopped. `certain` is False where a sound may not be what it is taken for, or an edge is drowned;
    `reasons` are codes. `uncertainty_ms` says how far the true figure may lie to either side.
    """

    user_start_s: float
    user_end_s: float
    agent_onset_s: float | None
    agent_end_s: float | None
    voice_to_voice_ms: float | None
    interrupted: bool
    certain: bool
    uncertainty_ms: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Both speak at once, from `start_s` to `end_s`; `began` is who came in second: "user" or "agent"."""

    start_s: float
    end_s: float
    began: str

    @property
    def duration_s(self) -> float:
        """How long both spoke."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Interruption:
    """One side broke into the other's speech at `at_s`.

    `by` is "user" (the agent then stopped, `stop_ms` after the user came in) or "agent" (it began while the
    user was speaking; `stop_ms` is how long the user went on, None where the user did not yield).
    """

    at_s: float
    by: str
    stop_ms: float | None


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody speaks from `start_s` to `end_s`; `before` is who broke it: "user", "agent" or "end"."""

    start_s: float
    end_s: float
    before: str

    @property
    def duration_s(self) -> float:
        """How long it lasts."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Conversation:
    """A call with the user on one channel and the agent on the other, as told by the samples alone.

    `silences` are the longest ones first; `leading_silence_s` is what comes before anybody speaks (the whole
    recording where nobody does).
    """

    turns: tuple[Turn, ...]
    user: Analysis
    agent: Analysis
    overlaps: tuple[Overlap, ...]
    interruptions: tuple[Interruption, ...]
    silences: tuple[Silence, ...]
    leading_silence_s: float
    duration_s: float
    sample_rate: int
    leaks: tuple[Leak, ...]
    caveats: tuple[Caveat, ...]
