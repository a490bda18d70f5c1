"""The independent truth: what was said when, from the samples of a recording alone.

It knows nothing of the pipeline, its frames or its clock, so it can contradict them.
"""

from voicebench.audio.waveform.conversation import conversation
from voicebench.audio.waveform.detect import segments
from voicebench.audio.waveform.edges import first_sound, speech_end
from voicebench.audio.waveform.findings import (
    Analysis,
    Caveat,
    Conversation,
    Edge,
    Interruption,
    Leak,
    Overlap,
    Segment,
    Silence,
    Turn,
)

__all__ = [
    "Analysis",
    "Caveat",
    "Conversation",
    "Edge",
    "Interruption",
    "Leak",
    "Overlap",
    "Segment",
    "Silence",
    "Turn",
    "conversation",
    "first_sound",
    "segments",
    "speech_end",
]
