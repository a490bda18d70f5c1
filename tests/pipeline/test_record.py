"""From what was heard to the record: one outcome, its flags, and figures that are empty rather than wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.made_turns import at, event, facts, heard_person, played, spoken, stream, turn
from voicebench.clock import NS_PER_MS
from voicebench.pipeline.observer import Kind
from voicebench.pipeline.record import failed_record, record
from voicebench.pipeline.session import Heard
from voicebench.plan.modes import Mode
from voicebench.stages.shared import Work
from voicebench.turns.records import Flag, Outcome, TurnRecord, Usage

ERROR = event(Kind.ERROR, 700, "it broke", by="SomeTTS#0")
NOTHING = played()


def early_turn(*more: Any) -> list[Any]:
    """A turn that was ended 700 ms before the last word."""
    return [
        event(Kind.TURN_START, -2900),
        event(Kind.TRANSCRIPT, -750, "I want"),
        event(Kind.CONTEXT, -701),
        event(Kind.TURN_END, -700),
        *more,
    ]


OUTCOMES: dict[str, tuple[Heard, Outcome, str]] = {
    "answered": (turn(), Outcome.COMPLETED, ""),
    "the stream failed": (
        turn(streams=[stream(status="failed", detail="ServerError: no")], ending="error"),
        Outcome.FAILED,
        "LLM: ServerError: no",
    ),
    "a stage raised before any sound": (
        turn([*heard_person(), ERROR], [], NOTHING, "error"),
        Outcome.FAILED,
        "SomeTTS#0: it broke",
    ),
    "a stage raised and the time ran out": (
        turn([*heard_person(), ERROR], [stream()], NOTHING, "timed_out"),
        Outcome.FAILED,
        "it broke",
    ),
    "the pipeline stopped": (turn([], [], NOTHING, "error"), Outcome.FAILED, "the pipeline stopped"),
    "text without sound": (
        turn(heard_person() + spoken(seconds=0.0), sounds=NOTHING, ending="silent_reply"),
        Outcome.FAILED,
        "no sound",
    ),
    "no transcript in time": (
        turn(list(heard_person()[:4]), [], NOTHING, "timed_out"),
        Outcome.TIMED_OUT,
        "no transcript came",
    ),
    "the turn was never ended": (
        turn(heard_person()[:5], [], NOTHING, "timed_out"),
        Outcome.TIMED_OUT,
        "the turn was not ended",
    ),
    "the stream hung": (
        turn(heard_person(), [stream(status="running")], NOTHING, "timed_out"),
        Outcome.TIMED_OUT,
        "stream was still open",
    ),
    "the voice hung": (
        turn(heard_person() + spoken()[:1], [stream()], NOTHING, "timed_out"),
        Outcome.TIMED_OUT,
        "the reply had not sounded",
    ),
    "the SDK timed out": (
        turn([*heard_person(), ERROR], [stream(status="timed_out", first=None)], NOTHING, "error"),
        Outcome.TIMED_OUT,
        "LLM",
    ),
    "rate limited": (
        turn(
            [*heard_person(), ERROR],
            [stream(status="rate_limited", first=None, detail="429")],
            NOTHING,
            "error",
        ),
        Outcome.RATE_LIMITED,
        "429",
    ),
    "overloaded in mid-answer": (
        turn([*heard_person(), ERROR], [stream(status="overloaded", detail="529")], NOTHING, "error"),
        Outcome.OVERLOADED,
        "529",
    ),
    "cut short, and its beginning was heard": (
        turn(streams=[stream(status="truncated", detail="ended without its terminal marker")]),
        Outcome.TRUNCATED,
        "terminal marker",
    ),
    "cut short before any text": (
        turn(heard_person(), [stream(first=None, status="truncated", detail="ended")], NOTHING, "no_reply"),
        Outcome.TRUNCATED,
        "ended",
    ),
    "the connection broke, which the pipeline tells too": (
        turn(heard_person() + spoken() + [ERROR], [stream(status="truncated", detail="gone")]),
        Outcome.TRUNCATED,
        "gone",
    ),
    "nobody was understood": (
        turn(heard_person()[:4], [], NOTHING, "nobody_spoke"),
        Outcome.NO_SPEECH,
        "no speech was recognised",
    ),
    "the model was never asked": (
        turn(heard_person(), [], NOTHING, "nobody_spoke"),
        Outcome.FAILED,
        "not asked",
    ),
    "only a stale reply": (
        turn(early_turn(*spoken(100, 150)), [stream(-690, -500)], played((200, 700)), "stale"),
        Outcome.INTERRUPTED,
        "half of what was said",
    ),
    "a stale reply, and none to the whole": (
        turn(
            early_turn(*spoken(-650, -600), *heard_person()[3:]),
            [stream(-690, -680, end=-660), stream(first=None)],
            played((-500, -200)),
            "no_reply",
        ),
        Outcome.INTERRUPTED,
        "half of what was said",
    ),
    "cancelled by a noise": (
        turn(
            [*heard_person(), event(Kind.TURN_START, 400), event(Kind.INTERRUPTION, 401)],
            [stream(status="cancelled", first=None, end=402)],
            NOTHING,
            "cancelled",
        ),
        Outcome.INTERRUPTED,
        "cancelled by noise",
    ),
    "no text": (
        turn(heard_person(), [stream(first=None)], NOTHING, "no_reply"),
        Outcome.EMPTY,
        "no text",
    ),
    "blank text": (
        turn(heard_person(), [stream(texts=(" ", "\n"))], NOTHING, "no_reply"),
        Outcome.EMPTY,
        "no text",
    ),
    "only a tool call": (
        turn(heard_person(), [stream(first=None, tool_calls=1)], NOTHING, "no_reply"),
        Outcome.TOOL_CALL,
        "tool call",
    ),
    "text and then a tool call": (turn(streams=[stream(tool_calls=1)]), Outcome.COMPLETED, ""),
    "a token limit": (turn(streams=[stream(finish="length")]), Outcome.COMPLETED, ""),
    "a later clause failed": (turn(heard_person() + spoken() + [ERROR]), Outcome.COMPLETED, ""),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_turn_has_one_outcome_and_its_reason(name: str) -> None:
    """Each way in which a turn can end has its one outcome, and says why where it was not completed."""
    heard, outcome, reason = OUTCOMES[name]
    made = record(facts(), heard)
    assert made.outcome is outcome
    assert (made.reason is None) is (outcome is Outcome.COMPLETED)
    assert reason in (made.reason or "")
    assert made.measured is (outcome is Outcome.COMPLETED)
    if outcome is not Outcome.COMPLETED:
        assert made.stages_ms is None


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_record_is_a_line_of_strict_json(name: str) -> None:
    """Whatever happened, the record can be written without NaN and read back equal."""
    made = record(facts(), OUTCOMES[name][0])
    line = made.model_dump_json()
    json.loads(line, parse_constant=lambda text: pytest.fail(f"{text} in a record"))
    assert TurnRecord.model_validate_json(line) == made


def test_a_completed_turn_is_told_in_full() -> None:
    """Latency, stages, texts, counts and quality of a plain turn stand in its record."""
    log = stream(texts=("It is", " Paris."))
    log.usage = Usage(input_tokens=20, output_tokens=4)
    log.served = {"model": "made-1"}
    log.asked = {"speed": "fast"}
    made = record(facts(), turn(streams=[log]))
    assert made.voice_to_voice_ms == 640.0
    assert made.stages_ms is not None
    assert sum(value or 0 for value in made.stages_ms.values()) == pytest.approx(640.0, abs=1e-9)
    assert made.stages_ms["clause"] == 30.0
    assert (made.transcript, made.reply, made.first_clause) == ("What is it?", "It is Paris.", "It is Paris.")
    assert made.wer is not None
    assert (made.wer.errors, made.wer.words) == (0, 3)
    assert made.answer_correct is True
    slot_start = 325
    assert [delta[:2] for delta in made.deltas] == [
        ((500 - slot_start) * NS_PER_MS, 5),
        ((520 - slot_start) * NS_PER_MS, 7),
    ]
    assert sum(delta[2] for delta in made.deltas) == pytest.approx(4)
    assert made.clause_ready_ns == (530 - slot_start) * NS_PER_MS
    assert made.reply_end_ns == (520 - slot_start) * NS_PER_MS
    assert made.speech_s == 0.5
    assert made.speech_wait_ms == 0.0
    assert (made.asked, made.served, made.finish_reason) == ({"speed": "fast"}, {"model": "made-1"}, "stop")
    assert [(one.request_ns, one.status) for one in made.attempts] == [(325 * NS_PER_MS, "ok")]
    assert (made.flags, made.caveats, made.cutoffs, made.reason) == ((), (), 0, None)
    assert made.marks_ns["speech_end"] == 0


def test_a_reply_that_did_not_end_by_itself_has_no_end() -> None:
    """The end of a truncated reply is unknown: what came is kept, when it would have ended is empty."""
    made = record(facts(), turn(streams=[stream(status="truncated")]))
    assert made.reply_end_ns is None
    assert len(made.deltas) == 2


def test_an_attempt_of_a_request_that_failed_keeps_its_partial_text() -> None:
    """Overload in mid-answer keeps the text that had come, and stays out of the statistics."""
    made = record(facts(), OUTCOMES["overloaded in mid-answer"][0])
    assert made.reply == "It is Paris."
    assert made.voice_to_voice_ms is None
    assert [one.status for one in made.attempts] == ["overloaded"]


def test_figures_that_do_not_exist_are_empty() -> None:
    """A turn in which nobody spoke has no latency, no stages, no counts: nothing is 0."""
    heard = turn([], [], NOTHING, "nobody_spoke", speech=False)
    made = record(facts(has_speech=False, reference="", acceptable=()), heard)
    assert made.outcome is Outcome.NO_SPEECH
    for name in (
        "voice_to_voice_ms",
        "stages_ms",
        "reply",
        "transcript",
        "wer",
        "answer_correct",
        "speech_s",
        "clause_ready_ns",
        "reply_end_ns",
        "usage",
        "token_count",
        "first_clause",
    ):
        assert getattr(made, name) is None
    assert made.deltas == ()
    assert made.marks_ns == {}


def test_silence_is_no_speech_without_blame() -> None:
    """Nobody understood where nobody spoke is as it should be and needs no reason."""
    made = record(facts(has_speech=False), turn([], [], NOTHING, "nobody_spoke", speech=False))
    assert (made.outcome, made.reason) == (Outcome.NO_SPEECH, None)


def test_an_answer_to_silence_is_told() -> None:
    """A transcript of nothing that was answered is completed without a latency, and carries a caveat."""
    made = record(facts(has_speech=False), turn(speech=False))
    assert made.outcome is Outcome.COMPLETED
    assert "answered_silence" in made.caveats
    assert made.voice_to_voice_ms is None


def test_an_agent_that_talks_over_the_person_counts_as_a_cutoff() -> None:
    """A reply that began before the last word is completed, flagged, its latency negative, without stages,
    and outside the statistics."""
    heard = turn(early_turn(*spoken(-400, -350, 0.9)), [stream(-690, -500)], played((-300, 600)), "stale")
    made = record(facts(), heard)
    assert made.outcome is Outcome.COMPLETED
    assert made.voice_to_voice_ms == -300.0
    assert made.stages_ms is None
    assert Flag.CUTOFF in made.flags
    assert not made.measured


def test_a_cutoff_is_flagged_and_counted() -> None:
    """An end of turn before the last word flags an answered turn and is counted."""
    heard = turn(early_turn(*heard_person()[1:], *spoken()), [stream()], played((640, 1140)))
    made = record(facts(), heard)
    assert made.outcome is Outcome.COMPLETED
    assert made.cutoffs == 1
    assert Flag.CUTOFF in made.flags
    assert not made.measured
    assert made.transcript == "I want What is it?"


def test_a_missing_mark_is_a_caveat() -> None:
    """A completed turn without a transcript or a detector's stop says so."""
    kept = [one for one in heard_person() if one.kind not in (Kind.TRANSCRIPT, Kind.VAD_STOP)]
    made = record(facts(), turn(kept + spoken()))
    assert made.outcome is Outcome.COMPLETED
    assert {"missing_transcript_final", "missing_vad_stop"} <= set(made.caveats)
    assert made.stages_ms is not None
    assert made.stages_ms["asr"] is None
    assert made.measured


def test_flags_say_what_is_worth_knowing() -> None:
    """A token limit, an estimated count, a late source and a busy loop each set their flag."""
    heard = turn(streams=[stream(finish="length")])
    heard.playback.worst_late_ns = 80 * NS_PER_MS
    heard.lag_ns = 500 * NS_PER_MS
    made = record(facts(), heard)
    assert set(made.flags) == {Flag.LENGTH, Flag.COUNT_ESTIMATED, Flag.LATE_CHUNK, Flag.CLIENT_LIMITED}
    assert made.lag_ms == 500.0
    assert not made.measured


@pytest.mark.parametrize(
    ("due_ms", "late_ms", "flagged"), [(100, 80, True), (100, 20, False), (400, 80, False)]
)
def test_late_silence_counts_until_the_end_of_the_turn(due_ms: float, late_ms: float, flagged: bool) -> None:
    """Silence that comes late while the end of the turn is looked for is flagged as late speech is; what
    comes after the end is committed moves nothing."""
    heard = turn(heard_person(turn_end=320) + spoken())
    heard.playback.late_silence.append((at(due_ms), round(late_ms * NS_PER_MS)))
    assert (Flag.LATE_CHUNK in record(facts(), heard).flags) is flagged


def test_caveats_of_stream_and_clip_are_kept_once() -> None:
    """What the clip, the stream and the stages have to say comes together, each code once."""
    log = stream(tool_calls=1)
    log.caveats = ["no_finish_reason", "no_finish_reason"]
    heard = turn(heard_person() + spoken() + [event(Kind.TRANSCRIPT, 900, "late")], [log])
    heard.notes["asr_fallback"] = 0.4
    made = record(facts(caveats=("clipped",)), heard)
    assert made.caveats == (
        "clipped",
        "no_finish_reason",
        "text_then_tool_call",
        "transcript_after_turn_end",
        "asr_fallback",
    )


def test_a_request_without_the_last_segment_is_told() -> None:
    """Where the turn ended on the transcript of an earlier segment, the model was asked without what was
    said last: that is a cutoff. A service that streams may have its transcript before the stop."""
    early = heard_person(vad_stop=250, transcript=100) + spoken()
    late = event(Kind.TRANSCRIPT, 900, "and the rest")
    heard = turn([*early, late])
    assert "asked_before_last_transcript" in record(facts(), heard).caveats
    assert Flag.CUTOFF in record(facts(), heard).flags
    heard.asr.by_segment = False
    assert "asked_before_last_transcript" not in record(facts(), heard).caveats
    for complete in (turn(early), turn(), turn([*heard_person(), *spoken(), late])):
        assert "asked_before_last_transcript" not in record(facts(), complete).caveats
        assert Flag.CUTOFF not in record(facts(), complete).flags


def test_work_is_summed_by_name_beside_the_stages() -> None:
    """Two transcriptions of a split turn are one figure; the language model's is its whole stream."""
    heard = turn(work=[Work("asr", at(0), at(100)), Work("asr", at(200), at(250)), Work("tts_total", 0, 1)])
    made = record(facts(), heard)
    assert made.work_ms["asr"] == 150.0
    assert made.work_ms["llm_total"] == 200.0


def test_scripted_replies_are_not_judged() -> None:
    """An emulated reply is neither right nor wrong."""
    mode = Mode(id="emulated/m", kind="emulated", provider="x", api="scripted", model="y")
    assert record(facts(mode=mode), turn()).answer_correct is None


def test_a_turn_that_could_not_be_run_is_a_failed_record() -> None:
    """A file that cannot be read fails its turn with the reason, and every figure is empty."""
    made = failed_record(facts(caveats=("clipped",)), "a.wav: the file is empty.")
    assert (made.outcome, made.reason) == (Outcome.FAILED, "a.wav: the file is empty.")
    assert made.caveats == ("clipped",)
    assert made.voice_to_voice_ms is None
    assert TurnRecord.model_validate_json(made.model_dump_json()) == made
