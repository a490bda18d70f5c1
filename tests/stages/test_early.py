"""Transcription that begins at the first silence, and is dropped where the person goes on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest
from pipecat.audio.vad.vad_analyzer import VADState

from tests.stages.made_whisper import MadeWhisper, tokens_of
from voicebench.audio.manifest import load_manifest
from voicebench.audio.prepare import prepare
from voicebench.errors import BadRequest
from voicebench.pipeline.build import resolve
from voicebench.pipeline.observer import Kind
from voicebench.pipeline.session import Session
from voicebench.plan.config import Config, Early, Vad
from voicebench.plan.modes import Mode
from voicebench.stages import asr_whisper
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.early import early_hook
from voicebench.stages.early_transcript import EarlyTranscript, EarlyTranscription
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.vad import SilenceHook, build_vad

SAMPLES = Path(__file__).parents[2] / "audio_samples"


async def test_a_silence_is_told_once_before_the_stop_and_revoked_by_speech() -> None:
    """The detector tells of a silence before its stop, once, and says so when speech goes on."""
    told: list[str] = []
    hook = SilenceHook(90.0, lambda: told.append("silence"), lambda: told.append("speech"))
    vad = build_vad(Vad(kind="energy", start_secs=0.05, stop_secs=0.3), hook)
    vad.set_sample_rate(16_000)
    loud = (np.sin(np.arange(320) * 0.3) * 9000).astype(np.int16).tobytes()
    quiet = bytes(640)

    async def hear(piece: bytes, milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            await vad.analyze_audio(piece)

    await hear(loud, 200)
    await hear(quiet, 80)
    assert told == []
    await hear(quiet, 100)
    assert told == ["silence"]
    await hear(loud, 60)
    assert told == ["silence", "speech"]
    await hear(quiet, 400)
    assert told == ["silence", "speech", "silence"]
    await vad.cleanup()


async def test_a_fallen_level_is_told_before_the_detector_notices() -> None:
    """A level 20 dB below the person's is a silence, though the detector still hears speech; a click revokes
    nothing, speech does, and so does a detector that goes on hearing it, whose own silence then counts."""
    told: list[str] = []
    hook = SilenceHook(60.0, lambda: told.append("silence"), lambda: told.append("speech"), by_level=True)
    vad = build_vad(Vad(kind="energy", start_secs=0.05, stop_secs=0.3), hook)
    vad.set_sample_rate(16_000)
    wave = np.sin(np.arange(320) * 0.3)
    loud, faint = ((wave * peak).astype(np.int16).tobytes() for peak in (9000, 300))

    async def hear(piece: bytes, milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            state = await vad.analyze_audio(piece)
        assert state is VADState.SPEAKING

    await hear(loud, 200)
    await hear(faint, 40)
    assert told == []
    await hear(faint, 20)
    assert told == ["silence"]
    await hear(loud, 20)
    await hear(faint, 100)
    assert told == ["silence"]
    await hear(loud, 40)
    assert told == ["silence", "speech"]
    await hear(faint, 60)
    assert told == ["silence", "speech", "silence"]
    await hear(faint, 200)
    assert told == ["silence", "speech", "silence", "speech"]
    await vad.analyze_audio(bytes(640))
    await vad.analyze_audio(bytes(640))
    await vad.analyze_audio(bytes(640))
    assert told == ["silence", "speech"] * 2 + ["silence"]
    await vad.cleanup()


def test_an_asr_that_cannot_drop_what_it_began_is_refused() -> None:
    """Early transcription with a service that cannot revoke it is refused with what to do."""
    with pytest.raises(BadRequest, match="whisper"):
        early_hook(Early(transcribe_after_ms=96), object(), object(), WorkLog())
    assert early_hook(Early(), object(), object(), WorkLog()) is None


async def test_what_was_dropped_is_read_into_the_prompt_cache_until_the_model_is_asked() -> None:
    """A model that is asked ahead reads a dropped transcript before, and stops reading when it is asked."""
    read: list[str] = []
    begun, broken_off = asyncio.Event(), asyncio.Event()

    class Model:
        async def warm(self, text: str) -> None:
            read.append(text)
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                broken_off.set()
                raise

    class Ear(EarlyTranscription):
        announces = True

        async def transcribe_early(self, audio: bytes, early: EarlyTranscript) -> str:
            return audio.decode()

        async def _announce(self, text: str, early: EarlyTranscript) -> None:
            read.append(f"asked: {text}")

    asr = Ear()
    early_hook(Early(transcribe_after_ms=40, warm_llm=True), asr, Model(), WorkLog())
    await asr._run_early(b"", EarlyTranscript(dropped=True))
    assert read == []
    await asr._run_early(b"What is the", EarlyTranscript(dropped=True))
    async with asyncio.timeout(5):
        await begun.wait()
        await asr._run_early(b"What is the capital?", EarlyTranscript())
        await broken_off.wait()
        # One that was slower than its successor tells nothing of what comes next.
        await asr._run_early(b"What is", EarlyTranscript(dropped=True, number=-1))
    assert read == ["What is the", "asked: What is the capital?"]


@pytest.mark.parametrize(("goes_on", "attempts"), [(True, 1), (False, 2)])
def test_a_doubtful_early_transcript_waits_for_the_end_of_the_segment(goes_on: bool, attempts: int) -> None:
    """The full window is asked where the silence did end the segment; where the person went on meanwhile it
    is not: it would take the processors from what is waited for."""
    model = MadeWhisper(lambda temperature: (tokens_of("what is the capital of france"), -3.0, 0.1))
    service = asr_whisper._service_class()(
        model, WhisperSettings(window="speech", temperatures=(0.0,)), WorkLog()
    )
    early = EarlyTranscript()

    class Settled(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            assert len(model.network.temperatures) == 1
            early.dropped, early.taken = goes_on, not goes_on
            return True

    early.settled = Settled()
    text = service._decode(np.zeros(3 * 16_000, dtype=np.int16).tobytes(), early)
    assert len(model.network.temperatures) == attempts
    assert bool(text) is not goes_on


@pytest.mark.models
async def test_early_transcripts_say_the_same_and_the_dropped_ones_are_counted() -> None:
    """With a pause inside, the early transcript of the first part is dropped or confirmed, never doubled."""
    mode = Mode(id="m", kind="emulated", provider="x", api="scripted", model="scripted")
    config = Config.model_validate(
        {
            "modes": ["m"],
            "own_modes": [mode],
            "asr": {"kind": "whisper", "window": "speech", "cpu_threads": 1},
            "tts": {"kind": "tone"},
            "turn": {"kind": "vad"},
            "vad": {"stop_secs": 0.5},
            "early": {"transcribe_after_ms": 96},
            "hear": "onset",
        }
    )
    shared = Shared(offline=True)
    session = Session(mode, resolve(config, [mode], "test"), config, shared)
    await session.open()
    try:
        sample = next(one for one in load_manifest(SAMPLES) if one.id == "capital-of-france")
        clip = prepare(sample)
        heard = await session.turn(clip.pcm, clip.speech_end_s, True)
    finally:
        await session.close()
        shared.close()
    words = " ".join(event.text for event in heard.events if event.kind is Kind.TRANSCRIPT)
    assert "capital" in words
    assert words.lower().count("france") == 1
    stop = next(event.at_ns for event in reversed(heard.events) if event.kind is Kind.VAD_STOP)
    done = [work for work in heard.work if work.name == "asr"]
    assert done[-1].start_ns < stop
