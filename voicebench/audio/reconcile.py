"""The second opinion: voice-to-voice latency of a recorded turn, from its samples alone."""

from __future__ import annotations

from dataclasses import dataclass

from voicebench.audio.recorder import AGENT, USER, Recording
from voicebench.audio.waveform import first_sound, speech_end
from voicebench.turns.second_opinion import waveform_disagrees


@dataclass(frozen=True)
class SecondOpinion:
    """`voice_to_voice_ms` is None where an edge was not found. `certain`: the waveform trusts both edges.

    `uncertainty_ms` is how far the true figure may lie to either side, None without a figure; `reason` says
    why it is not certain.
    """

    voice_to_voice_ms: float | None
    certain: bool
    uncertainty_ms: float | None
    reason: str = ""

    def fields(self) -> dict[str, object]:
        """What a turn's record says of it."""
        return {
            "waveform_v2v_ms": self.voice_to_voice_ms,
            "waveform_certain": self.certain,
            "waveform_uncertainty_ms": self.uncertainty_ms,
        }

    def disagrees(self, timeline_ms: float | None) -> bool:
        """Is the timeline's figure beyond what the waveform allows? By the rule that the reports use."""
        return waveform_disagrees(timeline_ms, self.voice_to_voice_ms, self.certain, self.uncertainty_ms)


def second_opinion(recording: Recording) -> SecondOpinion:
    """End of the person's speech to the agent's first sound after it, by the waveform analyser."""
    first, last = recording.said
    end = speech_end(recording.samples[first:last, USER], recording.sample_rate)
    if end is None:
        return SecondOpinion(None, False, None, "no speech on the person's channel")
    ended_s = first / recording.sample_rate + end.at_s
    onset = first_sound(recording.samples[:, AGENT], recording.sample_rate, ended_s)
    if onset is None:
        return SecondOpinion(None, False, None, "no sound on the agent's channel after it")
    return SecondOpinion(
        (onset.at_s - ended_s) * 1000.0,
        end.certain and onset.certain,
        end.uncertainty_ms + onset.uncertainty_ms,
        end.reason or onset.reason,
    )
