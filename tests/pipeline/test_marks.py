"""From events to marks: which attempt answered, and which instants are its own."""

from __future__ import annotations

import pytest

from tests.pipeline.made_turns import answered, at, event, heard_person, in_ms, played, spoken, stream
from voicebench.pipeline.marks import attempts
from voicebench.pipeline.observer import Event, Kind
from voicebench.turns.stream import StreamLog
from voicebench.turns.timeline import Mark, Stage, Timeline


def test_one_attempt_gives_every_mark() -> None:
    """A plain turn has one attempt, whose instants are the marks."""
    found = answered(heard_person() + spoken(), [stream()], played((640, 1140)))
    assert in_ms(found.marks) == {
        "speech_end": 0,
        "vad_stop": 200,
        "transcript_final": 300,
        "turn_end": 320,
        "llm_request": 325,
        "llm_first_token": 500,
        "llm_first_text": 500,
        "tts_request": 530,
        "tts_first_byte": 600,
        "first_audible": 640,
    }
    assert (found.cutoffs, found.stale_heard) == (0, False)


def test_events_may_come_in_any_order() -> None:
    """The instants count, not the order in which the observer told them."""
    events = heard_person() + spoken()
    forward = answered(events, [stream()], played((640, 1140)))
    backward = answered(events[::-1], [stream()], played((640, 1140)))
    assert forward.marks == backward.marks


def split_turn() -> tuple[list[Event], list[StreamLog]]:
    """A pause at -1000 ms ended the turn early; the person went on, and the reply was interrupted."""
    events = [
        event(Kind.TURN_START, -2900),
        event(Kind.VAD_STOP, -800),
        event(Kind.TRANSCRIPT, -700, "I want an apple"),
        event(Kind.CONTEXT, -681),
        event(Kind.TURN_END, -680),
        *spoken(-400, -350, 0.5, "Take it."),
        event(Kind.TURN_START, -250),
        event(Kind.INTERRUPTION, -249),
        event(Kind.VAD_STOP, 200),
        event(Kind.TRANSCRIPT, 300, "or rather a pear"),
        event(Kind.CONTEXT, 319),
        event(Kind.TURN_END, 320),
        *spoken(),
    ]
    return events, [stream(-675, -500, end=-450), stream()]


def test_a_pause_that_splits_the_turn_gives_one_answer() -> None:
    """The stale reply never counts: the marks are those of the request after the last word, and the early
    end is a cutoff."""
    events, streams = split_turn()
    account = played((-340, -249), (640, 1140))
    found = answered(events, streams, account)
    marks = in_ms(found.marks)
    assert len(attempts(events, streams, account)) == 2
    assert (marks["vad_stop"], marks["transcript_final"], marks["turn_end"]) == (200, 300, 320)
    assert (marks["llm_request"], marks["tts_first_byte"], marks["first_audible"]) == (325, 600, 640)
    assert found.cutoffs == 1
    assert found.stale_heard


def test_a_cutoff_counts_though_nothing_of_it_was_heard() -> None:
    """An early end of turn whose reply never sounded is a cutoff all the same."""
    events, streams = split_turn()
    found = answered(events, streams, played((640, 1140)))
    assert found.cutoffs == 1
    assert not found.stale_heard
    assert in_ms(found.marks)["first_audible"] == 640


def test_an_end_of_turn_at_the_last_word_is_no_cutoff() -> None:
    """A turn that ends in the very instant of the last sound cut nothing off, and may be the answer."""
    found = answered(heard_person(-30, -20, turn_end=0) + spoken(), [stream(2)], played((640, 1140)))
    assert found.cutoffs == 0
    assert in_ms(found.marks)["first_audible"] == 640


def test_a_stale_reply_alone_answers_nothing() -> None:
    """Where only the reply to the first half sounded, and after the last word, no attempt answered."""
    events, streams = split_turn()
    early = [one for one in events if one.at_ns < at(-400)]
    found = answered(early + spoken(100, 150), streams[:1], played((200, 700)))
    assert found.attempt is None
    assert in_ms(found.marks) == {"speech_end": 0}
    assert found.stale_heard
    assert found.cutoffs == 1


def test_an_agent_that_talks_over_the_person_has_a_negative_latency() -> None:
    """A reply that began before the last word and went on after it is the answer: its latency is negative
    and has no stages."""
    events, streams = split_turn()
    early = [one for one in events if one.at_ns < at(-400)]
    found = answered(early + spoken(-400, -350, 0.9), streams[:1], played((-300, 600)))
    timeline = Timeline(found.marks)
    assert timeline.voice_to_voice_ns == -300_000_000
    assert timeline.stages_ns() is None
    assert found.cutoffs == 1


def test_a_reply_that_ended_before_the_last_word_is_no_answer() -> None:
    """A reply that sounded whole inside a pause of the person answers nothing; nor does it where another
    stale one sounds after the last word."""
    events, streams = split_turn()
    early = [one for one in events if one.at_ns < at(-400)]
    assert answered(early + spoken(-400, -350, 0.1), streams[:1], played((-340, -240))).attempt is None
    again = [
        event(Kind.TURN_START, -200),
        event(Kind.CONTEXT, -101),
        event(Kind.TURN_END, -100),
        *spoken(20, 50),
    ]
    both = answered(
        early + spoken(-400, -350, 0.1) + again,
        [*streams[:1], stream(-95, 10, end=30)],
        played((-340, -240), (90, 500)),
    )
    assert both.attempt is None
    assert both.cutoffs == 2


def test_a_tool_call_and_then_an_answer_is_one_attempt() -> None:
    """The request is the first one's, the text is that of the call which gave some."""
    events = [*heard_person(), event(Kind.CONTEXT, 600), *spoken(830, 900)]
    call = stream(325, None, tool_calls=1, end=550)
    found = answered(events, [call, stream(605, 800)], played((950, 1450)))
    marks = in_ms(found.marks)
    assert marks["llm_request"] == 325
    assert marks["llm_first_text"] == 800
    assert found.attempt is not None
    assert len(found.attempt.streams) == 2


def test_a_missing_transcript_is_missing() -> None:
    """Without a final transcript the mark is empty, its time falls to the next stage, and nothing is
    negative."""
    events = [one for one in heard_person() if one.kind is not Kind.TRANSCRIPT]
    found = answered(events + spoken(), [stream()], played((640, 1140)))
    assert Mark.TRANSCRIPT_FINAL not in found.marks
    stages = Timeline(found.marks).stages_ns()
    assert stages is not None
    assert stages[Stage.ASR] is None
    assert stages[Stage.TURN] == 120_000_000


def test_a_turn_without_a_vad_event_is_measured_all_the_same() -> None:
    """Where the detector said nothing, the mark is empty and the latency stands."""
    events = [one for one in heard_person() if one.kind not in (Kind.VAD_START, Kind.VAD_STOP)]
    found = answered(events + spoken(), [stream()], played((640, 1140)))
    assert Mark.VAD_STOP not in found.marks
    timeline = Timeline(found.marks)
    assert timeline.voice_to_voice_ns == 640_000_000
    stages = timeline.stages_ns()
    assert stages is not None
    assert stages[Stage.ENDPOINTING] is None
    assert sum(value or 0 for value in stages.values()) == 640_000_000


@pytest.mark.parametrize("kind", [Kind.TRANSCRIPT, Kind.VAD_STOP])
def test_what_belongs_to_the_first_half_is_not_lent_to_the_second(kind: Kind) -> None:
    """A second attempt without a transcript or a detector's stop of its own has that mark empty."""
    events, streams = split_turn()
    kept = [one for one in events if not (one.kind is kind and one.at_ns > at(0))]
    found = answered(kept, streams, played((640, 1140)))
    mark = {Kind.TRANSCRIPT: Mark.TRANSCRIPT_FINAL, Kind.VAD_STOP: Mark.VAD_STOP}[kind]
    assert mark not in found.marks
    assert in_ms(found.marks)["first_audible"] == 640


def test_a_transcript_after_the_end_of_turn_counts_for_its_request() -> None:
    """Where the turn was ended first and the request waited for the transcript, the wait is recognition."""
    events = [*heard_person(transcript=900), event(Kind.CONTEXT, 910)]
    events = [one for one in events if not (one.kind is Kind.CONTEXT and one.at_ns < at(900))]
    found = answered(events + spoken(1000, 1050), [stream(912, 980)], played((1100, 1500)))
    stages = Timeline(found.marks).stages_ns()
    assert in_ms(found.marks)["transcript_final"] == 900
    assert stages is not None
    assert (stages[Stage.ASR], stages[Stage.TURN]) == (700_000_000, 0)


def test_a_transcript_that_the_request_does_not_hold_is_not_its_last() -> None:
    """A transcript after the request is none of its context."""
    events = [*heard_person(), event(Kind.TRANSCRIPT, 400, "too late"), *spoken()]
    found = answered(events, [stream()], played((640, 1140)))
    assert in_ms(found.marks)["transcript_final"] == 300


def test_a_request_ahead_of_the_turns_end_belongs_to_it() -> None:
    """A speculative request is the attempt's own: nothing is negative, and what ran ahead is clipped."""
    events = [
        event(Kind.TURN_START, -1499),
        event(Kind.TRANSCRIPT, 150, "What is it?"),
        event(Kind.CONTEXT, 160),
        event(Kind.VAD_STOP, 200),
        event(Kind.TURN_END, 320),
        *spoken(330, 400),
    ]
    found = answered(events, [stream(165, 280)], played((440, 900)))
    marks, stages = in_ms(found.marks), Timeline(found.marks).stages_ns()
    assert (marks["llm_request"], marks["llm_first_text"], marks["turn_end"]) == (165, 280, 320)
    assert stages is not None
    assert (stages[Stage.DISPATCH], stages[Stage.LLM_TTFAT], stages[Stage.CLAUSE]) == (0, 0, 10_000_000)
    assert sum(value or 0 for value in stages.values()) == 440_000_000


def test_a_request_that_was_revoked_leaves_no_mark() -> None:
    """Of two requests ahead of the turn's end the last one counts: the first was replaced by it."""
    events = [
        event(Kind.TURN_START, -1499),
        event(Kind.TRANSCRIPT, -500, "What"),
        event(Kind.CONTEXT, -490),
        event(Kind.TRANSCRIPT, 150, "is it?"),
        event(Kind.CONTEXT, 160),
        event(Kind.VAD_STOP, 200),
        event(Kind.TURN_END, 320),
        *spoken(330, 400),
    ]
    revoked = stream(-485, -300, status="cancelled", end=-100)
    for status in ("cancelled", "ok"):
        revoked.status = status
        found = answered(events, [revoked, stream(165, 280)], played((440, 900)))
        marks = in_ms(found.marks)
        assert marks["llm_request"] == 165
        assert marks["llm_first_text"] == 280
        assert marks["transcript_final"] == 150


def test_a_request_of_a_turn_that_the_person_resumed_is_not_given_to_the_next() -> None:
    """A context that was pushed before the person began to speak again belongs to the end before it."""
    events, streams = split_turn()
    found = attempts(events, streams, played((640, 1140)))
    assert [one.streams for one in found] == [[streams[0]], [streams[1]]]


def test_the_first_of_two_answers_counts() -> None:
    """Where a turn was answered twice after the last word, the first to sound is the answer."""
    events = [
        *heard_person(),
        *spoken(),
        event(Kind.TURN_START, 1200),
        event(Kind.CONTEXT, 1399),
        event(Kind.TURN_END, 1400),
        *spoken(1600, 1700),
    ]
    found = answered(events, [stream(), stream(1405, 1550)], played((640, 1140), (1750, 2000)))
    assert in_ms(found.marks)["first_audible"] == 640
    assert in_ms(found.marks)["llm_request"] == 325


def test_a_later_answer_counts_where_the_first_never_sounded() -> None:
    """A reply that was cancelled before it sounded leaves the answer to the next one."""
    events = [
        *heard_person(),
        event(Kind.TURN_START, 450),
        event(Kind.INTERRUPTION, 451),
        event(Kind.CONTEXT, 999),
        event(Kind.TURN_END, 1000),
        *spoken(1200, 1300),
    ]
    cancelled = stream(325, None, status="cancelled", end=452)
    found = answered(events, [cancelled, stream(1005, 1150)], played((1350, 1800)))
    assert in_ms(found.marks)["first_audible"] == 1350
    assert in_ms(found.marks)["llm_request"] == 1005


def test_nothing_that_was_played_is_an_answer_before_its_first_byte() -> None:
    """Sound from before the first audio of a reply is not that reply's."""
    events = heard_person() + spoken()
    found = answered(events, [stream()], played((100, 400), (700, 900)))
    assert in_ms(found.marks)["first_audible"] == 700


def test_without_speech_there_is_no_end_of_speech() -> None:
    """A turn over silence that was answered all the same has marks, but no latency and no cutoff."""
    found = answered(heard_person() + spoken(), [stream()], played((640, 1140)), speech=False)
    assert Mark.SPEECH_END not in found.marks
    assert Timeline(found.marks).voice_to_voice_ns is None
    assert found.cutoffs == 0
    assert found.attempt is not None


def test_nobody_spoke_gives_nothing() -> None:
    """No event, no stream and no sound: no attempt, no mark, no cutoff."""
    found = answered([], [], played(), speech=False)
    assert (found.attempt, found.marks, found.cutoffs, found.stale_heard) == (None, {}, 0, False)


def test_a_clause_is_as_long_as_its_audio() -> None:
    """The first clause's seconds are those that came before the second went to synthesis, and unknown until
    all of them have come."""
    first = [
        event(Kind.TTS_REQUEST, 530, "It is Paris."),
        event(Kind.TTS_AUDIO, 600, seconds=0.3),
        event(Kind.TTS_AUDIO, 620, seconds=0.2),
    ]
    [one] = attempts(heard_person() + first, [stream()], played())
    assert one.first_clause_s is None
    assert one.owed
    done = [*first, event(Kind.TTS_SPOKEN, 621)]
    [one] = attempts(heard_person() + done, [stream()], played())
    assert one.first_clause_s == pytest.approx(0.5)
    assert not one.owed
    more = [*done, event(Kind.TTS_REQUEST, 625, "On the Seine."), event(Kind.TTS_AUDIO, 700, seconds=0.9)]
    [one] = attempts(heard_person() + more, [stream()], played())
    assert one.first_clause_s == pytest.approx(0.5)
    assert one.speech_s == pytest.approx(1.4)
    assert one.owed


def test_speech_without_a_request_belongs_to_nobody() -> None:
    """Audio that no language model asked for makes no attempt and no mark."""
    [one] = attempts(heard_person() + spoken(), [], played((640, 1140)))
    assert (one.requests, one.audio, one.first_audible_ns) == ([], [], None)
