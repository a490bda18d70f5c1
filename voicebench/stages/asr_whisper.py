"""Whisper on this machine: pipecat's service with the model shared between sessions and its options open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal

from pydantic import Field

from voicebench.clock import now_ns
from voicebench.errors import ModelFileProblem
from voicebench.models.resolve import resolve_whisper
from voicebench.plan.config import Settings
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.early_transcript import EarlyTranscript, EarlyTranscription
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.whisper_window import RATE, decode, window_for


class WhisperSettings(Settings):
    """faster-whisper's options that matter for latency."""

    model: str = "tiny.en"
    """A catalogue name, a folder with a CTranslate2 model, or a name for the library's own download: one like
    `large-v3`, or `owner/name` on its hub."""
    language: str | None = "en"
    """None lets a multilingual model detect it; the record keeps what was detected."""
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    compute_type: str = "int8"
    cpu_threads: int = Field(2, ge=1, le=64)
    window: Literal["full", "speech"] = "full"
    """`full`: Whisper's 30 seconds, whatever was said. `speech`: as long as the speech, decoded greedily, and
    the full window where the result is doubtful."""
    beam_size: int = Field(5, ge=1, le=20)
    """Of the full window."""
    temperatures: tuple[float, ...] = (0.0, 0.2, 0.4)
    """Decoding is tried again at the next temperature where a result looks wrong: this bounds the tries."""
    timestamps: bool = True
    no_speech_prob: float = Field(0.4, ge=0.0, le=1.0)
    """Segments that look less like speech than this are dropped."""
    trailing_silence_secs: float = Field(0.5, ge=0.0, le=5.0)
    """Silence appended so that the model hears the end of the last word."""


def needs(settings: WhisperSettings) -> Needs:
    """faster-whisper, and the embedded model where that is the one."""
    source = resolve_whisper(settings.model)
    return Needs(
        libraries=(("faster_whisper", "local"),), models=(source.model_id,) if source.model_id else ()
    )


def build(settings: WhisperSettings, shared: Shared, work: WorkLog) -> Any:
    """A pipecat STT service on the run's shared model."""
    return _service_class()(_shared_model(settings, shared), settings, work)


def _shared_model(settings: WhisperSettings, shared: Shared) -> Any:
    return shared.get(
        ("whisper", settings.model, settings.device, settings.compute_type, settings.cpu_threads),
        lambda: load(settings, shared.offline),
    )


def load(settings: WhisperSettings, offline: bool) -> Any:
    """The model itself, from the cache, a folder, or the library's own download."""
    hush_pipecat()
    from faster_whisper import WhisperModel

    source = resolve_whisper(settings.model)
    try:
        return WhisperModel(
            str(source.folder or source.library_name),
            device=settings.device,
            compute_type=settings.compute_type,
            cpu_threads=settings.cpu_threads,
            local_files_only=offline or source.folder is not None,
        )
    except Exception as error:
        if offline and source.folder is None:
            raise ModelFileProblem(
                f"The Whisper model {settings.model!r} was not downloaded before, and the run is offline.",
                "Run once without --offline, or name a folder that holds the model.",
            ) from error
        raise ModelFileProblem(
            f"The Whisper model {settings.model!r} cannot be loaded: {' '.join(str(error).split())[:300]}",
            "Check its name, and the network where it must be downloaded; or name a folder that holds it.",
        ) from error


def _service_class() -> Any:
    """The subclass, made when pipecat may be imported."""
    hush_pipecat()
    import numpy as np
    from pipecat.frames.frames import Frame, TranscriptionFrame
    from pipecat.services.whisper.stt import WhisperSTTService
    from pipecat.utils.time import time_now_iso8601

    class SharedWhisper(EarlyTranscription, WhisperSTTService):
        """Transcribes whole segments on a model that is loaded once."""

        def __init__(self, model: Any, settings: WhisperSettings, work: WorkLog) -> None:
            self._shared_model = model
            self._options = settings
            self._work = work
            super().__init__(
                trailing_silence_secs=settings.trailing_silence_secs,
                ttfs_p99_latency=1.0,
                settings=WhisperSTTService.Settings(
                    model=settings.model,
                    language=settings.language,
                    no_speech_prob=settings.no_speech_prob,
                ),
            )

        def _load(self) -> None:
            self._model = self._shared_model

        async def transcribe_early(self, audio: bytes, early: EarlyTranscript) -> str:
            return await asyncio.to_thread(self._transcribe, audio, early)

        def _transcribe(self, audio: bytes, early: EarlyTranscript | None = None) -> str:
            """Decode one segment; blocks, so it runs in a thread."""
            start = now_ns()
            try:
                return self._decode(audio)
            finally:
                self._work.add("asr_wasted" if early is not None and early.dropped else "asr", start)

        def _decode(self, audio: bytes) -> str:
            samples = np.frombuffer(audio, dtype=np.int16).astype(np.float32) / 32768.0
            options = self._options
            if options.window == "speech":
                short = self._on_short_window(samples)
                if short is not None:
                    return short
            pieces, info = self._shared_model.transcribe(
                samples,
                language=options.language,
                beam_size=options.beam_size,
                temperature=list(options.temperatures),
                without_timestamps=not options.timestamps,
                condition_on_previous_text=False,
            )
            segments = list(pieces)
            self._work.note("language", info.language)
            self._work.note("language_probability", float(info.language_probability))
            hottest = max((segment.temperature or 0.0 for segment in segments), default=0.0)
            if hottest > options.temperatures[0]:
                self._work.note("asr_fallback", hottest)
            kept = (s.text.strip() for s in segments if s.no_speech_prob < options.no_speech_prob)
            return " ".join(text for text in kept if text)

        def _on_short_window(self, samples: Any) -> str | None:
            """The transcript by a window as long as the speech; None where the full one must decide."""
            window = window_for(samples.size / RATE)
            if window is None or (self._shared_model.model.is_multilingual and not self._options.language):
                return None
            decoded = decode(self._shared_model, samples, window, self._options.language)
            if decoded.doubt:
                self._work.note("asr_window_doubt", decoded.doubt)
                return None
            self._work.note("language", self._options.language or "en")
            return decoded.text if decoded.no_speech_prob < self._options.no_speech_prob else ""

        async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame, None]:
            early = self.taken_early()
            if early is not None:
                text = await early
            else:
                text = await asyncio.to_thread(self._transcribe, audio)
            if text:
                yield TranscriptionFrame(text, self._user_id, time_now_iso8601())

    return SharedWhisper


PLUGIN = Plugin(
    settings=WhisperSettings,
    build=build,
    needs=needs,
    load=_shared_model,
    by_segment=lambda settings: True,
    title="Whisper (faster-whisper)",
)
