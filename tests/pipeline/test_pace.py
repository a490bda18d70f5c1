"""At `pace: tail` a turn is the same turn: nothing that was said is lost, cut off elsewhere or mixed up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.driven import Driver, clip, scripted
from tests.pipeline.made_turns import facts
from tests.recorded import write_wav
from voicebench.audio.file_source import RATE
from voicebench.audio.manifest import Sample
from voicebench.clock import NS_PER_S
from voicebench.errors import BadRequest
from voicebench.pipeline.build import check_pace
from voicebench.pipeline.record import record
from voicebench.plan.config import Config
from voicebench.runner import make_plan
from voicebench.stages.any_pipecat import ServiceSettings, by_segment
from voicebench.turns.records import Outcome

WITH_PAUSE = clip(0.5, 0.05, 0.4, 0.8, 0.9)
END_S = 2.65


class Eavesdropper(Driver):
    """Keeps what the ASR is given to transcribe."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.segments: list[bytes] = []
        build = self.specs.asr.plugin.build

        def listening(*given: Any) -> Any:
            service = build(*given)
            run_stt = service.run_stt

            async def heard(audio: bytes) -> AsyncGenerator[Any, None]:
                self.segments.append(audio)
                async for frame in run_stt(audio):
                    yield frame

            service.run_stt = heard
            return service

        asr = replace(self.specs.asr, plugin=replace(self.specs.asr.plugin, build=listening))
        self.specs = replace(self.specs, asr=asr)


def loud_s(audio: bytes) -> float:
    """Seconds of the tone in 16 kHz PCM; it crosses zero, so neighbours count as well."""
    loud = np.abs(np.frombuffer(audio, dtype=np.int16).astype(np.int32)) > 3_000
    return float(np.convolve(loud, np.ones(9), "same").astype(bool).sum()) / RATE


async def test_a_pause_cuts_off_and_no_sound_is_lost() -> None:
    """A pause within the speech ends the turn as it does in real time, and the two segments that the ASR is
    given hold all that was said; the end of the speech is that of the clip as it went on in real time."""
    driver = Eavesdropper(scripted(pace="tail", turn_timeout_s=6, turn={"kind": "vad"}))
    try:
        heard = await driver.turn(WITH_PAUSE, END_S)
    finally:
        await driver.close()
        driver.shared.close()
    made = record(facts(mode=driver.mode), heard)
    assert (made.outcome, made.cutoffs) == (Outcome.COMPLETED, 1)
    assert [loud_s(one) for one in driver.segments] == pytest.approx([0.9, 0.9], abs=0.06)
    assert heard.playback.saved_ns > 0.3 * NS_PER_S
    assert heard.speech_end_ns == heard.playback.instant(END_S)


async def test_a_turn_at_the_tail_is_answered_and_its_reply_is_made_whole() -> None:
    """The latency is there, the reply's speech is all made though only its beginning sounds, and the next
    turn is well."""
    driver = Driver(
        scripted(
            pace="tail", hear="reply", turn_timeout_s=6, turn={"kind": "vad"}, tts={"seconds_per_word": 0.3}
        )
    )
    try:
        for _ in range(2):
            heard = await driver.turn(clip(1.5), 1.5)
            made = record(facts(mode=driver.mode), heard)
            assert made.outcome is Outcome.COMPLETED, made.reason
            assert made.voice_to_voice_ms is not None
            assert (made.speech_s or 0) > 3.0
            assert sum(end - begin for begin, end in heard.played.sounds()) < 1.5 * NS_PER_S
            assert heard.playback.saved_ns > 0.6 * NS_PER_S
        assert driver.opened == 1
    finally:
        await driver.close()
        driver.shared.close()


def test_an_asr_that_listens_as_the_sound_comes_is_refused(tmp_path: Path) -> None:
    """A streaming service is refused with the reason before anything is loaded; one on segments is not."""
    streaming = {"kind": "pipecat", "class": "pipecat.services.stt_service.STTService"}
    sample = Sample(id="a", path=write_wav(tmp_path / "a.wav", clip(0.3)), segments=((0.0, 0.3),))
    config = Config.model_validate({**scripted(pace="tail").model_dump(), "asr": streaming})
    with pytest.raises(BadRequest, match="transcribes whole segments"):
        make_plan(config, [sample])
    make_plan(config.model_copy(update={"pace": "real"}), [sample])
    make_plan(scripted(pace="tail"), [sample])
    whole = "pipecat.services.stt_service.SegmentedSTTService"
    assert by_segment(ServiceSettings.model_validate({"class": whole}))
    check_pace(config, None, "an ASR that is not built yet")
