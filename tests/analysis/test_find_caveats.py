"""Caveats: each is found where it holds, is silent where it does not, and is worded once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made, made_deltas
from voicebench.analysis.caveats import WORDS, worded
from voicebench.analysis.report import build_report
from voicebench.turns.records import Flag, TurnRecord
from voicebench.turns.timeline import Mark


def found(
    records: list[TurnRecord], info: dict[str, Any] | None = None, **more: Any
) -> dict[str, int | None]:
    """Code to count of the caveats of a report."""
    report = build_report(info or run_info(), records, **more)
    return {caveat.code: caveat.count for caveat in report.caveats}


def many(count: int = 60, **fields: Any) -> list[TurnRecord]:
    """Turns of as many samples, each some ms longer than the last, whose speech was synthesised whole."""
    kept = {"heard": "reply", "speech_s": 3.0, **fields}
    return [made(turn, **{"v2v_ms": 700 + turn % 7, **kept}) for turn in range(count)]


def test_a_sound_run_has_no_caveats() -> None:
    """Sixty plain turns with a warm-up, a noise floor and a whole journal leave nothing to say."""
    assert found(many(), warmup=many(1)) == {}


def test_few_turns_and_few_samples_are_told() -> None:
    """Below 59 turns a p95 is not proven, and below five samples the figures speak of those alone."""
    assert found(many(58), warmup=many(1)) == {"few_turns": 58}
    assert found(many(60, sample="one"), warmup=many(1)) == {"few_samples": 1}


def test_turns_that_never_gave_a_latency_are_told() -> None:
    """A mode of which no turn counts says so instead of counting turns."""
    assert "no_turns" in found([made(0, outcome="failed")])


def test_a_cold_warm_up_and_a_slow_first_turn_are_told_apart() -> None:
    """A slow warm-up is outside the figures; a slow first measured turn is inside them."""
    assert found(many(), warmup=[made(0, v2v_ms=5700)]) == {"cold_first_turn": 1}
    slow = [made(0, v2v_ms=1700, heard="reply", speech_s=1.0), *many()[1:]]
    assert found(slow, warmup=many(1)) == {"slow_first_turn": 1, "outliers": 1}
    assert "no_warm_up" in found(many())


def test_turns_far_above_the_rest_are_counted() -> None:
    """Two turns of ten times the latency are outliers; equal turns have none."""
    records = many()
    for place in (20, 40):
        records[place] = made(place, v2v_ms=7000, heard="reply", speech_s=1.0)
    assert found(records, warmup=many(1)) == {"outliers": 2}


@pytest.mark.parametrize("flag", list(Flag))
def test_every_flag_is_a_caveat_with_its_count(flag: Flag) -> None:
    """Each flag is told under its own code with the number of turns that carry it."""
    records = [made(turn, flags=[flag] if turn < 3 else []) for turn in range(9)]
    assert found(records)[flag.value] == 3


def test_emulated_and_assumed_figures_are_marked() -> None:
    """An emulated mode says so, and an assumed speed says that nobody published it."""
    info = run_info(modes={"local/made": {"published_decode_tok_s": 9, "assumed": True}})
    codes = found([made(turn, mode_kind="emulated") for turn in range(4)], info)
    assert codes["emulated"] == 4
    assert "assumed_speed" in codes


def test_missing_marks_and_missing_latencies_are_told() -> None:
    """A turn without a mark inside, and one without a first sound, are counted each in its own way."""
    records = [
        *many(),
        made(60, without=(Mark.TRANSCRIPT_FINAL,), heard="reply", speech_s=1.0),
        made(61, without=(Mark.FIRST_AUDIBLE,), heard="reply", speech_s=1.0),
    ]
    codes = found(records, warmup=many(1))
    assert (codes["missing_marks"], codes["no_latency"]) == (1, 1)


def test_a_recording_that_disagrees_with_the_marks_is_told() -> None:
    """A recording 11 ms off the marks is told; 10 ms off, of doubtful edges or within its doubt is not."""
    records = many()
    records[3] = records[3].model_copy(update={"waveform_v2v_ms": 703.0 + 11})
    records[4] = records[4].model_copy(update={"waveform_v2v_ms": 704.0 - 10})
    records[5] = records[5].model_copy(update={"waveform_v2v_ms": 900.0, "waveform_certain": False})
    records[6] = records[6].model_copy(update={"waveform_v2v_ms": 736.0, "waveform_uncertainty_ms": 30.0})
    report = build_report(run_info(), records, warmup=many(1))
    assert [(caveat.code, caveat.count) for caveat in report.caveats] == [("waveform_disagrees", 1)]
    assert "over 10 ms off the marks" in report.caveats[0].text


def test_coarse_deltas_and_assumed_speech_are_told() -> None:
    """Deltas of three tokens blur the gaps between tokens, and a stated pace of speech is no measurement."""
    records = many(60, deltas=made_deltas(5, tokens=3), heard="clause")
    codes = found(records, warmup=many(1))
    assert codes == {"several_tokens_a_delta": None, "speech_assumed": 60}


def test_different_models_under_one_mode_are_told() -> None:
    """A mode answered by two models is no single mode."""
    records = [*many(59), made(59, model="made-2", heard="reply", speech_s=1.0)]
    assert found(records, warmup=many(1)) == {"mixed_models": 2}


def test_notes_of_single_turns_are_counted_under_their_own_code() -> None:
    """A turn's own notes are counted by code, known or not, once a turn."""
    records = [
        made(turn, caveats=["wav_length", "wav_length", "odd_thing"] if turn else []) for turn in range(4)
    ]
    codes = found(records)
    assert (codes["wav_length"], codes["odd_thing"]) == (3, 3)
    assert worded("odd_thing", 3) == "Turns with the note “odd thing”: 3."


def test_an_unknown_noise_floor_says_why() -> None:
    """Without a noise floor the reason stands in the caveat."""
    info = run_info(noise_floor_ms=None, noise_floor_reason="the calibration timed out")
    report = build_report(info, [made(0)])
    assert any("the calibration timed out" in caveat.text for caveat in report.caveats)


def test_made_samples_are_told() -> None:
    """Samples made by speech synthesis are counted."""
    assert found(many(), run_info(synthetic_samples=12), warmup=many(1)) == {"synthetic_samples": 12}


@pytest.mark.parametrize("code", list(WORDS))
def test_words_are_whole_sentences_with_their_numbers(code: str) -> None:
    """Every caveat is a sentence, and nothing is left to fill in."""
    text = worded(code, 3, "x")
    assert text[0].isupper()
    assert text.endswith((".", ")"))
    assert "{" not in text


def test_every_flag_has_words_of_its_own() -> None:
    """No flag is told by its code alone."""
    assert {flag.value for flag in Flag} <= WORDS.keys()
