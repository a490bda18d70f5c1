"""The verdict: words that the turns carry, and "cannot tell" where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made, made_marks
from voicebench.analysis.bottleneck import bottleneck_of
from voicebench.analysis.changes import Turns
from voicebench.analysis.report import build_report
from voicebench.analysis.verdict import Verdict, verdict_of, whole_percent
from voicebench.turns.durable import strict_json
from voicebench.turns.records import TurnRecord
from voicebench.turns.timeline import Stage

CONFIG = {"vad": {"kind": "silero", "stop_secs": 0.2}}


def said(records: Sequence[TurnRecord]) -> Verdict:
    """The verdict over these records."""
    return verdict_of(build_report(run_info(config=CONFIG), records), records)


def turns(v2v_ms: Sequence[float], mode: str = "local/made", kind: str = "local") -> list[TurnRecord]:
    """One turn of each latency, each of a sample of its own."""
    return [made(place, v2v_ms=one, mode=mode, mode_kind=kind) for place, one in enumerate(v2v_ms)]


def test_a_mode_that_always_makes_it_is_said_to_with_its_interval() -> None:
    """Twenty of twenty turns are "every turn", with what twenty turns prove."""
    assert said(turns([700.0] * 20)).headline == "made (local) holds 800 ms in every turn [84–100 %]."


def test_the_best_mode_stands_first_and_the_emulated_are_named_so() -> None:
    """Modes are ranked by share, each with its interval, whatever their order in the run."""
    slow = turns([700.0] * 5 + [900.0] * 15, "emulated/slow", "emulated")
    quick = turns([700.0] * 18 + [900.0] * 2)
    headline = said([*slow, *quick]).headline
    assert headline == "made (local) makes 800 ms in 90 % [70–97]; slow (emulated) in 25 % [11–47]."


def test_a_mode_that_never_makes_it_is_said_to_never() -> None:
    """No hit in twenty turns is "never", with the share that it may still be."""
    assert said(turns([900.0] * 20)).headline == "made (local) never made 800 ms in 20 turns [0–16 %]."


@pytest.mark.parametrize("count", [1, 9])
def test_few_turns_are_counted_and_not_claimed(count: int) -> None:
    """Below ten turns there is no share, only how many were in time."""
    verdict = said(turns([700.0] * count))
    assert f"{count} of {count} turns, too few to tell" in verdict.headline
    assert all(one.share is None and "cannot tell" in (one.reason or "") for one in verdict.predictions)


def test_a_run_without_a_completed_turn_is_told_as_such() -> None:
    """Where every turn timed out, no latency, no bottleneck and no slot are claimed."""
    verdict = said([made(place, outcome="timed_out", reason="x") for place in range(12)])
    assert verdict.headline.startswith("No latency was measured: none of 12 turns")
    assert verdict.left.startswith("Cannot tell")
    assert verdict.bottleneck.startswith("Cannot tell")
    assert verdict.advice is None


def test_a_run_without_turns_says_that_it_cannot_tell() -> None:
    """No turns at all give words, not an error."""
    assert said([]).headline.startswith("Cannot tell")


def test_silence_alone_says_nothing_of_the_budget() -> None:
    """Samples without speech are in no share."""
    silent = [made(n, outcome="no_speech", speech_in_sample=False, reason="silence") for n in range(3)]
    assert said(silent).headline.startswith("Cannot tell whether 800 ms are held")


def test_what_is_left_to_the_model_is_the_budget_less_the_other_stages() -> None:
    """Made turns of 700 ms with 300 of the model leave it 400 ms of 800."""
    assert said(turns([700.0] * 12)).left == (
        "Listening and speaking take 400 ms, so the model is left 400 ms, within the usual 400–500."
    )
    short = [made(n, marks=made_marks(vad_stop=350)) for n in range(12)]
    assert "left 250 ms, not the usual 400–500" in said(short).left
    over = [made(n, marks=made_marks(vad_stop=900)) for n in range(12)]
    assert "overrun the budget" in said(over).left


def test_the_bottleneck_is_the_largest_stage_where_it_surely_is() -> None:
    """A stage far above the others is named, and of endpointing the configured wait is told."""
    slow = [made(n, marks=made_marks(llm_first_text=400 + n)) for n in range(12)]
    found = bottleneck_of(Turns(slow))
    assert found is not None
    assert (found.stage, found.sure) == (Stage.LLM_TTFAT, True)
    waiting = [made(n, marks=made_marks(vad_stop=340 + n)) for n in range(12)]
    assert said(waiting).bottleneck == (
        "The principal bottleneck is endpointing, the wait for silence: 346 of 846 ms on average, of which "
        "200 ms are a configured wait: chosen, not computed."
    )


def test_two_stages_about_as_long_are_not_told_apart() -> None:
    """Where resampling changes which stage is the largest, neither is called the bottleneck."""
    even = [
        made(n, marks=made_marks(vad_stop=200 + 40 * (n % 2), llm_first_text=200 + 40 * ((n + 1) % 2)))
        for n in range(12)
    ]
    words = said(even).bottleneck
    assert words.startswith("Cannot tell yet whether")
    assert "endpointing" in words
    assert "llm_ttfat" in words


def test_few_turns_have_no_sure_bottleneck() -> None:
    """Nine equal turns are below what a claim takes."""
    found = bottleneck_of(Turns([made(n, marks=made_marks(vad_stop=500)) for n in range(9)]))
    assert found is not None
    assert not found.sure


def test_advice_is_labelled_as_predicted_and_only_given_where_something_is_won() -> None:
    """A shorter wait that wins turns is advised; where all turns make it there is nothing to advise."""
    assert said(turns([700.0] * 12)).advice is None
    late = [made(n, marks=made_marks(vad_stop=330)) for n in range(12)]
    advice = said(late).advice
    assert advice is not None
    assert advice.startswith("Predicted, not measured")
    assert "endpointing wait of 120 ms to 100 %" in advice


def test_a_share_is_never_rounded_to_all_or_none() -> None:
    """Only none is 0 and only all is 100."""
    told = [whole_percent(share) for share in (0.0, 0.001, 0.4, 0.998, 1.0)]
    assert told == ["0", "< 1", "40", "> 99", "100"]


def test_anchors_are_told_apart_in_the_headline() -> None:
    """Two anchors of one mode have a part of the sentence each."""
    records = [*turns([700.0] * 10), *(made(20 + n, anchor="waveform", v2v_ms=900.0) for n in range(10))]
    headline = said(records).headline
    assert "made (local, annotated)" in headline
    assert "made (local, waveform)" in headline


def test_the_verdict_is_plain_and_deterministic() -> None:
    """As JSON it holds the sentences and their grounds, the same each time."""
    records = [
        *turns([700.0 + 10 * n for n in range(15)]),
        *turns([800.0 + n for n in range(15)], "emulated/x", "emulated"),
    ]
    told = strict_json(said(records).to_dict())
    assert told == strict_json(said(records).to_dict())
    assert b'"headline"' in told


def test_a_slot_that_shows_as_the_usual_one_is_called_so() -> None:
    """What is left is held against the usual slots as it is shown: 399.9 ms are the usual 400."""
    turns = [made(n, marks=made_marks(vad_stop=200.1)) for n in range(12)]
    assert said(turns).left.endswith("the model is left 400 ms, within the usual 400–500.")
