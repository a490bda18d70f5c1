"""Predictions: exact on turns whose truth is known, and empty where turns do not tell."""

from __future__ import annotations

import math

import pytest

from tests.turns.made import made, made_marks
from voicebench.analysis import changes
from voicebench.analysis.changes import Floats, Turns
from voicebench.analysis.counterfactual import (
    Prediction,
    Published,
    predict_with_llm_of,
    predict_with_published,
    predictions_of,
)
from voicebench.turns.records import TurnRecord
from voicebench.turns.timeline import Mark


def by_code(records: list[TurnRecord], wait_ms: float | None = 200.0) -> dict[str, Prediction]:
    """The predictions for these records by their codes."""
    return {one.code: one for one in predictions_of(Turns(records), 800.0, wait_ms, None)}


def one(values: Floats) -> float | None:
    """The only value of a column; None where there is none."""
    (value,) = values.tolist()
    return None if math.isnan(value) else value


def without_llm(record: TurnRecord) -> float | None:
    """The change of a single turn."""
    return one(changes.without_llm(Turns([record])))


def without_asr(record: TurnRecord) -> float | None:
    """Likewise."""
    return one(changes.without_asr(Turns([record])))


def without_tts(record: TurnRecord) -> float | None:
    """Likewise."""
    return one(changes.without_tts(Turns([record])))


def with_wait(record: TurnRecord, configured_ms: float, wait_ms: float) -> float | None:
    """Likewise."""
    return one(changes.with_wait(Turns([record]), configured_ms, wait_ms))


def test_a_stage_taken_away_shortens_the_turn_by_it() -> None:
    """The made turn of 700 ms loses exactly its model, ASR or TTS time."""
    turn = made(0)
    assert without_llm(turn) == pytest.approx(400)
    assert without_asr(turn) == pytest.approx(620)
    assert without_tts(turn) == pytest.approx(640)


def test_the_turn_detector_keeps_the_time_that_it_needs() -> None:
    """With 60 ms of its own work, an instant transcript saves only what is beyond it."""
    assert without_asr(made(0, work_ms={"turn_model": 60.0})) == pytest.approx(700 - 100 + 60)
    assert without_asr(made(0, work_ms={"turn_model": 500.0})) == pytest.approx(700)


def test_another_wait_moves_endpointing_and_nothing_else() -> None:
    """80 ms less wait is 80 ms less latency, and endpointing never falls below 0."""
    assert with_wait(made(0), 200, 120) == pytest.approx(620)
    assert with_wait(made(0), 200, 500) == pytest.approx(1000)
    assert with_wait(made(0, marks=made_marks(vad_stop=30)), 200, 120) == pytest.approx(500)


def test_a_turn_without_the_marks_tells_nothing() -> None:
    """No request or clause mark: the model's part is unknown, not 0."""
    for mark in (Mark.LLM_REQUEST, Mark.TTS_REQUEST):
        assert without_llm(made(0, without=(mark,))) is None
    assert without_tts(made(0, without=(Mark.TTS_FIRST_BYTE,))) is None
    assert without_asr(made(0, v2v_ms=-50)) is None


def test_predicted_shares_are_over_the_turns_of_the_measured_share() -> None:
    """Failed turns and cutoffs stay misses; late turns become hits where the change brings them in."""
    late = [made(n, marks=made_marks(vad_stop=330)) for n in range(16)]
    failed = [made(20 + n, outcome="timed_out", reason="x") for n in range(2)]
    cut = [made(30 + n, v2v_ms=-10.0, flags=["cutoff"], cutoffs=1) for n in range(2)]
    found = by_code([*late, *failed, *cut])["vad_stop"]
    assert (found.n, found.measured_share, found.share) == (20, 0.0, 0.8)
    assert found.p50_ms == pytest.approx(750)
    assert found.measured_p50_ms == pytest.approx(830)
    assert found.ci95 is not None
    assert found.ci95[0] < 0.8 < found.ci95[1]


def test_nothing_is_predicted_where_too_many_turns_do_not_tell() -> None:
    """Two of twelve without a clause mark are too many; the reason says so, and the share is empty."""
    records = [made(n, without=(Mark.TTS_REQUEST,) if n < 2 else ()) for n in range(12)]
    found = by_code(records)["llm_infinite"]
    assert (found.share, found.p50_ms, found.ci95) == (None, None, None)
    assert found.reason == "cannot tell: 2 of 12 turns lack the marks for it"


def test_a_wait_that_endpointing_does_not_show_is_not_predicted_from() -> None:
    """Where turns end sooner than the configured wait, something else rules endpointing."""
    found = by_code([made(n, marks=made_marks(vad_stop=60)) for n in range(12)])["vad_stop"]
    assert found.share is None
    assert found.reason == "cannot tell: endpointing is shorter than the configured wait"
    assert "vad_stop" not in by_code([made(n) for n in range(12)], wait_ms=None)


def test_another_models_times_are_taken_sample_by_sample() -> None:
    """The donor is quick on half of the samples: only there the turns come in."""
    slow = [made(n, marks=made_marks(llm_first_text=400), sample=f"s{n}") for n in range(12)]
    donor = [
        made(20 + n, mode="x/donor", marks=made_marks(llm_first_text=50 if n % 2 else 900), sample=f"s{n}")
        for n in range(12)
    ]
    found = predict_with_llm_of("x/donor", "LLM of donor", Turns(slow), Turns(donor), 800.0)
    assert (found.measured_share, found.share) == (0.0, 0.5)


def test_each_of_the_donors_times_on_a_sample_is_as_likely() -> None:
    """Three quick answers and one slow one on a sample are three quarters of a hit."""
    slow = [made(n, marks=made_marks(llm_first_text=400), sample="one") for n in range(12)]
    times = (50, 50, 50, 900)
    donor = [made(20 + n, marks=made_marks(llm_first_text=one), sample="one") for n, one in enumerate(times)]
    found = predict_with_llm_of("x/donor", "LLM of donor", Turns(slow), Turns(donor), 800.0)
    assert found.share == pytest.approx(0.75)
    assert found.p50_ms == pytest.approx(550)


def test_samples_that_the_donor_never_answered_tell_nothing() -> None:
    """A donor asked other samples predicts nothing."""
    slow = [made(n, sample=f"s{n}") for n in range(12)]
    found = predict_with_llm_of(
        "x/donor", "LLM of donor", Turns(slow), Turns([made(0, sample="other")]), 800.0
    )
    assert found.share is None
    assert found.unknown == 12


def test_no_records_no_predictions() -> None:
    """A mode that was not run has none."""
    assert predictions_of(Turns([]), 800.0, 200.0, None) == ()


def test_another_pace_moves_the_clause_and_nothing_else() -> None:
    """The clause's own tokens come at the other rate; what it waited for beyond them, and the rest, stays."""
    # Text from 200 ms of the slot on, a token each 15 ms: by the clause at 300 ms there are seven deltas.
    turn = made(0)
    changed = one(changes.with_pace(Turns([turn]), 100.0, 200.0))
    assert changed == pytest.approx(400 + 100 + 6 * 1000 / 200 + (300 - 290))
    same = one(changes.with_pace(Turns([turn]), 200.0, 1000 / 15))
    assert same == pytest.approx(700)
    late = made(1, deltas=((400_000_000, 10, 1),))
    assert one(changes.with_pace(Turns([late]), 100.0, 200.0)) is None


def test_a_model_by_its_published_figures_says_where_they_come_from() -> None:
    """The note names the figures, and whether one of them is assumed."""
    turns = Turns([made(n) for n in range(12)])
    found = predict_with_published(Published("x/quick", 100.0, 200.0, True), turns, 800.0)
    assert found.p50_ms == pytest.approx(540)
    assert found.words == "LLM at the pace of quick"
    assert found.note.startswith("100 ms to the first text, 200 tokens/s (partly assumed)")
