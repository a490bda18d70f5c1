"""The LLM slot: what had come by a deadline, held against figures worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.turns.made import MS, made, made_deltas, made_marks
from tests.turns.strategies import sounding
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import (
    BY_SYNTHESIS,
    Delivery,
    clause_instant_ns,
    clause_ready,
    decode_rate_tok_s,
    delivered,
    delta_gaps_ns,
    ended_by,
    headline_tokens,
    non_llm_ns,
    residual_slot_ns,
    sentence_ends,
    stack_residual_ms,
    timeline_of,
    tokens_if_first_at,
    word_ends,
)
from voicebench.turns.timeline import Mark, Timeline

budgets = st.integers(0, 3000).map(float)


@given(sounding, budgets)
def test_a_clause_is_ready_in_its_own_residual_slot_exactly_where_the_budget_is_held(
    timeline: Timeline, budget_ms: float
) -> None:
    """Whatever the marks: ready by the residual deadline if and only if V2V <= budget."""
    record = made(marks=timeline.marks)
    residual = residual_slot_ns(record, budget_ms)
    total = timeline.voice_to_voice_ns
    assert total is not None
    if residual is None:
        assert {Mark.LLM_REQUEST, Mark.TTS_REQUEST} - timeline.marks.keys()
    else:
        assert clause_ready(record, residual) == (total <= round(budget_ms * MS))


@given(sounding, st.data())
def test_the_law_holds_at_the_very_budget(timeline: Timeline, data: st.DataObject) -> None:
    """A budget of exactly V2V is held, and one of a nanosecond less is not."""
    marks = {**timeline.marks, Mark.LLM_REQUEST: 5, Mark.TTS_REQUEST: data.draw(st.integers(-9, 3 * 10**9))}
    record = made(marks=marks)
    total = timeline.voice_to_voice_ns
    assert total is not None
    exact, short = residual_slot_ns(record, total / MS), residual_slot_ns(record, (total - 1) / MS)
    assert exact is not None
    assert short is not None
    assert clause_ready(record, exact)
    assert not clause_ready(record, short)


def test_the_residual_slot_is_the_budget_less_all_that_is_not_the_model() -> None:
    """700 ms of which the model took 300 leave it 400 of 800, and a slow rest leaves less than nothing."""
    assert residual_slot_ns(made(), 800) == 400 * MS
    assert non_llm_ns(made()) == 400 * MS
    slow = made(marks=made_marks(vad_stop=900))
    assert residual_slot_ns(slow, 800) == -300 * MS
    assert delivered(slow, -300 * MS) == delivered(made(deltas=((5, 1, 1.0),)), 0)
    assert not clause_ready(slow, -300 * MS)


def test_a_turn_without_the_marks_has_no_residual_slot() -> None:
    """Without V2V, request or clause the residual slot is empty, not 0."""
    for mark in (Mark.FIRST_AUDIBLE, Mark.LLM_REQUEST, Mark.TTS_REQUEST):
        assert residual_slot_ns(made(without=(mark,)), 800) is None
    assert residual_slot_ns(made(v2v_ms=-100), 800) is None
    assert residual_slot_ns(made(without=(Mark.LLM_FIRST_TEXT,)), 800) == 400 * MS


def test_the_stack_has_one_residual_slot_for_all_modes() -> None:
    """It is the budget less the median of the other stages, over the turns that count, in any mode."""
    turns = [
        made(0, marks=made_marks(vad_stop=200, llm_first_text=100)),
        made(1, marks=made_marks(vad_stop=240, llm_first_text=900)),
        made(2, marks=made_marks(vad_stop=900), flags=["client_limited"]),
        made(3, outcome="timed_out"),
    ]
    assert stack_residual_ms(turns, 800) == 380
    assert stack_residual_ms([], 800) is None


def test_tokens_characters_words_and_sentences_are_cut_at_the_deadline() -> None:
    """Words and sentences count when their last character is there."""
    reply = "Yes. At nine, today."
    pieces = ["Yes", ". ", "At ni", "ne,", " today", "."]
    deltas = [(10 * MS * place, len(piece), 1.5) for place, piece in enumerate(pieces, start=1)]
    course = Delivery(made(reply=reply, deltas=deltas))
    found = [course.by(at * MS) for at in (9, 10, 20, 30, 40, 55, 60)]
    assert [one.tokens for one in found] == [0, 1.5, 3, 4.5, 6, 7.5, 9]
    assert [one.characters for one in found] == [0, 3, 5, 10, 13, 19, 20]
    assert [one.words for one in found] == [0, 0, 1, 2, 3, 3, 4]
    assert [one.sentences for one in found] == [0, 0, 1, 1, 1, 1, 2]


def test_a_delta_at_the_deadline_is_there_and_one_after_it_is_not() -> None:
    """The deadline itself belongs to the slot."""
    record = made(deltas=((400 * MS, 4, 1), (400 * MS + 1, 4, 1)))
    found = delivered(record, 400 * MS)
    assert found is not None
    assert (found.tokens, found.characters) == (1, 4)


def test_what_a_speculative_request_had_brought_is_there_at_once() -> None:
    """Deltas from before the slot's start count at deadline 0, and at none before it."""
    course = Delivery(made(deltas=((-50 * MS, 4, 2), (30 * MS, 4, 2))))
    assert (course.by(0).tokens, course.by(-1).tokens) == (2, 0)


def test_a_record_without_deltas_delivered_nothing_that_is_known() -> None:
    """No deltas give no figure, rather than 0."""
    record = made(deltas=())
    assert delivered(record, 400 * MS) is None
    assert decode_rate_tok_s(record) is None
    assert tokens_if_first_at(record, 400) is None


def test_text_that_was_left_out_has_no_words_but_tokens_and_characters() -> None:
    """With the reply left out, words, sentences and seconds of speech are empty; counts stand."""
    found = delivered(made(reply=None), 400 * MS)
    assert found is not None
    assert (found.words, found.sentences, found.speech_s) == (None, None, None)
    assert found.tokens == 14
    assert found.characters > 0


def test_seconds_of_speech_come_from_the_synthesis_where_it_spoke_the_whole_reply() -> None:
    """Half of the characters of a reply that took 4 s to say are 2 s; else the stated pace speaks."""
    deltas = ((0, 10, 1), (500 * MS, 10, 1))
    whole = Delivery(made(reply="one two three four !", deltas=deltas, speech_s=4.0, heard="reply"))
    assert whole.by(100 * MS).speech_s == 2
    assert whole.speech_source == BY_SYNTHESIS
    partly = Delivery(made(reply="one two three four !", deltas=deltas, speech_s=4.0, heard="clause"), 120)
    assert partly.by(100 * MS).speech_s == 1
    assert partly.speech_source == "120 words a minute"


def test_the_clause_is_ready_when_it_went_to_synthesis() -> None:
    """The instant counts from the slot's start, is at least 0, and needs no mark where the record says it."""
    assert clause_instant_ns(made()) == 300 * MS
    ahead = made(marks=made_marks(llm_request=-500, llm_first_text=50, tts_request=20))
    assert clause_instant_ns(ahead) == 0
    alone = made(marks={Mark.LLM_REQUEST: 0}, clause_ready_ns=120 * MS)
    assert clause_instant_ns(alone) == 120 * MS
    never = made(marks={Mark.LLM_REQUEST: 0}, clause_ready_ns=None)
    assert clause_instant_ns(never) is None
    assert not clause_ready(never, 10**12)


def test_a_reply_that_did_not_end_by_itself_never_ended() -> None:
    """The end counts at the deadline, and a reply without one had not ended at any."""
    record = made(reply_end_ns=300 * MS)
    assert [ended_by(record, at * MS) for at in (299, 300, 301)] == [False, True, True]
    assert not ended_by(made(reply_end_ns=None), 10**12)


def test_the_decode_rate_leaves_out_the_first_delta() -> None:
    """Nine tokens after the first delta within 90 ms are 100 a second; one delta has no rate."""
    assert decode_rate_tok_s(made(deltas=made_deltas(10, first_ms=400, gap_ms=10))) == pytest.approx(100)
    assert decode_rate_tok_s(made(deltas=((1, 4, 5),))) is None
    assert decode_rate_tok_s(made(deltas=((7, 4, 1), (7, 4, 1)))) is None


def test_a_stall_is_seen_among_the_gaps() -> None:
    """Each gap between deltas is told by itself."""
    record = made(deltas=((0, 1, 1), (10 * MS, 1, 3), (900 * MS, 1, 1)))
    assert delta_gaps_ns(record) == [10 * MS, 890 * MS]
    assert delta_gaps_ns(made(deltas=((5, 1, 1),))) == []


def test_headline_tokens_ignore_the_wait() -> None:
    """65 and 1000 tokens a second give 26 and 400 in 400 ms."""
    assert headline_tokens(65, 400) == 26
    assert headline_tokens(1000, 400) == 400


def test_tokens_over_an_assumed_first_token_keep_the_streams_own_pace() -> None:
    """Moved to 50, 200, 390, 400 and 500 ms, a stream of one token per 10 ms has that many by 400 ms."""
    record = made(deltas=made_deltas(20, first_ms=700, gap_ms=10))
    assert tokens_if_first_at(record, 400, (50, 200, 390, 400, 500)) == (20, 20, 2, 1, 0)
    stalled = made(deltas=((0, 1, 1), (300 * MS, 1, 1)))
    assert tokens_if_first_at(stalled, 400, (50, 101)) == (2, 1)


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 9), st.floats(0, 9))),
    st.integers(0, 10**9),
)
def test_more_time_never_delivers_less(deltas: list[tuple[int, int, float]], deadline: int) -> None:
    """Every figure grows with the deadline and ends at the whole reply."""
    text = "a b. " * (sum(count for _, count, _ in deltas) // 5 + 1)
    record = made(deltas=deltas, reply=text[: sum(count for _, count, _ in deltas)])
    course = Delivery(record)
    early, late, end = course.by(deadline), course.by(deadline + 10**8), course.by(10**10)
    for name in ("tokens", "characters", "words", "sentences", "speech_s"):
        assert getattr(early, name) <= getattr(late, name) <= getattr(end, name)
    assert end.characters == len(record.reply or "")


def test_sentences_end_where_a_reader_says_so() -> None:
    """Titles, decimals and a.m. end no sentence; quotes belong to it; other scripts have their own marks."""

    def sentences(text: str) -> list[str]:
        ends = [0, *sentence_ends(text)]
        return [text[begin:end].strip() for begin, end in pairwise(ends)]

    assert sentences("Dr. Wu is in. Ask him!") == ["Dr. Wu is in.", "Ask him!"]
    assert sentences("At 9 a.m. on Monday it is 3.5 degrees.") == ["At 9 a.m. on Monday it is 3.5 degrees."]
    assert sentences('He said "No." Then he left... really?') == ['He said "No."', "Then he left... really?"]
    assert sentences("九点。好！") == ["九点。", "好！"]
    assert sentences("No end") == []


def test_words_hold_a_letter_or_a_digit() -> None:
    """A dash or an emoji alone is no word; a hyphenated one is one."""
    assert len(word_ends("Well - it's 5 o'clock 😀 now-ish.")) == 5


def test_a_mark_that_only_a_newer_version_knows_is_passed_over() -> None:
    """An unknown mark in a record does not keep its timeline from being read."""
    record: TurnRecord = made()
    newer = record.model_copy(update={"marks_ns": {**record.marks_ns, "lips_move": 3}})
    assert timeline_of(newer).stages_ns() == record.timeline.stages_ns()
