"""How often a comparison errs and how often it finds: 200 made pairs of runs, seeded, of each structure."""

from __future__ import annotations

import numpy as np
import pytest

from tests.analysis.made_pairs import latencies, side, turns
from voicebench.analysis.comparison import Verdict, compare
from voicebench.analysis.comparison_bootstrap import (
    Statistic,
    draw,
    interval,
    mean,
    percentile_difference,
    student_t,
    trimmed_mean,
)
from voicebench.analysis.statistics import percentile

TRIALS = 200
AT_MOST_DIFFERENT = 18
AT_LEAST_FOUND = 190

STRUCTURES = pytest.mark.parametrize(
    ("samples", "repeats", "sample_ms"), [(60, 1, 0), (60, 1, 100), (12, 5, 100), (6, 10, 100), (3, 20, 100)]
)
"""60 turns: independent ones, ones whose samples differ, and repeats of 12, 6 and 3 samples."""


def called(samples: int, repeats: int, sample_ms: float, shift_ms: float) -> dict[str, int]:
    """In how many of 200 comparisons each figure is called different."""
    rng = np.random.default_rng(20260102)
    labels = np.repeat(np.arange(samples), repeats).tolist()
    found = dict.fromkeys(("paired", "p50", "p95", "share"), 0)
    for trial in range(TRIALS):
        a, b = (np.array(one) for one in latencies(rng, samples, repeats, shift_ms, sample_ms))
        draws = draw(labels, seed=trial)
        assert draws is not None
        hits = (b <= 800).astype(float) - (a <= 800)
        figures: dict[str, Statistic] = {
            "paired": trimmed_mean(b - a),
            "p50": percentile_difference(a, b, 50),
            "p95": percentile_difference(a, b, 95),
            "share": mean(hits),
        }
        for name, statistic in figures.items():
            low, high = interval(statistic, draws)
            found[name] += low > 0 or high < 0
    return found


@STRUCTURES
def test_a_mode_against_itself_is_seldom_called_different(
    samples: int, repeats: int, sample_ms: float
) -> None:
    """Of 200 comparisons at 5 % without a change at most 18 call any one figure different."""
    found = called(samples, repeats, sample_ms, 0)
    assert max(found.values()) <= AT_MOST_DIFFERENT, found


@STRUCTURES
def test_a_planted_shift_is_found(samples: int, repeats: int, sample_ms: float) -> None:
    """A shift of 50 ms under noise of 60 ms is found by 60 pairs in at least 95 % of 200 comparisons.

    With 6 samples, five degrees of freedom are left, and it is found in at least 85 %.
    """
    found = called(samples, repeats, sample_ms, 50)
    assert found["paired"] >= (170 if samples == 6 else AT_LEAST_FOUND), found


def test_whole_comparisons_keep_to_these_rates() -> None:
    """Through the records, the verdict errs in at most 18 of 200 comparisons, and all stages together too."""
    rng = np.random.default_rng(7)
    different = by_stage = 0
    for _ in range(TRIALS):
        a, b = (turns(values) for values in latencies(rng, 60, 1, 0, 100))
        (same,) = compare(side(a), side(b, "run-b")).modes
        different += same.verdict is not Verdict.CANNOT_TELL
        by_stage += any(part.paired.verdict is not Verdict.CANNOT_TELL for part in same.parts.values())
    assert different <= AT_MOST_DIFFERENT
    assert by_stage <= AT_MOST_DIFFERENT


def test_an_effect_that_differs_between_samples_is_no_proof_by_repeats() -> None:
    """A change that goes either way from sample to sample, without an effect on average, is seldom claimed.

    Ten repeats of each of 8 samples make it look certain where turns pass for independent.
    """
    rng = np.random.default_rng(11)
    labels = np.repeat(np.arange(8), 10)
    by_sample = by_turn = 0
    for trial in range(TRIALS):
        change = rng.normal(0, 80, 8)[labels] + rng.normal(0, 40, 80)
        for names in (labels.tolist(), list(range(80))):
            draws = draw(names, seed=trial)
            assert draws is not None
            low, high = interval(trimmed_mean(change), draws)
            if names == labels.tolist():
                by_sample += low > 0 or high < 0
            else:
                by_turn += low > 0 or high < 0
    assert by_sample <= AT_MOST_DIFFERENT
    assert by_turn > 60


def test_weighted_percentiles_are_those_of_the_drawn_turns() -> None:
    """A resample's percentile equals that of the turns written out as often as they were drawn."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=30), rng.normal(size=30)
    weights = rng.integers(0, 4, size=(20, 30))
    for percent in (0, 50, 95, 100):
        found = percentile_difference(a, b, percent)(weights.astype(float))
        for row, difference in zip(weights, found, strict=True):
            first, second = (percentile(np.repeat(values, row), percent) for values in (a, b))
            assert first is not None
            assert second is not None
            assert difference == pytest.approx(second - first)


def test_the_trimmed_mean_leaves_a_fifth_out_at_either_end() -> None:
    """Of ten differences the mean of the middle six is taken, whatever the others are."""
    values = np.array([1e9, 3, 4, 5, 6, 7, 8, -1e9, 1e9, -1e9])
    assert trimmed_mean(values)(np.ones((1, 10)))[0] == pytest.approx(5.5)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (5, 2.5706), (11, 2.2010), (59, 2.0010), (1000, 1.9623)],
)
def test_students_t_equals_the_tables(freedom: int, quantile: float) -> None:
    """The 97.5 % points are those of the published tables."""
    assert student_t(0.975, freedom) == pytest.approx(quantile, abs=6e-5)
