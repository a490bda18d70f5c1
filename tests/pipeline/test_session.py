"""Whole turns over scripted stages: the marks follow the script, and whatever a stage does, the turn ends in
the right outcome and the next one is well."""

from __future__ import annotations

import asyncio

import pytest

from tests.pipeline.driven import (
    ASR_MS,
    LEAD_MS,
    LLM_MS,
    REPLY,
    SILENCE,
    SPEECH_S,
    TTS_MS,
    Driver,
    clip,
    driving,
    set_fault,
)
from tests.pipeline.made_turns import facts
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.pipeline import ending as ending_module
from voicebench.pipeline.observer import Kind
from voicebench.pipeline.record import record as make_record
from voicebench.turns.records import Flag, Outcome, TurnRecord

ORDER = (
    "speech_end",
    "vad_stop",
    "transcript_final",
    "turn_end",
    "llm_request",
    "llm_first_token",
    "llm_first_text",
    "tts_request",
    "tts_first_byte",
    "first_audible",
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of which nothing more comes is given up sooner than in earnest."""
    monkeypatch.setattr(ending_module, "QUIET_S", 0.5)
    monkeypatch.setattr(ending_module, "UNHEARD_S", 1.0)


def check_completed(record: TurnRecord) -> None:
    """The turn was answered, and its figures agree with each other to the nanosecond."""
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert list(record.marks_ns) == list(ORDER)
    assert record.stages_ms is not None
    assert record.voice_to_voice_ms is not None
    in_ns = [round((value or 0) * NS_PER_MS) for value in record.stages_ms.values()]
    assert sum(in_ns) == record.marks_ns["first_audible"] == round(record.voice_to_voice_ms * NS_PER_MS)


async def test_the_marks_follow_the_script() -> None:
    """Every mark is there, in order, and no stage is shorter than its script."""
    async with driving() as driver:
        record = await driver.record(clip(SPEECH_S))
    check_completed(record)
    instants = [record.marks_ns[name] for name in ORDER]
    assert instants == sorted(instants)
    stages = record.stages_ms or {}
    for stage, least in (("asr", ASR_MS), ("llm_ttfat", LLM_MS), ("tts", TTS_MS), ("playout", LEAD_MS - 5)):
        assert (stages[stage] or 0) >= least
    assert (stages["endpointing"] or 0) > 100
    assert record.transcript == "What is it?"
    assert record.reply == REPLY
    assert record.first_clause == "It is Paris, I think."
    assert record.cutoffs == 0
    assert record.work_ms["asr"] >= ASR_MS
    assert len(record.deltas) == len(REPLY.split())


async def test_first_audio_is_not_first_sound() -> None:
    """A voice that pads its audio with silence is heard when the silence is over, not when it begins."""
    async with driving(tts={"leading_silence_ms": 300}) as driver:
        record = await driver.record(clip(SPEECH_S))
    check_completed(record)
    gap = record.marks_ns["first_audible"] - record.marks_ns["tts_first_byte"]
    assert gap >= 295 * NS_PER_MS


async def test_as_much_of_a_reply_is_heard_as_is_asked_for() -> None:
    """Until its onset, its first clause or its end: each lets more of the same reply sound."""
    sounded: dict[str, float] = {}
    for hear in ("onset", "clause", "reply"):
        async with driving(hear=hear, turn_timeout_s=6, tts={"seconds_per_word": 0.15}) as driver:
            heard = await driver.turn(clip(SPEECH_S))
            assert heard.ending == "answered"
            assert driver.session is not None
            assert driver.session.healthy
        sounded[hear] = sum(end - begin for begin, end in heard.played.sounds()) / NS_PER_S
        [attempt] = heard.attempts()
        if hear == "reply":
            assert len(attempt.requests) == 2
            assert sounded[hear] >= 11 * 0.15 - 0.15
    assert sounded["onset"] < sounded["clause"] < sounded["reply"]
    assert sounded["clause"] >= 5 * 0.15 - 0.15


@pytest.mark.parametrize(
    ("point", "fault", "outcome", "reason"),
    [
        ("asr", "raise", Outcome.FAILED, "scripted ASR raises"),
        ("asr", "hang", Outcome.TIMED_OUT, "no transcript came"),
        ("asr", "nothing", Outcome.NO_SPEECH, "no speech was recognised"),
        ("llm", "raise", Outcome.FAILED, "scripted LLM raises"),
        ("llm", "hang", Outcome.TIMED_OUT, "stream was still open"),
        ("llm", "nothing", Outcome.EMPTY, "no text"),
        ("tts", "raise", Outcome.FAILED, "scripted TTS raises"),
        ("tts", "hang", Outcome.TIMED_OUT, "had not sounded"),
        ("tts", "nothing", Outcome.FAILED, "no sound came of it"),
    ],
)
async def test_a_fault_has_its_outcome_and_harms_no_other_turn(
    point: str, fault: str, outcome: Outcome, reason: str
) -> None:
    """A stage that raises, hangs or gives nothing ends its turn in one outcome; the next is completed."""
    async with driving(turn_timeout_s=1.5 if fault == "hang" else 6) as driver:
        stage = driver.specs.llm[driver.mode.id] if point == "llm" else getattr(driver.specs, point)
        set_fault(stage, fault)
        broken = await driver.record(clip(SPEECH_S))
        assert broken.outcome is outcome, broken.reason
        assert reason in (broken.reason or "")
        assert broken.voice_to_voice_ms is None
        set_fault(stage, "none")
        check_completed(await driver.record(clip(SPEECH_S)))


async def test_silence_is_no_speech_and_disturbs_nothing() -> None:
    """Where nobody speaks the turn ends without a request, and the same session answers the next one."""
    async with driving() as driver:
        silent = await driver.record(SILENCE, speech_end_s=None)
        assert (silent.outcome, silent.reason) == (Outcome.NO_SPEECH, None)
        assert silent.attempts == ()
        check_completed(await driver.record(clip(SPEECH_S)))
        assert driver.opened == 1


async def test_turns_of_one_session_do_not_mix() -> None:
    """Three turns whose replies are cut off at their onset each have one request, one transcript, one
    sound of their own."""
    async with driving(tts={"seconds_per_word": 0.5}) as driver:
        for number in range(3):
            heard = await driver.turn(clip(SPEECH_S))
            assert heard.ending == "answered"
            assert heard.first is (number == 0)
            assert [event.kind for event in heard.events].count(Kind.TRANSCRIPT) == 1
            assert len(heard.streams) == 1
            [attempt] = heard.attempts()
            assert len(attempt.streams) == 1
            begin = heard.playback.start_ns
            assert all(start > begin for start, _ in heard.played.sounds())
            assert all(event.at_ns > begin - NS_PER_S for event in heard.events)
        assert driver.opened == 1


async def test_a_pause_splits_the_turn_and_the_whole_is_answered() -> None:
    """A pause longer than the detector's wait cuts the person off: the second request answers, the first
    is a cutoff, and its reply is not heard once the person goes on."""
    async with driving(turn_timeout_s=6, llm={"first_text_ms": 300}) as driver:
        heard = await driver.turn(clip(0.3, 1.0, 0.3), 1.6)
        record = make_record(facts(mode=driver.mode), heard)
        check_completed(record)
        assert record.cutoffs == 1
        assert Flag.CUTOFF in record.flags
        assert not record.measured
        assert len(heard.attempts()) == 2
        assert record.transcript == "What is it? What is it?"
        check_completed(await driver.record(clip(SPEECH_S)))


async def test_a_noise_that_cancels_the_reply_is_an_interruption() -> None:
    """A cough before the reply stops it; nothing is said after it: the turn was interrupted, not silent."""
    async with driving(turn_timeout_s=6, llm={"first_text_ms": 1500}) as driver:
        turn = asyncio.create_task(driver.turn(clip(0.3, 0.4, 0.15)))
        await until_told(driver, Kind.TRANSCRIPT)
        set_fault(driver.specs.asr, "nothing")
        heard = await turn
        assert heard.ending == "cancelled"
        cancelled = make_record(facts(mode=driver.mode), heard)
        assert cancelled.outcome is Outcome.INTERRUPTED
        assert "cancelled by noise" in (cancelled.reason or "")
        set_fault(driver.specs.asr, "none")
        check_completed(await driver.record(clip(SPEECH_S)))


async def until_told(driver: Driver, kind: Kind) -> None:
    """Wait for the turn's first event of that kind."""
    async with asyncio.timeout(10):
        while True:
            parts = driver.session._parts if driver.session else None
            if parts and any(event.kind is kind for event in parts.observer.events):
                return
            await asyncio.sleep(0.005)


async def test_a_slow_voice_is_waited_for() -> None:
    """A first byte that takes longer than pipecat's own idle limit is slow, not silent."""
    async with driving(turn_timeout_s=8, tts={"first_byte_ms": 3400}) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert (record.stages_ms or {})["tts"] is not None
    # A request is marked when its frame passes by, which may be just after the voice began.
    assert record.marks_ns["tts_first_byte"] - record.marks_ns["tts_request"] >= 3380 * NS_PER_MS


async def test_a_slow_recogniser_is_waited_for() -> None:
    """A transcript that comes after more than five seconds still belongs to its own turn, as its ASR time."""
    async with driving(turn_timeout_s=8, asr={"delay_ms": 5300}) as driver:
        record = await driver.record(clip(SPEECH_S))
        check_completed(record)
        # The detector's stop is marked when its frame passes by: on a busy machine the work has begun.
        assert ((record.stages_ms or {})["asr"] or 0) >= 5250


async def test_a_session_leaves_no_task_behind() -> None:
    """After two sessions in a row, one healthy and one that hangs, no task is left in the loop."""
    before = asyncio.all_tasks()
    for point, fault in (("asr", "none"), ("llm", "hang"), ("tts", "hang"), ("asr", "hang")):
        async with driving(turn_timeout_s=0.6) as driver:
            stage = driver.specs.llm[driver.mode.id] if point == "llm" else getattr(driver.specs, point)
            set_fault(stage, fault)
            await driver.turn(clip(SPEECH_S))
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    assert left == set()


async def test_a_cancelled_turn_can_be_closed() -> None:
    """A run that is interrupted in the middle of a turn closes its session, and nothing is left running."""
    before = asyncio.all_tasks()
    async with driving() as driver:
        turn = asyncio.create_task(driver.turn(clip(5.0)))
        await until_told(driver, Kind.VAD_START)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()
