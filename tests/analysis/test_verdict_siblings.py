"""Fast modes against their siblings: differences only where samples support them, costs only where priced."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.report import build_report
from voicebench.analysis.siblings import Faster, compare, siblings_of
from voicebench.analysis.verdict import faster_words, verdict_of
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunInfo

STANDARD, FAST = "emulated/opus-4.6", "emulated/opus-4.6-fast"


def turns(mode: str, v2v_ms: float, samples: int = 12, **fields: Any) -> list[TurnRecord]:
    """One turn on each sample, about as long."""
    return [
        made(n, mode=mode, mode_kind="emulated", sample=f"s{n}", v2v_ms=v2v_ms + n, **fields)
        for n in range(samples)
    ]


def test_a_saving_on_every_sample_is_claimed_and_priced() -> None:
    """100 ms sooner on each, from never to always in time: both differences are sure, and cost is told."""
    found = compare(turns(FAST, 750), turns(STANDARD, 850), 800, 70.0)
    assert (found.saved_ms, found.points, found.saves, found.changes_outcome) == (100.0, 100.0, True, True)
    assert found.usd_per_1000_per_ms == pytest.approx(0.7)
    assert found.usd_per_1000_per_point == pytest.approx(0.7)


def test_a_saving_that_changes_no_turns_outcome_is_not_sold_as_one() -> None:
    """Sooner, but late all the same: no points, and no price for a point."""
    found = compare(turns(FAST, 900), turns(STANDARD, 1000), 800, 70.0)
    assert (found.saves, found.changes_outcome) == (True, None)
    assert found.usd_per_1000_per_point is None
    assert "cannot tell whether it holds 800 ms more often" in faster_words(found, 800)


def test_a_slower_fast_mode_is_told_as_later() -> None:
    """A fast mode that is slower saves nothing, and no cost for a saved ms is made up."""
    found = compare(turns(FAST, 850), turns(STANDARD, 750), 800, 70.0)
    assert (found.saves, found.changes_outcome, found.usd_per_1000_per_ms) == (False, False, None)
    assert "100 ms later, -100 points" in faster_words(found, 800)


def test_few_common_samples_support_no_claim() -> None:
    """Five samples give no interval: cannot tell."""
    found = compare(turns(FAST, 750, 5), turns(STANDARD, 850, 5), 800, 70.0)
    assert (found.saves, found.changes_outcome) == (None, None)
    assert faster_words(found, 800).endswith("cannot tell, 5 samples in common, and it takes 6.")


def test_samples_that_only_one_mode_was_asked_are_left_out() -> None:
    """The fast mode's easy samples do not count against a sibling that never met them."""
    standard = [one for one in turns(STANDARD, 850, 20) if one.sample not in ("s0", "s1")]
    assert compare(turns(FAST, 750, 20), standard, 800, None).samples == 18


def test_a_price_that_is_not_known_is_said_to_be_so() -> None:
    """Without a price there is no cost, and the words say why."""
    found = compare(turns(FAST, 750), turns(STANDARD, 850), 800, None)
    assert (found.usd_per_1000_per_ms, found.usd_per_1000_per_point) == (None, None)
    assert faster_words(found, 800).endswith("what that costs cannot be told, as a price is not known.")


def test_the_runs_own_modes_name_their_siblings() -> None:
    """A config's own mode overrides the catalogue, also by naming none."""
    own = [{"id": "own/fast", "sibling": "own/plain"}, {"id": FAST, "sibling": None}]
    found = siblings_of(RunInfo.model_validate(run_info(config={"own_modes": own})))
    assert found["own/fast"] == "own/plain"
    assert FAST not in found
    assert siblings_of(RunInfo.model_validate(run_info()))[FAST] == STANDARD


def test_the_price_difference_comes_from_the_turns() -> None:
    """The verdict takes mean prices of 1000 turns."""
    records = [*turns(STANDARD, 850, usd=0.01), *turns(FAST, 750, usd=0.06)]
    (found,) = verdict_of(build_report(run_info(), records), records).faster
    assert isinstance(found, Faster)
    assert found.extra_usd_per_1000 == pytest.approx(50)
