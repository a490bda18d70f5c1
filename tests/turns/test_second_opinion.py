"""When the waveform contradicts the marks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicebench.audio.reconcile import SecondOpinion
from voicebench.turns.second_opinion import WAVEFORM_TOLERANCE_MS, waveform_disagrees


@pytest.mark.parametrize(
    ("marks_ms", "waveform_ms", "certain", "uncertainty_ms", "told"),
    [
        (700.0, 710.0, True, 5.0, False),
        (700.0, 710.1, True, 5.0, True),
        (700.0, 689.9, True, None, True),
        (700.0, 725.0, True, 25.0, False),
        (700.0, 725.1, True, 25.0, True),
        (700.0, 900.0, False, 5.0, False),
        (700.0, 900.0, None, None, True),
        (None, 900.0, True, 5.0, False),
        (700.0, None, True, 5.0, False),
    ],
)
def test_the_waveform_contradicts_only_what_it_is_sure_of(
    marks_ms: float | None,
    waveform_ms: float | None,
    certain: bool | None,
    uncertainty_ms: float | None,
    told: bool,
) -> None:
    """Over 10 ms, or over its own uncertainty where that is more, and never on an edge that it doubts."""
    assert waveform_disagrees(marks_ms, waveform_ms, certain, uncertainty_ms) is told


@given(st.floats(-3000, 3000), st.floats(-100, 100), st.booleans(), st.floats(0, 300))
def test_harness_and_reports_judge_alike(
    marks_ms: float, off_ms: float, certain: bool, uncertainty_ms: float
) -> None:
    """A second opinion disagrees exactly where the rule of the reports says so, to either side alike."""
    waveform_ms = marks_ms + off_ms
    opinion = SecondOpinion(waveform_ms, certain, uncertainty_ms)
    rule = waveform_disagrees(marks_ms, waveform_ms, certain, uncertainty_ms)
    assert opinion.disagrees(marks_ms) is rule
    assert waveform_disagrees(waveform_ms, marks_ms, certain, uncertainty_ms) is rule
    if certain and not math.isclose(abs(off_ms), max(WAVEFORM_TOLERANCE_MS, uncertainty_ms), abs_tol=1e-6):
        assert rule is (abs(off_ms) > max(WAVEFORM_TOLERANCE_MS, uncertainty_ms))
