"""The report: the contract of report.json, one entry a mode and anchor, empty figures with reasons."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.analysis.made_run import made_run, run_info
from tests.turns.made import MS, made, made_deltas, made_marks
from voicebench.analysis.report import build_report
from voicebench.turns.durable import strict_json
from voicebench.turns.journal import JournalReading
from voicebench.turns.timeline import Mark, Stage

SUMMARY = {"n", "missing", "excluded", "mean", "p50", "p90", "p95", "p99", "min", "max", "ci95_p50"}

MODE_FIELDS = {
    *("mode", "kind", "model", "anchor", "asked", "served", "turns", "flags", "cutoffs"),
    *("voice_to_voice_ms", "budget", "stages_ms", "stages_at_p50_ms", "work_ms", "ttft_ms", "ttfat_ms"),
    *("slots", "headline_tokens", "decode_rate_tok_s", "inter_token_ms", "wer", "answers", "usd_per_turn"),
}

OUTCOMES = {
    *("completed", "interrupted", "no_speech", "empty", "tool_call"),
    *("truncated", "overloaded", "rate_limited", "timed_out", "failed"),
}


def plain(*arguments: Any, **named: Any) -> dict[str, Any]:
    """The report as it is after JSON."""
    told: dict[str, Any] = json.loads(strict_json(build_report(*arguments, **named).to_dict()))
    return told


def test_the_contract_of_report_json_holds() -> None:
    """Every field that people rely on is there, under its name and in its form."""
    info, records = made_run()
    told = plain(info, records)
    assert told["schema"] == 1
    run = {"id", "started_at", "config", "environment", "versions", "noise_floor_ms", "complete"}
    assert run <= told["run"].keys()
    assert told["budget_ms"] == 800
    assert {"code", "text", "mode", "count"} <= told["caveats"][0].keys()
    for entry in told["modes"]:
        assert entry.keys() >= MODE_FIELDS
        assert {"planned", *OUTCOMES} <= entry["turns"].keys()
        assert {"hit", "n", "share", "ci95"} <= entry["budget"].keys()
        assert {"count", "n"} <= entry["cutoffs"].keys()
        assert list(entry["stages_ms"]) == list(entry["stages_at_p50_ms"]) == [stage.value for stage in Stage]
        summaries = ("voice_to_voice_ms", "ttft_ms", "ttfat_ms", "decode_rate_tok_s", "inter_token_ms")
        for summary in (*(entry[name] for name in summaries), *entry["stages_ms"].values()):
            assert set(summary) == SUMMARY
        assert [slot["slot"] for slot in entry["slots"]] == ["400", "500", "residual", "residual_stack"]
        for slot in entry["slots"]:
            for name in ("tokens", "characters", "words", "sentences", "speech_s"):
                assert set(slot[name]) == SUMMARY
            assert {"share", "n"} <= slot["clause_ready"].keys() & slot["ended_before_deadline"].keys()
        assert set(entry["headline_tokens"]) == {"400", "500"}
        assert {"measured", "published"} <= entry["headline_tokens"]["400"].keys()
        assert {"correct", "n"} <= entry["answers"].keys()
        assert {"wer", "errors", "words", "n", "by_condition"} <= entry["wer"].keys()


def test_figures_equal_those_worked_out_from_the_records() -> None:
    """Percentiles, shares, word errors and answers are what the counted records say."""
    info, records = made_run()
    entry = plain(info, records)["modes"][0]
    mine = [one for one in records if one.mode == "local/quick"]
    counted = [one for one in mine if one.outcome == "completed" and not one.flags]
    latencies = [one.voice_to_voice_ms for one in counted]
    assert entry["voice_to_voice_ms"]["n"] == len(latencies)
    for percent in (50, 90, 95):
        expected = np.percentile(np.array(latencies, dtype=float), percent)
        assert entry["voice_to_voice_ms"][f"p{percent}"] == pytest.approx(float(expected))
    hits = [one for one in mine if one.outcome == "completed" and (one.voice_to_voice_ms or 0) <= 800]
    assert (entry["budget"]["hit"], entry["budget"]["n"]) == (len(hits), len(mine))
    assert entry["wer"]["errors"] == sum(one.wer.errors for one in mine if one.wer)
    assert entry["wer"]["wer"] == pytest.approx(entry["wer"]["errors"] / (6 * len(mine)))
    assert sum(found["n"] for found in entry["wer"]["by_condition"].values()) == len(mine)
    judged = [one.answer_correct for one in mine if one.answer_correct is not None]
    assert (entry["answers"]["correct"], entry["answers"]["n"]) == (sum(judged), len(judged))


def test_the_stages_shown_at_a_percentile_add_up() -> None:
    """The stage means at p50 and p95 sum to the V2V told beside them, which lies near that percentile."""
    info, records = made_run(turns=200)
    for entry in plain(info, records)["modes"]:
        for percent in ("p50", "p95"):
            total = sum(entry[f"stages_at_{percent}_ms"].values())
            assert total == pytest.approx(entry[f"stages_at_{percent}"]["voice_to_voice_ms"])
            assert total == pytest.approx(entry["voice_to_voice_ms"][percent], rel=0.03)


def test_figures_of_different_anchors_are_never_pooled() -> None:
    """A mode measured from two anchors has two entries, each with its own turns, and a caveat."""
    records = [
        made(turn, v2v_ms=500 if turn % 2 else 900, anchor="waveform" if turn % 2 else "annotated")
        for turn in range(20)
    ]
    told = plain(run_info(), records)
    assert [(one["anchor"], one["voice_to_voice_ms"]["p50"]) for one in told["modes"]] == [
        ("annotated", 900),
        ("waveform", 500),
    ]
    assert "mixed_anchors" in {caveat["code"] for caveat in told["caveats"]}
    assert told["residual_slot_ms"].keys() == {"annotated", "waveform"}


def test_a_partial_run_is_told_as_one() -> None:
    """Planned turns without a record are in planned, beside in not_run, and in no share."""
    turns = [made(turn) for turn in range(10)]
    told = plain(run_info(turns, complete=False), turns[:4])
    (entry,) = told["modes"]
    assert (entry["turns"]["planned"], entry["turns"]["completed"], entry["turns"]["not_run"]) == (10, 4, 6)
    assert entry["budget"]["n"] == 4
    assert told["run"]["complete"] is False
    assert ("partial_run", 6) in {(caveat["code"], caveat["count"]) for caveat in told["caveats"]}


def test_a_run_marked_complete_that_lacks_turns_is_not_complete() -> None:
    """The journal has the last word on whether everything was run."""
    turns = [made(turn) for turn in range(3)]
    assert plain(run_info(turns), turns[:2])["run"]["complete"] is False
    assert plain(run_info(turns), turns)["run"]["complete"] is True


def test_a_mode_without_any_record_is_still_told() -> None:
    """A planned mode of which nothing was run has an entry with its facts, empty figures and reasons."""
    turns = [made(0), made(1, mode="live/other")]
    facts = {"live/other": {"kind": "live", "model": "other-1"}}
    told = plain(run_info(turns, complete=False, modes=facts), turns[:1])
    other = told["modes"][1]
    assert (other["mode"], other["kind"], other["model"]) == ("live/other", "live", "other-1")
    assert (other["turns"]["planned"], other["turns"]["not_run"]) == (1, 1)
    assert other["voice_to_voice_ms"]["p50"] is None
    assert other["budget"] == {"hit": 0, "n": 0, "share": None, "ci95": None}
    assert other["reasons"]["voice_to_voice_ms"] == "no turn was completed"


def test_an_empty_run_is_told_without_a_figure() -> None:
    """A run without turns or plan has no mode and is still a report."""
    told = plain(run_info(complete=False), [])
    assert told["modes"] == []
    assert "unfinished_run" in {caveat["code"] for caveat in told["caveats"]}


def test_what_does_not_exist_is_null_with_a_reason_and_never_zero() -> None:
    """Without sound, deltas, price, reference and answers those figures are empty, each with a reason."""
    record = made(
        0, without=(Mark.FIRST_AUDIBLE, Mark.LLM_FIRST_TEXT, Mark.LLM_FIRST_TOKEN), deltas=(), reply=None
    )
    (entry,) = plain(run_info(), [record])["modes"]
    for name in ("voice_to_voice_ms", "ttft_ms", "ttfat_ms", "decode_rate_tok_s", "inter_token_ms"):
        assert entry[name]["n"] == 0
        assert entry[name]["missing"] == 1
        assert entry[name]["p50"] is entry[name]["mean"] is None
    empty = ("wer", "answers", "usd_per_turn", "slots.400.tokens", "headline_tokens.400.measured")
    assert {"voice_to_voice_ms", "stages_at_p50_ms", "ttft_ms", *empty} <= entry["reasons"].keys()
    assert entry["wer"]["wer"] is entry["answers"]["correct"] is entry["headline_tokens"]["400"]["measured"]
    assert entry["stages_at_p50_ms"] is None


def test_reasons_stand_only_where_a_figure_is_empty() -> None:
    """A run with every figure gives no reasons but for what was never asked of it."""
    info, records = made_run(turns=120)
    (quick, slow) = plain(info, records)["modes"]
    headlines = {"headline_tokens.400.published", "headline_tokens.500.published"}
    assert set(quick["reasons"]) == {"waveform_difference_ms", *headlines}
    assert set(slow["reasons"]) == {"waveform_difference_ms", "answers"}


def test_emulated_replies_are_not_judged() -> None:
    """An emulated mode's answers are null, for the reason that they are scripted."""
    info, records = made_run()
    slow = plain(info, records)["modes"][1]
    assert slow["kind"] == "emulated"
    assert (slow["answers"]["correct"], slow["answers"]["reason"]) == (None, "scripted")


def test_the_clause_is_ready_in_the_residual_slot_as_often_as_the_budget_is_held() -> None:
    """Over completed turns, the residual slot's share of ready clauses is the share within the budget."""
    info, records = made_run()
    for entry in plain(info, records)["modes"]:
        residual = next(slot for slot in entry["slots"] if slot["slot"] == "residual")
        mine = [one for one in records if one.mode == entry["mode"] and one.outcome == "completed"]
        counted = [one.voice_to_voice_ms for one in mine if not one.flags]
        hits = sum(latency is not None and latency <= 800 for latency in counted)
        assert (residual["clause_ready"]["hit"], residual["clause_ready"]["n"]) == (hits, len(counted))


def test_the_stacks_residual_slot_is_one_number_for_all_modes() -> None:
    """Every mode's residual slots carry the same ms: the budget less the median of the other stages."""
    info, records = made_run()
    told = plain(info, records)
    slots = {
        slot["slot_ms"]
        for entry in told["modes"]
        for slot in entry["slots"]
        if slot["slot"].startswith("residual")
    }
    rests = [
        sum(part or 0 for name, part in one.stages_ms.items() if name not in ("llm_ttfat", "clause"))
        for one in records
        if one.measured and one.stages_ms
    ]
    assert slots == {told["residual_slot_ms"]["annotated"]}
    assert slots.pop() == pytest.approx(800 - float(np.median(rests)))


def test_slots_and_budget_come_from_the_run_or_the_caller() -> None:
    """What run.json or its config states holds unless the caller asks for other values."""
    turns = [made(0)]
    told = plain(run_info(config={"budget_ms": 600, "slots_ms": [300]}), turns)
    assert told["budget_ms"] == 600
    assert told["modes"][0]["slots"][0]["slot"] == "300"
    assert told["modes"][0]["budget"]["hit"] == 0
    told = plain(run_info(budget_ms=600), turns, budget_ms=900, slots_ms=[250.5])
    assert told["budget_ms"] == 900
    assert told["modes"][0]["slots"][0]["slot"] == "250.5"


def test_headline_tokens_stand_beside_delivered_ones() -> None:
    """65 tok/s published make 26 in 400 ms, however long the wait; delivered tokens count the wait."""
    deltas = made_deltas(60, first_ms=300, gap_ms=10)
    info = run_info(modes={"local/made": {"published_decode_tok_s": 65, "published_source": "a page"}})
    (entry,) = plain(info, [made(turn, deltas=deltas) for turn in range(3)])["modes"]
    headline = entry["headline_tokens"]["400"]
    assert headline == {"measured": 40, "published": 26, "published_source": "a page", "assumed": False}
    assert entry["slots"][0]["tokens"]["p50"] == 11
    sweep = entry["tokens_over_ttft"][0]
    assert dict(zip(sweep["ttft_ms"], sweep["tokens"], strict=True))[300] == 11


def test_first_token_and_first_text_are_two_figures_from_the_request() -> None:
    """Hidden reasoning shows as a first text long after the first token."""
    marks = {**made_marks(llm_first_text=600), Mark.LLM_FIRST_TOKEN: (310 + 50) * MS}
    (entry,) = plain(run_info(), [made(0, marks=marks)])["modes"]
    assert (entry["ttft_ms"]["p50"], entry["ttfat_ms"]["p50"]) == (50, 600)


def test_the_warm_up_is_told_apart() -> None:
    """A warm-up turn of 5.7 s is shown by itself and moves no percentile by anything."""
    records = [made(turn, v2v_ms=700 + turn) for turn in range(30)]
    cold = made(0, v2v_ms=5700)
    with_it = plain(run_info(), records, warmup=[cold])
    without = plain(run_info(), records)
    assert with_it["modes"][0]["voice_to_voice_ms"] == without["modes"][0]["voice_to_voice_ms"]
    assert with_it["modes"][0]["warmup_voice_to_voice_ms"] == [5700]


def test_the_report_is_a_function_of_its_records() -> None:
    """Made twice, also from records in JSON and back, it is the same."""
    info, records = made_run()
    again = [type(one).model_validate_json(one.model_dump_json()) for one in records]
    assert plain(info, records) == plain(json.loads(json.dumps(info)), again)


def test_what_the_journal_held_beside_its_turns_is_told() -> None:
    """Torn and unreadable lines, newer fields and repeated records are caveats with counts."""
    reading = JournalReading(
        (), torn_lines=1, problems=("line 3: no", "line 4: no"), unknown_fields=("mood",)
    )
    told = plain(run_info(), [made(0), made(0)], reading=reading)
    found = {caveat["code"]: caveat["count"] for caveat in told["caveats"]}
    assert (found["torn_journal"], found["unreadable_lines"], found["newer_fields"]) == (1, 2, 1)
    assert found["repeated_records"] == 1
    assert told["modes"][0]["turns"]["planned"] == 1


def test_text_of_any_kind_survives_into_strict_json() -> None:
    """Names with quotes, escapes, lone surrogates and NaN in the config make no invalid JSON."""
    records = [made(0, sample='a"\x1b\u2028<', outcome="failed", reason="half \ud83d", mode="x/\ud800")]
    told = plain(run_info(config={"rate": float("nan")}), records)
    assert told["run"]["config"] == {"rate": None}
    assert told["modes"][0]["outcome_reasons"]["failed"] == {"half \ufffd": 1}
