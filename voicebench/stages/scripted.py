"""Stages of known delay: a scripted ASR, a scripted LLM and a tone for a voice.

They are plug-ins like any other, so that a whole pipeline can be run whose truth is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal

from pydantic import Field

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns
from voicebench.plan.config import Conversation, Settings
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Plugin
from voicebench.stages.early_transcript import EarlyTranscript, EarlyTranscription
from voicebench.stages.frame_tap import tapped
from voicebench.stages.llm import Tap
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import TTS_IDLE_S, Shared, WorkLog

Fault = Literal["none", "raise", "hang", "nothing"]


class AsrScript(Settings):
    """A transcript that comes a known time after the voice activity detector's stop."""

    text: str = "What is the capital of France?"
    delay_ms: float = Field(120.0, ge=0)
    early_text: str | None = None
    """What an early transcription hears, `text` where it is None."""
    early_delay_ms: float | None = Field(None, ge=0)
    """How long an early transcription takes, `delay_ms` where it is None. One that says something else than
    `text` is not kept at the stop: the segment is transcribed anew."""
    own_turns: bool = False
    """Does it propose the turn's start and end itself, as some hosted services do?"""
    fault: Fault = "none"


class LlmScript(Settings):
    """A reply whose first text comes a known time after the request."""

    text: str = "The capital of France is Paris. It lies on the river Seine."
    first_text_ms: float = Field(250.0, ge=0)
    per_word_ms: float = Field(5.0, ge=0)
    fault: Fault = "none"


class ToneScript(Settings):
    """A tone whose first byte comes a known time after the request, and whose sound a known time later."""

    first_byte_ms: float = Field(90.0, ge=0)
    leading_silence_ms: float = Field(60.0, ge=0)
    seconds_per_word: float = Field(0.2, gt=0)
    sample_rate: int = Field(24_000, ge=8_000, le=48_000)
    fault: Fault = "none"


async def until(instant_ns: int) -> None:
    """Sleep until an instant of the monotonic clock."""
    wait = instant_ns - now_ns()
    if wait > 0:
        await asyncio.sleep(wait / NS_PER_S)


async def _misbehave(fault: Fault, name: str) -> bool:
    """Act out a fault; True where nothing is to be produced."""
    if fault == "raise":
        raise RuntimeError(f"the scripted {name} raises, as it was told")
    if fault == "hang":
        await asyncio.Event().wait()
    return fault == "nothing"


def build_asr(settings: AsrScript, shared: Shared, work: WorkLog) -> Any:
    """The scripted ASR as a pipecat service on whole segments."""
    hush_pipecat()
    from pipecat.frames.frames import (
        Frame,
        ProposedUserStartedSpeakingFrame,
        ProposedUserStoppedSpeakingFrame,
        TranscriptionFrame,
    )
    from pipecat.services.settings import STTSettings
    from pipecat.services.stt_service import SegmentedSTTService
    from pipecat.utils.time import time_now_iso8601

    class ScriptedAsr(EarlyTranscription, SegmentedSTTService):
        """Says the same for every segment."""

        async def transcribe_early(self, audio: bytes, early: EarlyTranscript) -> str:
            start = now_ns()
            delay = settings.delay_ms if settings.early_delay_ms is None else settings.early_delay_ms
            await until(start + round(delay * NS_PER_MS))
            work.add("asr_wasted" if early.dropped else "asr", start)
            return settings.text if settings.early_text is None else settings.early_text

        async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame, None]:
            start = now_ns()
            early = self.taken_early()
            if early is not None and await early == settings.text:
                yield TranscriptionFrame(settings.text, self._user_id, time_now_iso8601())
                return
            if settings.own_turns:
                await self.broadcast_frame(ProposedUserStartedSpeakingFrame)
            if await _misbehave(settings.fault, "ASR"):
                return
            await until(start + round(settings.delay_ms * NS_PER_MS))
            work.add("asr", start)
            yield TranscriptionFrame(settings.text, self._user_id, time_now_iso8601())
            if settings.own_turns:
                await self.broadcast_frame(ProposedUserStoppedSpeakingFrame)

    return ScriptedAsr(settings=STTSettings(model="scripted", language=None), ttfs_p99_latency=1.0)


def build_llm(mode: Mode, settings: LlmScript, conversation: Conversation, shared: Shared, tap: Tap) -> Any:
    """The scripted LLM as a pipecat service, word by word."""
    hush_pipecat()
    from pipecat.frames.frames import (
        Frame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMFullResponseStartFrame,
        LLMTextFrame,
    )
    from pipecat.processors.frame_processor import FrameDirection
    from pipecat.services.llm_service import LLMService
    from pipecat.services.settings import LLMSettings

    class ScriptedLlm(LLMService[Any]):
        """Gives the same reply to every conversation."""

        async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
            await super().process_frame(frame, direction)
            if not isinstance(frame, LLMContextFrame):
                await self.push_frame(frame, direction)
                return
            start = now_ns()
            await self.push_frame(LLMFullResponseStartFrame())
            try:
                if not await _misbehave(settings.fault, "LLM"):
                    await self._speak(start)
            except RuntimeError as error:
                await self.push_error(str(error), exception=error)
            await self.push_frame(LLMFullResponseEndFrame())

        async def _speak(self, start: int) -> None:
            for index, word in enumerate(settings.text.split(" ")):
                due = settings.first_text_ms + index * settings.per_word_ms
                await until(start + round(due * NS_PER_MS))
                await self.push_frame(LLMTextFrame(word if index == 0 else f" {word}"))

    values: dict[str, Any] = dict.fromkeys(_fields(LLMSettings))
    values.update(model="scripted", extra={})
    service = tapped(ScriptedLlm, tap, mode.model, caveat=None)
    return service(settings=LLMSettings(**values))


def _fields(settings_class: type[Any]) -> list[str]:
    import dataclasses

    return [field.name for field in dataclasses.fields(settings_class)]


def build_tts(settings: ToneScript, shared: Shared, work: WorkLog) -> Any:
    """The tone as a pipecat TTS service."""
    hush_pipecat()
    import numpy as np
    from pipecat.frames.frames import Frame, TTSAudioRawFrame
    from pipecat.services.settings import TTSSettings
    from pipecat.services.tts_service import TTSService

    rate = settings.sample_rate

    def tone(words: int) -> bytes:
        length = round(rate * settings.seconds_per_word * max(1, words))
        wave = 0.3 * np.sin(2 * np.pi * 440.0 * np.arange(length) / rate + np.pi / 2)
        lead = np.zeros(round(rate * settings.leading_silence_ms / 1000))
        return (np.concatenate((lead, wave)) * 32767).astype(np.int16).tobytes()

    class Tone(TTSService):
        """Speaks 440 Hz, so many seconds a word."""

        native_rate = rate
        prefetchable = True

        async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
            start = now_ns()
            if await _misbehave(settings.fault, "TTS"):
                return
            audio = tone(len(text.split()))
            await until(start + round(settings.first_byte_ms * NS_PER_MS))
            work.add("tts_total", start)
            yield TTSAudioRawFrame(audio, rate, 1, context_id=context_id)

    return Tone(
        push_start_frame=True,
        push_stop_frames=True,
        stop_frame_timeout_s=TTS_IDLE_S,
        sample_rate=rate,
        settings=TTSSettings(model=None, voice="tone", language=None),
    )


ASR = Plugin(settings=AsrScript, build=build_asr, by_segment=lambda settings: True, title="scripted ASR")
LLM = Plugin(settings=LlmScript, build=build_llm, title="scripted LLM")
TTS = Plugin(settings=ToneScript, build=build_tts, title="tone")
