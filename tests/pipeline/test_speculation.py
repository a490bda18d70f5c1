"""The model is asked on the early transcript, its reply held until the turn has ended, or dropped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.driven import REPLY, Driver, clip, driving
from voicebench.audio.manifest import load_manifest
from voicebench.audio.prepare import prepare
from voicebench.audio.samples import default_folder
from voicebench.errors import BadRequest
from voicebench.pipeline.ahead import speculation_fields, speculation_ms
from voicebench.pipeline.marks import Attempt
from voicebench.plan.config import Config, Early, Vad
from voicebench.plan.modes import Mode, Price, find_mode
from voicebench.stages.early import asks_ahead
from voicebench.stages.prefetch import Prefetch
from voicebench.stages.shared import WorkLog
from voicebench.turns.records import Flag, Outcome, TurnRecord, Usage
from voicebench.turns.stream import StreamLog
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


def test_what_was_in_vain_is_priced_by_usage_or_by_what_had_come() -> None:
    """A wasted request costs what its usage says; broken off, its prompt and the text that had come."""
    mode = Mode(
        id="p/m", kind="live", provider="p", api="openai-chat", model="m", price=Price(input=1.0, output=10.0)
    )
    broken = StreamLog(10, speculative=True, revoked=True, status="cancelled", end_ns=2_000_010)
    broken.deltas = [(15, "The"), (16, " capital")]
    whole = StreamLog(30, speculative=True, revoked=True, status="ok", end_ns=40)
    whole.usage = Usage(input_tokens=100, output_tokens=7)
    heard = StreamLog(50, speculative=True, status="ok", end_ns=1_000_090)
    heard.usage = Usage(input_tokens=120, output_tokens=20)
    found = [Attempt(1_000_050, streams=[heard])]
    told = speculation_fields(mode, [broken, whole, heard], found)
    assert (told["speculative_requests"], told["wasted_requests"], told["wasted_tokens"]) == (3, 2, 9)
    assert told["wasted_usd"] == pytest.approx((120 + 2 * 10 + 100 + 7 * 10) / 1e6)
    assert speculation_ms([broken, whole, heard], found) == pytest.approx(3.0, abs=0.001)
    unknown = speculation_fields(mode, [broken], [])
    assert (unknown["wasted_tokens"], unknown["wasted_usd"]) == (2, None)
    assert speculation_fields(mode, [StreamLog(1)], []) == {}


def test_a_voice_that_costs_is_not_asked_ahead() -> None:
    """A hosted voice is refused with what to do."""
    with pytest.raises(BadRequest, match=r"(?s)prefetch_tts.*piper"):
        Prefetch(object(), WorkLog())


def test_modes_made_of_several_are_never_asked_ahead() -> None:
    """Asking several ahead would multiply what is in vain."""
    early = Early(transcribe_after_ms=64, speculate_llm=True)
    local = Mode(id="l/m", kind="local", provider="l", api="llama-cpp", model="m")
    several = local.model_copy(update={"members": (local,)})
    live = local.model_copy(update={"kind": "live"})
    assert [asks_ahead(early, mode) for mode in (local, several, live)] == [True, False, False]
    assert asks_ahead(early.model_copy(update={"speculate_paid": True}), live)
    assert not asks_ahead(early.model_copy(update={"transcribe_after_ms": None}), local)


@pytest.mark.models
async def test_the_embedded_models_answer_ahead_what_was_asked() -> None:
    """Through Whisper, the local language model and Piper a held reply is heard, and stages sum to V2V."""
    mode = find_mode("local/smollm2-135m", {})
    # Threads of llama.cpp that wait for each other on busy cores take seconds a token.
    mode = mode.model_copy(update={"settings": {**mode.settings, "threads": 1}})
    stack = {
        "asr": {"kind": "whisper", "window": "speech", "cpu_threads": 1},
        "tts": {"kind": "piper", "trim_leading_silence": True},
        "turn": {"kind": "vad"},
        "vad": {"stop_secs": 2.5},
        "clause": {"rule": "natural"},
        "early": {"transcribe_after_ms": 64, "speculate_llm": True, "prefetch_tts": True},
        "hear": "onset",
        "turn_timeout_s": 60,
    }
    config = Config.model_validate({"modes": [mode.id], "own_modes": [mode], **stack})
    sample = next(one for one in load_manifest(default_folder()) if one.id == "capital-of-france")
    prepared = prepare(sample)
    driver = Driver(config)
    try:
        record = await driver.record(prepared.pcm, speech_end_s=prepared.speech_end_s)
    finally:
        await driver.close()
        driver.shared.close()
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert record.speculative_requests >= 1
    assert record.speculative_requests - record.wasted_requests == 1
    assert record.marks_ns["llm_request"] < record.marks_ns["turn_end"] < record.marks_ns["first_audible"]
    assert "Paris" in (record.reply or "")
    assert record.work_ms["tts_speculative"] > 0
    assert _tiled(record)
