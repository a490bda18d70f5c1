"""The second opinion: voice-to-voice latency of a recorded turn, from its samples alone."""

from __future__ import annotations

from dataclasses import dataclass

from voicebench.audio.recorder import AGENT, USER, Recording
from voicebench.audio.waveform import first_sound, speech_end

TOLERANCE_MS = 10.0
"""Timeline and waveform may differ by this much where the waveform is certain."""


@dataclass(frozen=True)
class SecondOpinion:
    """`voice_to_voice_ms` is None where an edge was not found. `certain`: the waveform trusts both edges."""

    voice_to_voice_ms: float | None
    certain: bool
    uncertainty_ms: float
    reason: str = ""

    def disagrees(self, timeline_ms: float | None) -> bool:
        """Is the timeline's figure beyond what the waveform allows? Only where the waveform is certain."""
        if timeline_ms is None or self.voice_to_voice_ms is None or not self.certain:
            return False
        return abs(timeline_ms - self.voice_to_voice_ms) > max(TOLERANCE_MS, self.uncertainty_ms)


def second_opinion(recording: Recording) -> SecondOpinion:
    """End of the person's speech to the agent's first sound after it, by the waveform analyser."""
    first, last = recording.said
    end = speech_end(recording.samples[first:last, USER], recording.sample_rate)
    if end is None:
        return SecondOpinion(None, False, 0.0, "no speech on the person's channel")
    ended_s = first / recording.sample_rate + end.at_s
    onset = first_sound(recording.samples[:, AGENT], recording.sample_rate, ended_s)
    if onset is None:
        return SecondOpinion(None, False, 0.0, "no sound on the agent's channel after it")
    return SecondOpinion(
        (onset.at_s - ended_s) * 1000.0,
        end.certain and onset.certain,
        end.uncertainty_ms + onset.uncertainty_ms,
        end.reason or onset.reason,
    )
