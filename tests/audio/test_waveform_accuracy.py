"""How exact the gaps are that are found in made calls of known truth."""

from __future__ import annotations

import pytest

from tests.audio.waveform_calls import (
    Condition,
    clean,
    cross_talk,
    echo,
    hum,
    measured,
    quiet_agent,
    room_echo,
    score,
    telephone,
    with_noise,
)


@pytest.mark.parametrize("condition", [clean, quiet_agent, echo, cross_talk], ids=lambda c: c.__name__)
def test_a_gap_without_noise_is_found_to_20_ms(condition: Condition) -> None:
    """Clean, at -35 dBFS, with echo or cross-talk, 95 % of gaps are right to 20 ms and none is invented."""
    found = score(condition)
    assert found.p95 <= 20, found
    assert (found.missed, found.invented, found.uncertain) == (0, 0, 0)


@pytest.mark.parametrize(
    "condition",
    [
        telephone,
        hum,
        with_noise("white", 20),
        with_noise("white", 20, both=True),
        with_noise("pink", 20),
        with_noise("pink", 10),
        with_noise("pink", 10, both=True),
    ],
    ids=["telephone", "hum", "white 20", "white 20 on both", "pink 20", "pink 10", "pink 10 on both"],
)
def test_a_gap_in_noise_is_found_to_50_ms(condition: Condition) -> None:
    """Over a telephone line, with hum and in noise, 95 % of gaps are right to 50 ms and none is invented."""
    found = score(condition)
    assert found.p95 <= 50, found
    assert (found.missed, found.invented) == (0, 0)
    assert found.within_uncertainty >= 0.9


@pytest.mark.parametrize(
    ("condition", "p95_ms"),
    [(with_noise("white", 10), 75), (with_noise("babble", 20), 120), (room_echo, 100)],
    ids=["white 10", "babble 20", "room echo"],
)
def test_what_drowns_soft_endings_is_owned_up_to(condition: Condition, p95_ms: float) -> None:
    """Where noise or an echo hides final hisses, errors stay within the uncertainty that each turn states."""
    found = score(condition)
    assert found.p95 <= p95_ms, found
    assert found.within_uncertainty >= 0.9
    assert (found.missed, found.invented) == (0, 0)


def test_voices_at_10_db_make_every_turn_uncertain() -> None:
    """Among voices only 10 dB weaker no turn is called certain, and most errors lie within what is stated."""
    found = score(with_noise("babble", 10))
    assert found.uncertain == found.errors_ms.size
    assert found.within_uncertainty >= 0.85


def test_the_echo_is_described() -> None:
    """An echo is reported with its source, its delay and how much weaker it is."""
    (leak,) = measured(echo, 0).leaks
    assert leak.source == "agent"
    assert 5 <= leak.delay_ms <= 200
    assert leak.level_db == pytest.approx(-20, abs=0.5)


def test_cross_talk_is_seen_on_both_channels() -> None:
    """Cross-talk shows as two leaks without delay, and a clean call has none."""
    found = measured(cross_talk, 1)
    assert sorted((leak.source, leak.delay_ms) for leak in found.leaks) == [("agent", 0), ("user", 0)]
    assert measured(clean, 1).leaks == ()
