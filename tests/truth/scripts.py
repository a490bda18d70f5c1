"""The scripts and judgements that the short and the long truth tests share."""

from __future__ import annotations

import numpy as np

from voicebench.audio.file_source import RATE
from voicebench.audio.reconcile import SecondOpinion, second_opinion
from voicebench.audio.recorder import record
from voicebench.pipeline import marks
from voicebench.pipeline.calibrate import SPEECH_S, Calibration, Script, tone
from voicebench.pipeline.session import Heard
from voicebench.turns.timeline import Timeline

KNOWN = Script(vad_stop=200, asr=120, llm_first_text=250, tts_first_byte=90, leading_silence=60)
"""Stages of known delay, as long as real ones."""
STAGE_TOLERANCE_MS = 5.0
V2V_TOLERANCE_MS = 10.0
FLOOR_MS = 12.0


def beyond(measured: Calibration, floor: Calibration) -> dict[str, float]:
    """What is off at p95 after taking off the noise floor, in ms, where it is more than is tolerated."""
    found = {}
    for stage, values in measured.stage_extra_ms.items():
        usual = float(np.percentile(floor.stage_extra_ms[stage], 99))
        off = float(np.percentile(values, 95)) - max(usual, 0.0)
        if off > STAGE_TOLERANCE_MS or float(np.percentile(values, 5)) < -STAGE_TOLERANCE_MS:
            found[stage.value] = off
    total = float(np.percentile(measured.extra_ms, 95)) - (floor.noise_floor_ms or 0.0)
    if total > V2V_TOLERANCE_MS:
        found["voice_to_voice"] = total
    return found


def opinion(heard: Heard) -> tuple[float, SecondOpinion]:
    """A turn's latency by its marks, in ms, and the waveform's own."""
    answer = marks.answer(heard.attempts(), heard.speech_end_ns)
    v2v = Timeline(answer.marks).voice_to_voice_ns
    assert v2v is not None
    recording = record(tone(SPEECH_S), RATE, heard.playback.start_ns, heard.played)
    return v2v / 1e6, second_opinion(recording)
