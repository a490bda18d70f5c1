"""The model is asked on the early transcript, its reply held until the turn has ended, or dropped."""

from __future__ import annotations

from typing import Any

from tests.pipeline.driven import REPLY, clip, driving
from voicebench.plan.config import Vad
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.timeline import Mark

EARLY = {"transcribe_after_ms": 40, "speculate_llm": True, "speculate_paid": True}


def _settings(**changes: Any) -> dict[str, Any]:
    """Stages quick enough to have done their work while the detector waits."""
    return {
        "early": EARLY,
        "asr": {"delay_ms": 20},
        "llm": {"first_text_ms": 20},
        "tts": {"first_byte_ms": 60, "leading_silence_ms": 0},
        "clause": {"rule": "natural"},
        "vad": Vad(kind="energy", start_secs=0.1, stop_secs=0.5),
        **changes,
    }


def _tiled(record: TurnRecord) -> bool:
    """Do the stages sum to voice-to-voice latency?"""
    stages = record.timeline.stages_ns()
    return (
        stages is not None and sum(one or 0 for one in stages.values()) == record.timeline.voice_to_voice_ns
    )


async def test_the_reply_is_held_until_the_turn_has_ended() -> None:
    """Asked ahead, the model has answered when the turn ends, yet nothing sounds before; no waste."""
    async with driving(**_settings()) as driver:
        record = await driver.record(clip(0.3))
        again = await driver.record(clip(0.3))
    for one in (record, again):
        marks = one.timeline.marks
        assert one.outcome is Outcome.COMPLETED
        assert marks[Mark.LLM_REQUEST] < marks[Mark.LLM_FIRST_TEXT] < marks[Mark.TURN_END]
        assert marks[Mark.TURN_END] <= marks[Mark.TTS_REQUEST] < marks[Mark.FIRST_AUDIBLE]
        assert marks[Mark.TRANSCRIPT_FINAL] <= marks[Mark.TURN_END]
        assert one.timeline.slot_start_ns == marks[Mark.TURN_END]
        assert _tiled(one)
        assert one.stages_ms is not None
        assert one.stages_ms["llm_ttfat"] == 0
        assert (one.speculative_requests, one.wasted_requests, one.wasted_tokens) == (1, 0, None)
        assert one.work_ms["llm_speculative"] > 0
        assert one.reply == REPLY
        assert one.cutoffs == 0


async def test_the_first_clause_is_made_while_the_reply_is_held() -> None:
    """With the voice asked ahead its audio is there at the turn's end, and the marks say when it was made."""
    early = {**EARLY, "prefetch_tts": True}
    async with driving(**_settings(early=early)) as driver:
        record = await driver.record(clip(0.3))
    marks = record.timeline.marks
    assert (
        marks[Mark.LLM_REQUEST] < marks[Mark.TTS_REQUEST] < marks[Mark.TTS_FIRST_BYTE] < marks[Mark.TURN_END]
    )
    assert marks[Mark.FIRST_AUDIBLE] > marks[Mark.TURN_END]
    assert record.first_clause == "It is Paris,"
    assert record.stages_ms is not None
    assert record.stages_ms["tts"] == 0
    assert _tiled(record)
    assert record.work_ms["tts_speculative"] >= 50
    assert "tts_wasted" not in record.work_ms


async def test_speech_that_goes_on_revokes_what_was_asked_and_is_no_cutoff() -> None:
    """A pause shorter than the detector's wait wastes the request made in it; the one at the end answers."""
    early = {**EARLY, "prefetch_tts": True}
    async with driving(**_settings(early=early, llm={"first_text_ms": 10, "per_word_ms": 8})) as driver:
        record = await driver.record(clip(0.3, 0.35, 0.3), speech_end_s=0.95)
        after = await driver.record(clip(0.3))
    assert record.outcome is Outcome.COMPLETED
    assert record.cutoffs == 0
    assert Flag.CUTOFF not in record.flags
    assert (record.speculative_requests, record.wasted_requests) == (2, 1)
    assert record.wasted_tokens is not None
    assert record.wasted_tokens > 0
    assert record.marks_ns["llm_request"] > 0
    assert record.reply == REPLY
    assert len(record.attempts) == 1
    assert _tiled(record)
    assert after.outcome is Outcome.COMPLETED
    assert (after.speculative_requests, after.wasted_requests) == (1, 0)


async def test_another_final_transcript_revokes_the_reply() -> None:
    """Where the final transcript differs, the held reply is dropped, and the model asked anew is heard."""
    script = {"delay_ms": 10, "early_text": "What was"}
    async with driving(**_settings(asr=script)) as driver:
        record = await driver.record(clip(0.3))
    assert record.outcome is Outcome.COMPLETED
    assert (record.speculative_requests, record.wasted_requests) == (1, 1)
    assert record.marks_ns["llm_request"] >= record.marks_ns["turn_end"]
    assert record.reply == REPLY
    assert _tiled(record)


async def test_a_transcript_that_differs_in_case_and_punctuation_keeps_the_reply() -> None:
    """Formatting alone is no other transcript."""
    script = {"delay_ms": 10, "early_text": "what is it"}
    async with driving(**_settings(asr=script)) as driver:
        record = await driver.record(clip(0.3))
    assert (record.speculative_requests, record.wasted_requests) == (1, 0)
    assert record.marks_ns["llm_request"] < record.marks_ns["turn_end"]


async def test_modes_that_cost_are_asked_ahead_only_on_demand() -> None:
    """An emulated mode stands for a paid one: without the setting for such it is asked at the turn's end."""
    async with driving(**_settings(early={**EARLY, "speculate_paid": False})) as driver:
        record = await driver.record(clip(0.3))
    assert record.outcome is Outcome.COMPLETED
    assert (record.speculative_requests, record.wasted_requests) == (0, 0)
    assert record.marks_ns["llm_request"] >= record.marks_ns["turn_end"]
    assert "llm_speculative" not in record.work_ms
