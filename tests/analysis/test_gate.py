"""Limits are passed or breached only by what is proven, and say what would prove them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_pairs import latencies, side, turns
from tests.analysis.made_run import run_info
from voicebench.analysis.comparison import compare
from voicebench.analysis.gate import (
    Check,
    Finding,
    Limits,
    check_comparison,
    check_mode,
    judged,
    status_of_checks,
)
from voicebench.analysis.report import build_report
from voicebench.errors import BadRequest, ExitStatus
from voicebench.turns.records import TurnRecord


def held(records: list[TurnRecord], **limits: float) -> Check:
    """One limit held against the one mode of these records."""
    (entry,) = build_report(run_info(records), records).modes
    (check,) = check_mode(entry, records, Limits(**limits))
    return check


def made_check(finding: Finding) -> Check:
    """A check with this finding."""
    return Check("m", None, "p50_ms", 1, False, None, None, None, 0, finding)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4))
def test_a_finding_follows_from_the_bounds(asked: float, one: float, other: float) -> None:
    """Within the limit as a whole passes, beyond it as a whole is a breach, anything else is not proven."""
    low, high = sorted((one, other))
    most = judged(asked, False, low, high)
    assert (most is Finding.PASS) == (high <= asked)
    assert (most is Finding.BREACH) == (low > asked)
    least = judged(asked, True, low, high)
    assert (least is Finding.PASS) == (low >= asked)
    assert (least is Finding.BREACH) == (high < asked)


def test_no_bounds_prove_nothing() -> None:
    """Without bounds a limit is neither passed nor breached."""
    assert judged(1, False, None, None) is judged(1, True, None, None) is Finding.NOT_PROVEN


def test_the_status_has_its_order() -> None:
    """4 before 1 before 3 before 0, whatever stands beside them."""
    kinds = {
        Finding.PASS: ExitStatus.DONE,
        Finding.NOT_PROVEN: ExitStatus.NOT_PROVEN,
        Finding.BREACH: ExitStatus.LIMIT_BREACHED,
    }
    rank = list(kinds)
    for some in itertools.product(kinds, repeat=3):
        checks = [made_check(finding) for finding in some]
        assert status_of_checks(checks) is kinds[max(some, key=rank.index)]
        assert status_of_checks(checks, turns_failed=True) is ExitStatus.TURNS_FAILED


def test_a_p95_that_is_passed_seldom_lies_beyond_the_limit() -> None:
    """Where the true p95 is the limit itself, at most 5 % of runs of 100 turns pass, and as few breach."""
    rng = np.random.default_rng(4)
    first = turns([700.0] * 100)
    (entry,) = build_report(run_info(first), first).modes
    findings = []
    for _ in range(200):
        values = rng.uniform(600, 1000, 100)
        records = [
            one.model_copy(update={"voice_to_voice_ms": v}) for one, v in zip(first, values, strict=True)
        ]
        (check,) = check_mode(entry, records, Limits(p95_ms=980))
        findings.append(check.finding)
    assert findings.count(Finding.PASS) <= 18
    assert findings.count(Finding.BREACH) <= 18
    assert findings.count(Finding.NOT_PROVEN) > 160


def test_repeats_of_few_samples_widen_the_medians_bounds() -> None:
    """The same latencies as repeats of 6 samples prove less about the median than as 60 samples."""
    rng = np.random.default_rng(2)
    values = (700 + np.repeat(rng.normal(0, 80, 6), 10) + rng.normal(0, 10, 60)).tolist()
    alone, repeated = held(turns(values), p50_ms=800), held(turns(values, repeats=10), p50_ms=800)
    assert repeated.high is not None
    assert alone.high is not None
    assert repeated.low is not None
    assert alone.low is not None
    assert repeated.high - repeated.low > alone.high - alone.low


def test_the_turns_named_as_needed_are_enough() -> None:
    """So many turns of the same kind as a check asks for prove the limit on the share and on p95."""
    values = [700.0] * 98 + [900.0] * 2
    share = held(turns(values), hit_rate=0.95)
    assert share.finding is Finding.NOT_PROVEN
    assert share.needs is not None
    times = -(-int(share.needs.split()[1]) // 100)
    assert held(turns(values * times), hit_rate=0.95).finding is Finding.PASS
    high = held(turns(values), p95_ms=800)
    assert high.finding is Finding.NOT_PROVEN
    assert high.needs is not None
    times = -(-int(high.needs.split()[1]) // 100)
    assert held(turns(values * times), p95_ms=800).finding is Finding.PASS


@pytest.mark.parametrize(("limit", "value"), [("hit_rate", 1.0), ("cutoff_rate", 0.0)])
def test_a_share_of_exactly_all_or_none_is_never_proven(limit: str, value: float) -> None:
    """A limit without room says that no number of turns proves it."""
    check = held(turns([700.0] * 60), **{limit: value})
    assert check.finding is Finding.NOT_PROVEN
    assert "no number of turns" in str(check.needs)


def test_a_change_is_held_by_its_interval() -> None:
    """Without limits: slower breaches, proven not slower by 50 ms passes, too wide proves nothing."""
    for shift, samples, finding in (
        (80, 60, Finding.BREACH),
        (0, 200, Finding.PASS),
        (0, 7, Finding.NOT_PROVEN),
    ):
        a, b = latencies(np.random.default_rng(9), samples, 1, shift, 0)
        (entry,) = compare(side(turns(a)), side(turns(b), "run-b")).modes
        (check,) = check_comparison(entry, Limits())
        assert check.finding is finding


def test_a_lower_share_within_the_budget_is_the_worsening() -> None:
    """The share's worsening is A less B, so that a positive one is worse, with its bounds in order."""
    a, b = latencies(np.random.default_rng(9), 60, 1, 80, 0)
    (entry,) = compare(side(turns(a)), side(turns(b), "run-b")).modes
    (check,) = check_comparison(entry, Limits(hit_rate=0.02))
    assert check.found is not None
    assert check.low is not None
    assert check.high is not None
    assert 0 < check.low < check.found < check.high


@pytest.mark.parametrize("limits", [{"p50_ms": -1}, {"p95_ms": float("nan")}, {"hit_rate": 1.1}])
def test_limits_that_are_none_are_refused(limits: dict[str, float]) -> None:
    """A negative or undefined duration and a share above 1 are wrong requests."""
    with pytest.raises(BadRequest):
        Limits(**limits)
