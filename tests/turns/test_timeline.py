"""The laws of the timeline: stages tile voice-to-voice latency to the nanosecond."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tests.turns.strategies import INSTANTS, sounding, timelines
from voicebench.turns.timeline import STAGE_ENDS, Mark, Stage, Timeline


@given(sounding)
def test_the_stages_sum_to_voice_to_voice_latency_to_the_nanosecond(timeline: Timeline) -> None:
    """Whatever marks are missing, early, late or out of order, the stages sum exactly to V2V."""
    stages = timeline.stages_ns()
    assert stages is not None
    assert sum(part for part in stages.values() if part is not None) == timeline.voice_to_voice_ns


@given(sounding)
def test_no_stage_is_negative_and_only_those_without_a_mark_are_empty(timeline: Timeline) -> None:
    """A stage is 0 or more; it is None exactly where the mark that ends it did not happen."""
    stages = timeline.stages_ns()
    assert stages is not None
    assert list(stages) == list(Stage)
    assert all(part is None or part >= 0 for part in stages.values())
    empty = {stage for stage, part in stages.items() if part is None}
    assert empty == {stage for stage, mark in STAGE_ENDS.items() if mark not in timeline.marks}
    assert timeline.missing() == tuple(mark for stage, mark in STAGE_ENDS.items() if stage in empty)


@given(timelines)
def test_there_are_stages_exactly_where_there_is_a_latency_of_at_least_nothing(timeline: Timeline) -> None:
    """Without a first sound or an end of speech, or with a sound before it, there are no stages."""
    total = timeline.voice_to_voice_ns
    assert (timeline.stages_ns() is None) == (total is None or total < 0)
    both = {Mark.SPEECH_END, Mark.FIRST_AUDIBLE} <= timeline.marks.keys()
    assert (total is None) == (not both)


@given(sounding, st.sampled_from(list(STAGE_ENDS)[:-1]))
def test_a_missing_mark_gives_its_time_to_later_stages(timeline: Timeline, stage: Stage) -> None:
    """Taking one mark away leaves earlier stages as they are and takes nothing from a later one."""
    whole = timeline.stages_ns()
    rest = Timeline({mark: ns for mark, ns in timeline.marks.items() if mark is not STAGE_ENDS[stage]})
    without = rest.stages_ns()
    assert whole is not None
    assert without is not None
    assert without[stage] is None
    place = list(Stage).index(stage)
    for name in list(Stage)[:place]:
        assert without[name] == whole[name]
    for name in list(Stage)[place + 1 :]:
        assert (without[name] or 0) >= (whole[name] or 0)


@given(st.lists(st.integers(0, 10**9), min_size=8, max_size=8), st.sampled_from(list(STAGE_ENDS)[:-1]))
def test_with_marks_in_order_the_next_stage_takes_the_time_of_a_missing_mark(
    parts: list[int], stage: Stage
) -> None:
    """Each stage is its own time, and the next one inherits that of a missing mark."""
    ends = list(accumulate(parts))
    marks = {Mark.SPEECH_END: 0, **dict(zip(STAGE_ENDS.values(), ends, strict=True))}
    assert Timeline(marks).stages_ns() == dict(zip(Stage, parts, strict=True))
    del marks[STAGE_ENDS[stage]]
    place = list(Stage).index(stage)
    expected: list[int | None] = list(parts)
    expected[place], expected[place + 1] = None, parts[place] + parts[place + 1]
    assert Timeline(marks).stages_ns() == dict(zip(Stage, expected, strict=True))


@given(sounding, INSTANTS)
def test_the_origin_of_the_clock_changes_nothing(timeline: Timeline, shift: int) -> None:
    """The stages are the same wherever the clock began, and as `relative` stores them."""
    moved = Timeline({mark: ns + shift for mark, ns in timeline.marks.items()})
    stored = Timeline({Mark(name): ns for name, ns in moved.relative().items()})
    assert moved.stages_ns() == stored.stages_ns() == timeline.stages_ns()
    assert stored.at(Mark.SPEECH_END) == 0


def test_work_that_ran_ahead_is_clipped() -> None:
    """An early transcript takes no time, and a first byte after the sound takes none beyond it."""
    marks = {
        Mark.SPEECH_END: 0,
        Mark.VAD_STOP: 200,
        Mark.TRANSCRIPT_FINAL: -50,
        Mark.TURN_END: 210,
        Mark.LLM_REQUEST: 100,
        Mark.LLM_FIRST_TEXT: 150,
        Mark.TTS_REQUEST: 260,
        Mark.TTS_FIRST_BYTE: 900,
        Mark.FIRST_AUDIBLE: 700,
    }
    stages = Timeline(marks).stages_ns()
    assert stages is not None
    assert list(stages.values()) == [200, 0, 10, 0, 0, 50, 440, 0]


def test_the_slot_starts_at_the_request_or_at_a_later_end_of_turn() -> None:
    """A request made ahead opens the slot at the end of the turn; without a request there is no slot."""
    assert Timeline({Mark.LLM_REQUEST: 5, Mark.TURN_END: 9}).slot_start_ns == 9
    assert Timeline({Mark.LLM_REQUEST: 9, Mark.TURN_END: 5}).slot_start_ns == 9
    assert Timeline({Mark.LLM_REQUEST: 9}).slot_start_ns == 9
    assert Timeline({Mark.TURN_END: 9}).slot_start_ns is None


def test_marks_without_an_end_of_speech_count_from_the_first() -> None:
    """Where nobody spoke, stored marks begin at 0 with the earliest; no marks store nothing."""
    assert Timeline({Mark.LLM_REQUEST: 7, Mark.VAD_STOP: 4}).relative() == {"vad_stop": 0, "llm_request": 3}
    assert Timeline({}).relative() == {}
