"""The figures that `voicebench measure` gives over a call's turns."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicebench.audio.waveform import Conversation, Turn, conversation
from voicebench.cli.measured import Measured, figures, state_of, to_csv, to_json

SILENT_CALL = conversation(np.zeros(8000, np.float32), np.zeros(8000, np.float32), 8000)


def turn(
    wait_ms: float | None, *, interrupted: bool = False, certain: bool = True, reasons: tuple[str, ...] = ()
) -> Turn:
    """A turn whose user ends at 2 s."""
    onset = None if wait_ms is None else 2 + wait_ms / 1000
    return Turn(1.0, 2.0, onset, None if onset is None else 9.0, wait_ms, interrupted, certain, 10.0, reasons)


def call(*turns: Turn) -> Conversation:
    """A call with these turns and nothing else to tell."""
    return replace(SILENT_CALL, turns=turns, caveats=())


def told(*turns: Turn, budget_ms: float = 800, clip_caveats: tuple[str, ...] = ()) -> Measured:
    """The figures over these turns."""
    return figures(
        call(*turns), file="=call.wav", user_channel="left", budget_ms=budget_ms, clip_caveats=clip_caveats
    )


def test_only_certain_undisturbed_replies_are_in_the_median() -> None:
    """Interrupted, early and uncertain turns are excluded and counted; one without reply is missing."""
    found = told(
        turn(500),
        turn(700),
        turn(100, interrupted=True),
        turn(-300),
        turn(9000, certain=False, reasons=("user_drowned",)),
        turn(None, reasons=("no_reply",)),
    )
    figure = found.voice_to_voice
    assert (figure.n, figure.missing, figure.excluded) == (2, 1, 3)
    assert figure.p50 == 600
    assert found.all_answered.n == 5
    assert {c.code: c.count for c in found.caveats} == {
        "uncertain_turns": 1,
        "cutoff": 1,
        "interrupted": 1,
        "no_reply": 1,
        "few_turns": 2,
    }
    told_of = next(c.text for c in found.caveats if c.code == "uncertain_turns")
    assert "(user's end drowned out: 1)" in told_of


def test_the_budget_counts_missing_and_early_replies_as_misses() -> None:
    """The share is over certain turns that nobody interrupted; no reply and an early one are no hits."""
    found = told(
        turn(800), turn(801), turn(None), turn(-10), turn(5, interrupted=True), turn(5, certain=False)
    )
    assert (found.hits, found.held) == (1, 4)
    plain = to_json(found)["budget"]
    assert plain["share"] == 0.25
    assert plain["ci95"][0] < 0.25 < plain["ci95"][1]


def test_without_turns_figures_are_empty_and_never_0() -> None:
    """A call without turns has n = 0, empty figures, an empty share, and a caveat."""
    plain = to_json(told())
    assert plain["voice_to_voice_ms"]["n"] == 0
    assert plain["voice_to_voice_ms"]["p50"] is None
    assert plain["budget"] == {"hit": 0, "n": 0, "share": None, "ci95": None}
    assert [c["code"] for c in plain["caveats"]] == ["no_turns"]


@given(
    st.lists(
        st.builds(
            turn,
            st.one_of(st.none(), st.floats(-1000, 5000)),
            interrupted=st.booleans(),
            certain=st.booleans(),
        ),
        max_size=30,
    )
)
def test_every_turn_is_counted_once(turns: list[Turn]) -> None:
    """n, missing and excluded add up to the turns, and the hits never exceed what is held."""
    found = told(*turns)
    figure = found.voice_to_voice
    assert figure.n + figure.missing + figure.excluded == len(turns)
    assert 0 <= found.hits <= found.held <= len(turns)
    assert figure.n == sum(state_of(t) == "counted" for t in turns)


def test_what_is_odd_about_the_file_is_told_but_not_what_concerns_mono() -> None:
    """A wrong WAV length is a caveat; one loud channel is none, as the channels are kept apart."""
    codes = [c.code for c in told(turn(500), clip_caveats=("wav_length", "one_channel", "antiphase")).caveats]
    assert codes == ["wav_length", "few_turns"]


def test_the_csv_holds_the_json_figures_and_no_formula() -> None:
    """Each turn is a row with the figures of the JSON; names that look like formulas are text."""
    found = told(turn(-400), turn(None, reasons=("no_reply", "recording_ends"), certain=False))
    rows = list(csv.DictReader(io.StringIO(to_csv(found).decode())))
    assert [row["file"] for row in rows] == ["'=call.wav"] * 2
    assert [row["voice_to_voice_ms"] for row in rows] == ["-400", ""]
    assert rows[1]["reasons"] == "no_reply;recording_ends"
    for row, plain in zip(rows, to_json(found)["turns"], strict=True):
        assert set(plain) <= set(row)
        assert float(row["user_end_s"]) == plain["user_end_s"]


@pytest.mark.parametrize("budget_ms", [1.0, 499.9, 800.0])
def test_the_budget_is_the_callers(budget_ms: float) -> None:
    """A reply exactly at the budget is within it, one beyond it is not."""
    found = told(turn(budget_ms), turn(budget_ms + 0.01), budget_ms=budget_ms)
    assert (found.hits, found.held) == (1, 2)
    assert to_json(found)["budget_ms"] == budget_ms
