"""Statistics against references, and what they leave empty."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicebench.analysis.bootstrap import median_interval
from voicebench.analysis.statistics import (
    Summary,
    percentile,
    stage_means_near,
    summarize,
    upper_bound,
    upper_bound_p95,
    wilson,
)

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


def test_percentiles_equal_a_reference_on_ten_thousand_random_sets() -> None:
    """On sets of every small size and several shapes, each percentile equals numpy's linear one."""
    rng = np.random.default_rng(7)
    for number in range(10_000):
        size = int(rng.integers(1, 130))
        values = (
            rng.normal(700, 60, size),
            rng.exponential(300, size),
            rng.integers(0, 5, size).astype(float),
        )[number % 3]
        asked = (50, 90, 95, 99, float(rng.uniform(0, 100)))
        reference = np.percentile(values, asked)
        found = [percentile(values, percent) for percent in asked]
        np.testing.assert_allclose(np.array(found, dtype=float), reference, rtol=1e-12, atol=1e-12)


@given(VALUES, st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_percentiles_never_fall(values: list[float], asked: list[float]) -> None:
    """A higher percentile is never below a lower one, and all lie within the values."""
    found = [percentile(values, percent) for percent in (0, *sorted(asked), 100)]
    kept = [value for value in found if value is not None]
    assert len(kept) == len(found)
    assert all(low <= high for low, high in pairwise(kept))
    assert (kept[0], kept[-1]) == (min(values), max(values))


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_the_values_changes_nothing(values: list[float], random: object) -> None:
    """A shuffled set has the same summary."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarize(shuffled) == summarize(values)


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (1, ()),
        (9, ()),
        (10, ("p90",)),
        (19, ("p90",)),
        (20, ("p90", "p95")),
        (99, ("p90", "p95")),
        (100, ("p90", "p95", "p99")),
    ],
)
def test_high_percentiles_need_enough_values(n: int, shown: tuple[str, ...]) -> None:
    """p90 is shown from 10 values, p95 from 20, p99 from 100; mean, median, least and most always."""
    summary = summarize(range(n))
    assert tuple(name for name in ("p90", "p95", "p99") if getattr(summary, name) is not None) == shown
    assert (summary.n, summary.min, summary.max) == (n, 0, n - 1)
    assert summary.mean == summary.p50 == (n - 1) / 2


def test_nothing_measured_is_empty_and_counted() -> None:
    """Without values every figure is None, and what is missing or excluded is still counted."""
    assert summarize([], missing=3, excluded=2) == Summary(0, 3, 2)
    plain = summarize([], 3, 2).to_dict()
    assert plain["p50"] is plain["mean"] is plain["max"] is plain["ci95_p50"] is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_refused(bad: float) -> None:
    """NaN and infinity raise instead of spreading through a summary."""
    with pytest.raises(ValueError, match="not a finite number"):
        summarize([1.0, bad, 2.0])


def test_a_percentile_outside_the_scale_is_refused() -> None:
    """Below 0 and above 100 there is none."""
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], 101)


def test_the_median_interval_covers_as_often_as_it_says() -> None:
    """Over 300 sets of 40 independent values the 95 % interval holds the true median in 90 to 99 %."""
    rng = np.random.default_rng(3)
    held = 0
    for number in range(300):
        interval = median_interval(np.sort(rng.normal(0, 1, 40)), seed=number)
        assert interval is not None
        held += interval[0] <= 0 <= interval[1]
    assert 270 <= held <= 297


@pytest.mark.parametrize("n", [6, 7, 25, 60])
def test_the_interval_agrees_with_resampling_written_out(n: int) -> None:
    """The interval is that of the medians of resamples that are really drawn, up to the noise of drawing."""
    rng = np.random.default_rng(5)
    values = np.sort(rng.exponential(100, n))
    medians = np.median(rng.choice(values, size=(50_000, n)), axis=1)
    interval = median_interval(values, seed=1)
    assert interval is not None
    for bound, percent in zip(interval, (2.5, 97.5), strict=True):
        assert np.mean(medians <= bound) >= percent / 100 - 0.02
        assert np.mean(medians < bound) <= percent / 100 + 0.02


@pytest.mark.parametrize(("n", "samples"), [(7, 3), (60, 12), (61, 12), (300, 40)])
def test_the_interval_by_sample_agrees_with_resampling_written_out(n: int, samples: int) -> None:
    """So it is where whole samples of unequal size are drawn."""
    rng = np.random.default_rng(6)
    labels = np.sort(rng.integers(samples, size=n))
    values = rng.exponential(100, n) + 40 * labels
    groups = [values[labels == label] for label in np.unique(labels)]
    drawn = rng.integers(len(groups), size=(8000, len(groups)))
    medians = np.array([np.median(np.concatenate([groups[place] for place in row])) for row in drawn])
    order = np.argsort(values)
    interval = median_interval(values[order], labels[order], seed=1)
    assert interval is not None
    for bound, percent in zip(interval, (2.5, 97.5), strict=True):
        assert np.mean(medians <= bound) >= percent / 100 - 0.02
        assert np.mean(medians < bound) <= percent / 100 + 0.02


def test_repeats_of_a_sample_are_no_independent_evidence() -> None:
    """Ten samples repeated twenty times give an interval as wide as ten samples do, not as 200 turns."""
    rng = np.random.default_rng(11)
    centres = rng.normal(700, 80, 10)
    values = np.repeat(centres, 20) + rng.normal(0, 1, 200)
    labels = [f"sample {place}" for place in np.repeat(np.arange(10), 20)]
    by_sample, by_turn = summarize(values, clusters=labels), summarize(values)
    assert by_sample.ci95_p50 is not None
    assert by_turn.ci95_p50 is not None
    wide, narrow = (pair[1] - pair[0] for pair in (by_sample.ci95_p50, by_turn.ci95_p50))
    assert wide > 1.5 * narrow
    assert by_sample.p50 == by_turn.p50


def test_an_interval_needs_six_values_and_holds_the_median() -> None:
    """Below six values there is no interval; from six on it lies around the median, within the values."""
    assert summarize(range(5)).ci95_p50 is None
    summary = summarize([5, 1, 4, 2, 9, 3])
    assert summary.ci95_p50 is not None
    assert summary.p50 is not None
    assert 1 <= summary.ci95_p50[0] <= summary.p50 <= summary.ci95_p50[1] <= 9


def test_one_repeated_sample_still_has_an_interval_of_some_width() -> None:
    """Where all turns are of one sample, the interval speaks of its repeats and is no point."""
    summary = summarize(range(30), clusters=["only"] * 30)
    assert summary.ci95_p50 is not None
    assert summary.ci95_p50[0] < summary.ci95_p50[1]


def test_the_same_seed_gives_the_same_interval() -> None:
    """A summary is a function of its values and its seed."""
    values = np.random.default_rng(1).normal(700, 60, 50)
    assert summarize(values, seed=4) == summarize(values, seed=4)
    assert summarize(values, seed=4).ci95_p50 != summarize(values, seed=5).ci95_p50


def test_clusters_must_fit_the_values() -> None:
    """A label too few raises."""
    with pytest.raises(ValueError, match="clusters"):
        summarize([1.0, 2.0], clusters=["a"])


@pytest.mark.parametrize("samples", [500, 30_000])
def test_a_hundred_thousand_values_are_summarised(samples: int) -> None:
    """A large set has a narrow interval around its median and exact percentiles, whatever its samples."""
    values = np.random.default_rng(2).normal(700, 60, 100_000)
    summary = summarize(values, clusters=(np.arange(100_000) % samples).tolist())
    assert summary.p99 == pytest.approx(float(np.percentile(values, 99)))
    assert summary.ci95_p50 is not None
    assert summary.p50 is not None
    assert summary.ci95_p50[0] < summary.p50 < summary.ci95_p50[1] < summary.ci95_p50[0] + 5


@pytest.mark.parametrize(
    ("hit", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals_equal_published_ones(hit: int, n: int, low: float, high: float) -> None:
    """The interval equals published values (81 of 263: Newcombe, 1998, table I)."""
    assert wilson(hit, n) == pytest.approx((low, high), abs=5e-5)


def test_no_turns_have_no_share() -> None:
    """0 of 0 has no interval, and more hits than turns is refused."""
    assert wilson(0, 0) is None
    with pytest.raises(ValueError, match="no share"):
        wilson(3, 2)


@pytest.mark.parametrize(("percent", "least"), [(95, 59), (99, 299), (90, 29), (50, 5)])
def test_a_bound_needs_the_number_of_turns_that_theory_asks(percent: float, least: int) -> None:
    """At 95 % confidence p95 is bounded from 59 turns on and p99 from 299; just there by the maximum."""
    assert upper_bound(range(least - 1), percent) is None
    assert upper_bound(range(least), percent) == least - 1


def test_a_bound_equals_the_published_order_statistic() -> None:
    """For n = 100 the 95 % bound of p95 is the 99th value, of p90 the 96th (binomial tables)."""
    assert upper_bound_p95(range(1, 101)) == 99
    assert upper_bound(range(1, 101), 90) == 96


def test_a_bound_holds_as_often_as_it_says() -> None:
    """Over 2000 sets of 80 turns the bound lies at or above the true p95 in at least 95 %, less noise."""
    rng = np.random.default_rng(13)
    held = sum((upper_bound_p95(rng.uniform(0, 1, 80)) or 0) >= 0.95 for _ in range(2000))
    assert held >= 0.94 * 2000


@given(st.lists(st.lists(st.floats(0, 500), min_size=3, max_size=3), min_size=1, max_size=150))
def test_stage_means_add_up(turns: list[list[float]]) -> None:
    """Near p50 and p95 alike, the means of the stages sum to the mean V2V of the same turns."""
    table = np.array(turns)
    totals = table.sum(axis=1)
    stages = {name: table[:, place] for place, name in enumerate("abc")}
    for percent in (50, 95):
        means = stage_means_near(totals, stages, percent)
        if percent == 95 and len(turns) < 20:
            assert means is None
            continue
        assert means is not None
        assert sum(means.stages.values()) == pytest.approx(means.total)
        assert totals.min() <= means.total <= totals.max() + 1e-9


def test_stage_means_are_taken_near_the_percentile_only() -> None:
    """Of 101 turns ranked 0 to 100 those from 45 to 55 make the p50 and those from 90 to 100 the p95."""
    totals = list(range(101))
    for percent, n, mean in ((50, 11, 50), (95, 11, 95)):
        means = stage_means_near(totals, {"all": totals}, percent)
        assert means is not None
        assert (means.n, means.total, means.stages) == (n, mean, {"all": mean})


def test_stage_means_of_few_turns_rest_on_those_around_the_median() -> None:
    """With two turns, both lie around the median and both count; with none there is nothing."""
    means = stage_means_near([100, 300], {"all": [100, 300]}, 50)
    assert means is not None
    assert (means.n, means.total) == (2, 200)
    assert stage_means_near([], {}, 50) is None
