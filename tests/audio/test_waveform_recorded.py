"""How exact the gaps are in calls made of a person's recorded voice."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.audio.waveform_calls import (
    RECORDED,
    Condition,
    Sound,
    clean,
    echo,
    quiet_agent,
    recorded_voices,
    score,
    telephone,
    with_noise,
)
from voicebench.audio.waveform import speech_end


@pytest.fixture(scope="module")
def spoken() -> tuple[Sound, ...]:
    """The recordings; where they are missing the tests fail, or where VOICEBENCH_NO_LIVE=1 says so, skip."""
    found = recorded_voices()
    if len(found) == 8:
        return found
    if os.environ.get("VOICEBENCH_NO_LIVE") == "1" and os.environ.get("CI", "").casefold() != "true":
        pytest.skip("VOICEBENCH_NO_LIVE=1: the tests on a recorded voice are left out")
    pytest.fail(
        f"There are {len(found)} of 8 recordings in {RECORDED}. Run:  apt-get install alsa-utils\n"
        "(VOICEBENCH_NO_LIVE=1 leaves these tests out.)",
        pytrace=False,
    )


@pytest.mark.parametrize(
    ("condition", "p95_ms"),
    [
        (clean, 20),
        (quiet_agent, 20),
        (echo, 20),
        (telephone, 50),
        (with_noise("white", 20), 50),
        (with_noise("pink", 20), 50),
    ],
    ids=["clean", "agent at -35 dBFS", "echo at -20 dB", "telephone", "white 20", "pink 20"],
)
def test_gaps_of_a_recorded_voice_are_found(
    condition: Condition, p95_ms: float, spoken: tuple[Sound, ...]
) -> None:
    """95 % of gaps are right to 20 ms, on a telephone line and in noise to 50 ms; none is made up."""
    found = score(condition, calls=4, spoken=spoken)
    assert found.p95 <= p95_ms, found
    assert (found.missed, found.invented, found.uncertain) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["white", "pink", "babble"])
def test_a_release_that_noise_hides_is_owned_up_to(kind: str, spoken: tuple[Sound, ...]) -> None:
    """At 10 dB noise swallows many a final t: no turn is certain, and errors lie within what is stated."""
    found = score(with_noise(kind, 10), calls=4, spoken=spoken)
    assert found.certain_errors_ms.size == 0
    assert found.within_uncertainty >= 0.9
    assert (found.missed, found.invented) == (0, 0)


def test_a_final_t_is_found_in_noise(spoken: tuple[Sound, ...]) -> None:
    """In pink noise at 20 dB a t is heard as the end, though nothing joins it to the voice before."""
    rng = np.random.default_rng(5)
    for at, voice in enumerate(spoken):
        quiet = np.zeros(32_000, np.float32)
        sound = np.concatenate([quiet, voice, quiet])
        truth = speech_end(sound, 16_000)
        noisy, _, _ = with_noise("pink", 20)(sound, sound, rng)
        end = speech_end(noisy, 16_000)
        assert truth is not None
        assert end is not None
        assert abs(end.at_s - truth.at_s) <= 0.05, at
