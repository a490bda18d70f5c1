"""Recorded speech through the real models: what was said is understood, answered and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.driven import Driver, clip, scripted
from tests.test_runner import Listener
from voicebench.audio.manifest import Sample, load_manifest
from voicebench.clock import NS_PER_MS
from voicebench.plan.config import Config, PluginSpec
from voicebench.plan.modes import find_mode
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.quality import normalized
from voicebench.turns.records import Outcome

pytestmark = pytest.mark.models

SAMPLES = {sample.id: sample for sample in load_manifest(Path(__file__).parents[2] / "audio_samples")}


async def test_recorded_speech_is_understood_answered_and_measured(tmp_path: Path) -> None:
    """Through Whisper, the local language model and Piper: transcripts are right and follow the sound, not
    the file's name; stages sum to the latency to the nanosecond; silence is no speech."""
    france, sky = SAMPLES["capital-of-france"], SAMPLES["clear-sky"]
    swapped = replace(sky, id="swapped", transcript=france.transcript, answers=france.answers)
    samples: list[Sample] = [france, SAMPLES["yes"], swapped, SAMPLES["silence"]]
    mode = find_mode("local/smollm2-135m", {})
    # Threads of llama.cpp that wait for each other on busy cores take seconds a token.
    gentle = mode.model_copy(update={"id": "local/gentle", "settings": {**mode.settings, "threads": 1}})
    config = Config(
        modes=(gentle.id,),
        own_modes=(gentle,),
        hear="onset",
        calibration_turns=0,
        warmup_turns=0,
        turn_timeout_s=60,
    )
    plan = make_plan(config, samples)
    folder = await run(plan, RunOptions(out=tmp_path / "run", offline=True), Listener())
    assert folder.info().complete
    turns = {one.sample: one for one in folder.turns().records}
    assert set(turns) == {"capital-of-france", "yes", "swapped", "silence"}

    silence = turns.pop("silence")
    assert silence.outcome is Outcome.NO_SPEECH, silence.reason
    assert silence.attempts == ()
    for sample_id, said in (("capital-of-france", france), ("yes", SAMPLES["yes"]), ("swapped", sky)):
        turn = turns[sample_id]
        assert turn.outcome is Outcome.COMPLETED, turn.reason
        assert normalized(turn.transcript or "") == normalized(said.transcript or "")
        assert turn.stages_ms is not None
        assert turn.voice_to_voice_ms is not None
        in_ns = [round((value or 0) * NS_PER_MS) for value in turn.stages_ms.values()]
        assert sum(in_ns) == round(turn.voice_to_voice_ms * NS_PER_MS) == turn.marks_ns["first_audible"]
        assert turn.usage is not None
        assert sum(tokens for _, _, tokens in turn.deltas) == pytest.approx(turn.usage.visible_tokens)
        assert turn.finish_reason in ("stop", "length")
        assert {"asr", "llm_total", "tts_total"} <= set(turn.work_ms)
    assert turns["swapped"].wer is not None
    assert turns["swapped"].wer.errors > 0
    assert turns["capital-of-france"].wer is not None
    assert turns["capital-of-france"].wer.errors == 0


SPEECHLESS = {"...": Outcome.FAILED, "\n": Outcome.EMPTY}
"""Texts without a phoneme: with a visible character the turn failed, and without one it was empty."""


@pytest.mark.parametrize("text", ["🙂", "**", "Yes. ... Indeed it is.", *SPEECHLESS])
async def test_a_reply_that_nobody_can_speak_breaks_no_voice(text: str) -> None:
    """Emoji, marks, blank text and a clause of dots raise nothing in the voice: what can be said is heard,
    and what gives no sound is skipped, or told as such where nothing else was to be said."""
    config = scripted(llm={"text": text}, turn_timeout_s=6)
    driver = Driver(config.model_copy(update={"tts": PluginSpec(kind="piper")}))
    try:
        record = await driver.record(clip(0.3))
    finally:
        await driver.close()
        driver.shared.close()
    assert record.outcome is SPEECHLESS.get(text, Outcome.COMPLETED), record.reason
    if record.outcome is Outcome.FAILED:
        assert "no sound came of it" in (record.reason or "")
    if record.outcome is Outcome.COMPLETED:
        assert record.voice_to_voice_ms is not None
