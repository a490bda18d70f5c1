"""How exact `voicebench measure` is, over 108 gaps a condition, of synthetic voices and of a person's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.audio.waveform_calls import (
    Condition,
    Sound,
    clean,
    cross_talk,
    echo,
    hum,
    mu_law,
    quiet_agent,
    recorded_voices,
    room_echo,
    score,
    telephone,
    voices,
    with_noise,
)

pytestmark = pytest.mark.soak

CALLS = 18


def noisy_telephone(kind: str, snr_db: float) -> Condition:
    """Noise beside the user, then a telephone line."""

    def apply(user: Sound, agent: Sound, rng: np.random.Generator) -> tuple[Sound, Sound, int]:
        user, agent, _ = with_noise(kind, snr_db)(user, agent, rng)
        return mu_law(user), mu_law(agent), 8000

    return apply


LIMITS: dict[str, tuple[Condition, float | None]] = {
    "clean": (clean, 20),
    "agent at -35 dBFS": (quiet_agent, 20),
    "echo at -20 dB": (echo, 20),
    "cross-talk": (cross_talk, 20),
    "telephone": (telephone, 50),
    "white 20 dB": (with_noise("white", 20), 50),
    "pink 20 dB": (with_noise("pink", 20), 50),
    "white 10 dB": (with_noise("white", 10), 50),
    "pink 10 dB": (with_noise("pink", 10), 50),
    "babble 20 dB": (with_noise("babble", 20), None),
    "babble 10 dB": (with_noise("babble", 10), None),
    "hum": (hum, None),
    "room echo": (room_echo, None),
    "telephone, white 20 dB": (noisy_telephone("white", 20), 50),
    "telephone, white 10 dB": (noisy_telephone("white", 10), 50),
}
"""What at most the p95 of the certain turns' errors may be, in ms; None: it is only told."""


@pytest.mark.parametrize("spoken", [voices, recorded_voices], ids=["synthetic", "recorded"])
def test_gaps_are_found_or_called_uncertain(spoken: Callable[[], tuple[Sound, ...]]) -> None:
    """What is called certain is right to 20 ms (in noise 50) at p95, and nine in ten errors are as stated."""
    assert len(spoken()) >= 8
    print(f"\n{'condition':24s}    n   p50   p95   max  within  missed  invented  certain  p95 of certain")
    broken = []
    for name, (condition, limit) in LIMITS.items():
        found = score(condition, CALLS, spoken=spoken())
        trusted = found.certain_errors_ms
        high = float(np.percentile(trusted, 95)) if trusted.size else None
        told = "none" if high is None else f"{high:.1f}"
        print(
            f"{name:24s} {found.errors_ms.size:4d} {np.median(found.errors_ms):5.1f} {found.p95:5.1f} "
            f"{found.errors_ms.max():5.0f}  {found.within_uncertainty:6.2f}  {found.missed:6d}  "
            f"{found.invented:8d}  {trusted.size / found.errors_ms.size:7.2f}  {told:>6s}"
        )
        assert found.errors_ms.size + found.missed >= 100
        if limit is None:
            continue
        if (high is not None and high > limit) or found.missed or found.invented:
            broken.append(name)
        if found.within_uncertainty < 0.9:
            broken.append(f"{name}: uncertainty")
    assert broken == []
