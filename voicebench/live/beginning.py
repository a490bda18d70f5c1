"""What a conversation needs before anyone speaks: its plan, its facts, a question to warm up with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.manifest import Sample
from voicebench.errors import VoicebenchError
from voicebench.plan.config import Config
from voicebench.runner import RunPlan, make_plan

SAMPLE = "microphone"
"""What stands in a live turn's record for the sample's id."""
REPEATED = "repeated"
"""The same where the last words were spoken again by key."""


def live_plan(config: Config, where: str) -> RunPlan:
    """Check the modes and stages. Whole replies are let sound. Raises as `make_plan` does."""
    heard = config.model_copy(update={"hear": "reply", "repeats": 1, "samples_per_mode": {}})
    return make_plan(heard, [Sample(id=SAMPLE, path=Path(SAMPLE))], where=where)


def recording_name(turn: int, sample: str, mode: str) -> str:
    """The file name of a turn's recording."""
    safe = re.sub(r"[^A-Za-z0-9.]+", "-", mode).strip("-.")[:60] or "mode"
    return f"{turn:05d}-{sample}-{safe}.flac"


def question() -> NDArray[np.int16] | None:
    """A short recorded question at 16 kHz, None where no recording is here."""
    from voicebench.audio.prepare import PIPELINE_RATE, prepare
    from voicebench.audio.samples import default_folder, find_samples

    try:
        samples = find_samples([default_folder()])
        spoken = [one for one in samples if one.has_speech and not one.condition]
        chosen = (spoken or [one for one in samples if one.has_speech])[0]
        clip = prepare(chosen).pcm
    except (VoicebenchError, IndexError):
        return None
    return np.concatenate((clip, np.zeros(PIPELINE_RATE // 5, dtype=np.int16)))
