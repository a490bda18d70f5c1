"""From a sample to what the pipeline is given: 16 kHz mono PCM, and where the speech in it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.clip import Samples
from voicebench.audio.decode import decode
from voicebench.audio.manifest import Sample
from voicebench.audio.pcm import mono, resample, resting_level, to_pcm16
from voicebench.audio.presence import amplitude
from voicebench.errors import AudioProblem
from voicebench.turns.timeline import Anchor

PIPELINE_RATE = 16_000
_LEAST_OFFSET = amplitude(-55.0)
"""A DC offset beyond this is taken out: 10 dB above it, it alone would be heard as sound."""


@dataclass(frozen=True)
class Prepared:
    """A sample ready to be spoken. `speech_end_s` is None where there is no speech or it cannot be found."""

    pcm: NDArray[np.int16]
    speech_end_s: float | None
    anchor: Anchor
    has_speech: bool | None
    caveats: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """The clip's length in seconds."""
        return self.pcm.size / PIPELINE_RATE


def prepare(sample: Sample) -> Prepared:
    """Decode, mix to mono and resample a sample, and find the end of its speech where nobody annotated it.

    Raises AudioProblem, naming the file and the reason, where it cannot be read or its annotation cannot
    belong to it.
    """
    clip = decode(sample.path)
    problem = sample.misfit(clip.duration_s)
    if problem is not None:
        raise AudioProblem(problem, "Correct the segments in the manifest.")
    speech, offset_caveat = _at_rest(mono(clip))
    pcm = np.frombuffer(to_pcm16(resample(speech, clip.sample_rate, PIPELINE_RATE)), dtype=np.int16)
    if sample.segments is not None:
        return Prepared(
            pcm, sample.speech_end_s, Anchor.ANNOTATED, sample.has_speech, (*clip.caveats, *offset_caveat)
        )
    from voicebench.audio.waveform import speech_end

    edge = speech_end(speech, clip.sample_rate)
    caveats: list[str] = [*clip.caveats, *offset_caveat]
    if edge is not None and not edge.certain:
        caveats.append("speech_end_uncertain")
    known = sample.has_speech
    return Prepared(
        pcm,
        None if edge is None or known is False else edge.at_s,
        Anchor.WAVEFORM,
        (edge is not None) if known is None else known,
        tuple(caveats),
    )


def _at_rest(speech: Samples) -> tuple[Samples, tuple[str, ...]]:
    """`speech` without its DC offset, and the caveat of it: silence has to be silent, its edges no clicks.

    An offset that is too small to be heard as sound stays.
    """
    offset = resting_level(speech)
    if abs(offset) < _LEAST_OFFSET:
        return speech, ()
    return speech - np.float32(offset), ("dc_offset",)
