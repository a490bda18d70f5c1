"""A person who speaks over the agent again and again, and how soon it was silent by the recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.live.talking import PARIS, Talk
from tests.live.virtual_card import RATE, VirtualCard
from voicebench.audio.presence import last_end

PERSON = 0.02
"""RMS above which someone speaks;"""
OVER_ECHO = 0.2
"""and above this share of what the agent said within 300 ms: its echo is half of that."""


@dataclass(frozen=True)
class BargeIn:
    """From the person's onset to the agent's last sound: by the recording, and as reported; ms."""

    real_ms: float
    reported_ms: float


def barge_ins(card: VirtualCard, talk: Talk, times: int, sample: Path = PARIS) -> list[BargeIn]:
    """Ask once, then speak over each of `times` replies; the last reply is heard to its end.

    Raises AssertionError where a turn was not as it should be.
    """
    talk.wait_for("Speak.", within=90)
    talk.say(sample).wait(20)
    for _ in range(times):
        card.wait_until(lambda tail: float(np.sqrt(np.mean(tail[:, 1] ** 2))) > 0.03, 0.05)
        card.wait_until(lambda tail: float(np.sqrt(np.mean(tail[:, 1] ** 2))) > 0.03, 0.4)
        talk.say(sample).wait(20)
    talk.wait_for("test/scripted: ", times + 1, within=60)
    talk.end(60)
    records = talk.records()
    outcomes = [one["outcome"] for one in records]
    assert outcomes == ["interrupted"] * times + ["completed"], outcomes
    bus = card.recording()
    starts = onsets(bus)
    assert len(starts) == times + 1, starts
    found = []
    for record, onset in zip(records, starts[1:], strict=False):
        # The agent is silent from its last sound in the second after the onset.
        after = bus[onset : onset + RATE, 1]
        end = last_end(after[: answer_begins(after)], RATE)
        assert end is not None
        found.append(BargeIn(end / RATE * 1000, record["barge_in_ms"]))
    return found


def answer_begins(agent: NDArray[np.float32]) -> int:
    """The sample from which the agent is silent for 0.2 s; the end where it never is."""
    window = RATE // 200
    power = np.mean(agent[: agent.size // window * window].reshape(-1, window) ** 2, axis=1)
    silent = np.sqrt(power) < 10 ** (-45 / 20)
    for place in range(silent.size - 40):
        if silent[place : place + 40].all():
            return place * window
    return agent.size


def onsets(bus: NDArray[np.float32]) -> list[int]:
    """The samples at which the person begins to speak, each after half a second without them."""
    window = RATE // 200
    whole = bus.shape[0] // window
    person, agent = np.sqrt(np.mean(bus[: whole * window].reshape(whole, window, 2) ** 2, axis=1)).T
    before = np.concatenate((np.zeros(60, dtype=np.float32), agent))
    lately = np.lib.stride_tricks.sliding_window_view(before, 61).max(axis=1)
    loud = np.flatnonzero(person > np.maximum(PERSON, OVER_ECHO * lately))
    first = np.concatenate(([True], np.diff(loud) > 100)) if loud.size else np.zeros(0, dtype=bool)
    return [int(place) * window for place in loud[first]]
