"""The ledger: every planned turn is counted exactly once, and failures are misses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.turns.made import made
from voicebench.analysis.ledger import (
    Share,
    budget_share,
    cutoffs_of,
    flag_counts,
    latest_records,
    ledger_of,
    missing_turns,
)
from voicebench.analysis.mode_report import build_mode
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.run_folder import ModeFacts, PlannedEntry
from voicebench.turns.timeline import Anchor, Mark


@st.composite
def any_turns(draw: st.DrawFn) -> list[TurnRecord]:
    """Turns of every outcome, flag, latency and knowledge of speech."""
    found = []
    for turn in range(draw(st.integers(0, 12))):
        outcome = draw(st.sampled_from(Outcome))
        flags = draw(st.sets(st.sampled_from(Flag), max_size=2)) if outcome is Outcome.COMPLETED else ()
        without = (Mark.FIRST_AUDIBLE,) if draw(st.booleans()) else ()
        found.append(
            made(
                turn,
                outcome=outcome,
                flags=sorted(flags),
                v2v_ms=draw(st.integers(-300, 1500)),
                without=without,
                speech_in_sample=draw(st.sampled_from([True, False, None])),
                cutoffs=draw(st.integers(0, 1)),
            )
        )
    return found


@given(any_turns(), st.integers(0, 5))
def test_planned_turns_are_the_sum_of_all_that_became_of_them(turns: list[TurnRecord], lost: int) -> None:
    """Planned equals the sum of the outcomes and of the turns without a record, exactly."""
    told = ledger_of(turns, lost).to_dict()
    planned = told.pop("planned")
    assert planned == len(turns) + lost == sum(told.values())
    assert set(told) == {outcome.value for outcome in Outcome} | {"not_run"}


@given(any_turns())
def test_completed_turns_are_counted_missing_or_excluded(turns: list[TurnRecord]) -> None:
    """V2V's n, missing and excluded sum to the completed turns, and so do those of every other figure."""
    entry = build_mode(
        "m", Anchor.ANNOTATED, turns, facts=ModeFacts(), budget_ms=800, slots_ms=[400], stack_ms=400
    )
    completed = entry.ledger.outcomes["completed"]
    delivered = [summary for slot in entry.slots for summary in slot.delivered.values()]
    for summary in (entry.voice_to_voice, entry.ttft, entry.decode_rate, *entry.stages.values(), *delivered):
        assert summary.n + summary.missing + summary.excluded == completed
    assert all(value >= 0 for value in (entry.voice_to_voice.min or 0, entry.voice_to_voice.n))


@given(any_turns(), st.integers(0, 1500))
def test_the_budget_share_is_what_its_definition_says(turns: list[TurnRecord], budget: int) -> None:
    """n and hit follow the definition written out, for any turns and budget."""
    spoken = [
        turn
        for turn in turns
        if turn.speech_in_sample is True or (turn.speech_in_sample is None and turn.outcome != "no_speech")
    ]
    asked = [
        turn for turn in spoken if turn.outcome != "interrupted" and "asked_not_served" not in turn.flags
    ]
    hits = [
        turn
        for turn in asked
        if turn.outcome == "completed"
        and turn.cutoffs == 0
        and "cutoff" not in turn.flags
        and turn.voice_to_voice_ms is not None
        and 0 <= turn.voice_to_voice_ms <= budget
    ]
    assert budget_share(turns, budget) == Share(len(hits), len(asked))


def test_a_stack_that_times_out_does_not_look_fast() -> None:
    """Two turns within the budget and two time-outs are half, and the budget itself is within."""
    turns = [
        made(0, v2v_ms=500),
        made(1, v2v_ms=800),
        made(2, outcome="timed_out"),
        made(3, outcome="failed"),
    ]
    assert budget_share(turns, 800).share == 0.5


def test_a_share_of_nothing_is_empty() -> None:
    """0 of 0 has neither share nor interval."""
    assert Share(0, 0).to_dict() == {"hit": 0, "n": 0, "share": None, "ci95": None}


def test_silence_is_in_no_share() -> None:
    """A sample without speech counts neither for the budget nor for cutoffs."""
    turns = [made(0, outcome="no_speech", speech_in_sample=False), made(1, v2v_ms=500)]
    assert budget_share(turns, 800) == Share(1, 1)
    assert cutoffs_of(turns) == Share(0, 1)


def test_every_cutoff_is_counted_answered_or_not() -> None:
    """A premature end counts whether the turn was then answered, failed, or the agent spoke too early."""
    turns = [
        made(0, cutoffs=2, flags=["cutoff"]),
        made(1, cutoffs=1, outcome="interrupted"),
        made(2, v2v_ms=-50),
        made(3),
    ]
    assert cutoffs_of(turns) == Share(3, 4)


def test_flags_are_counted_on_completed_turns() -> None:
    """Each flag has its count, 0 included; a failed turn's flags are not counted."""
    turns = [made(0, flags=["length"]), made(1, flags=["length", "retried"]), made(2, outcome="failed")]
    found = flag_counts(turns)
    assert {flag: count for flag, count in found.items() if count} == {"length": 2, "retried": 1}
    assert set(found) == {flag.value for flag in Flag}


def test_the_last_record_of_a_turn_counts() -> None:
    """A turn that was recorded again after a resume is told once, as it ended last."""
    first, again, other = made(0, outcome="failed"), made(0), made(1)
    assert latest_records([first, other, again]) == ([again, other], 1)


def test_planned_turns_without_a_record_are_found() -> None:
    """What is missing of the plan is found by mode, sample and repeat, as often as it was planned."""
    entry = PlannedEntry(mode="local/made", sample="sample-000", repeat=0)
    other = PlannedEntry(mode="local/made", sample="sample-000", repeat=1)
    assert missing_turns([entry, other, entry], [made(0)]) == [other, entry]


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.COMPLETED])
def test_only_completed_turns_enter_the_latency_statistics(outcome: Outcome) -> None:
    """A latency in the record of a turn with another outcome is in no percentile."""
    turn = made(0).model_copy(update={"outcome": outcome})
    entry = build_mode(
        "m", Anchor.ANNOTATED, [turn], facts=ModeFacts(), budget_ms=800, slots_ms=[400], stack_ms=None
    )
    assert turn.voice_to_voice_ms == 700
    assert entry.voice_to_voice.n == entry.ttfat.n == entry.slots[0].delivered["tokens"].n == 0
    assert entry.voice_to_voice.p50 is None
