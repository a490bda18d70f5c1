"""Both channels of a turn as a picture: how loud the person and the agent were around the end of speech."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.echo import RATE
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.turns.records import TurnRecord

if TYPE_CHECKING:
    from voicebench.live.card import Card
    from voicebench.live.session import HeardLive

BEFORE_MS, AFTER_MS = 600, 400
"""So much is shown before the end of speech, and after the agent's onset or the budget."""
STEP_MS = 10
FINE_MS, COARSE_MS = 6_000, 50
LONGEST_MS = 60_000


def picture(record: TurnRecord, heard: HeardLive, card: Card) -> dict[str, Any] | None:
    """The peak of each 10 ms (50 in long turns) of both channels, 0 to 100. None without an end of speech.

    `start_ms` is the first one's instant after the end of speech, negative.
    """
    end = heard.speech_end_ns
    if end is None:
        return None
    shown = max(800.0, record.voice_to_voice_ms or 0.0) + AFTER_MS
    step = STEP_MS if shown < FINE_MS else COARSE_MS
    count = int(min(LONGEST_MS, shown + BEFORE_MS) // step)
    start = end - BEFORE_MS * NS_PER_MS
    stop = start + count * step * NS_PER_MS
    capture = card.capture
    person = np.zeros(count)
    first, pcm = capture.between(capture.sample_at(start), capture.sample_at(stop))
    _draw(person, pcm, (capture.instant(first) - start) / NS_PER_MS, RATE, step)
    agent = np.zeros(count)
    for run in heard.played.runs:
        if run.end_ns > start and run.start_ns < stop:
            skip = max(0, (start - run.start_ns) * run.sample_rate // NS_PER_S)
            length = (stop - start) * run.sample_rate // NS_PER_S
            samples = np.concatenate(run.pieces)[skip : skip + length]
            _draw(agent, samples, (run.instant(skip) - start) / NS_PER_MS, run.sample_rate, step)
    return {
        "start_ms": -BEFORE_MS,
        "step_ms": step,
        "person": [round(value) for value in person.tolist()],
        "agent": [round(value) for value in agent.tolist()],
    }


def _draw(lane: NDArray[np.float64], pcm: NDArray[np.int16], at_ms: float, rate: int, step: int) -> None:
    """Put samples that begin `at_ms` after the lane into it."""
    if not pcm.size:
        return
    places = ((at_ms + np.arange(pcm.size) * 1000 / rate) // step).astype(np.int64)
    inside = (places >= 0) & (places < lane.size)
    np.maximum.at(lane, places[inside], np.abs(pcm[inside].astype(np.float64)) * 100 / 32768)
