"""Whisper on this machine: pipecat's service with the model shared between sessions and its options open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Literal

from pydantic import Field

from voicebench.audio.rate_door import RateDoor
from voicebench.clock import now_ns
from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models.resolve import resolve_whisper
from voicebench.plan.config import Settings
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.early_transcript import EarlyTranscript, EarlyTranscription
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.whisper_bounds import Attempts, OutOfTime, most_tokens
from voicebench.stages.whisper_window import RATE, decode, window_for


class WhisperSettings(Settings):
    """faster-whisper's options that matter for latency."""

    model: str = "tiny.en"
    """A catalogue name, a folder with a CTranslate2 model, or a name for the library's own download: one like
    `large-v3`, or `owner/name` on its hub."""
    language: str | None = "en"
    """A code like `de`. None lets a multilingual model detect it: the record keeps what it found, and how
    probable that was."""
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    compute_type: str = "int8"
    cpu_threads: int = Field(2, ge=1, le=64)
    window: Literal["full", "speech"] = "full"
    """`full`: Whisper's 30 seconds, whatever was said. `speech`: 2 s longer than the speech, with two beams,
    and the full window where the result is doubtful."""
    beam_size: int = Field(5, ge=1, le=20)
    """Of the full window."""
    temperatures: tuple[float, ...] = Field((0.0, 0.2, 0.4), min_length=1, max_length=6)
    """Decoding is tried again at the next temperature where a result looks wrong: this bounds the tries. Each
    gives no more tokens than speech of that length can have."""
    patience_secs: float = Field(5.0, gt=0, le=60.0)
    """So long beyond the audio's own length no further try is begun: what was understood by then is the
    transcript."""
    timestamps: bool = True
    no_speech_prob: float = Field(0.4, ge=0.0, le=1.0)
    """Segments that look less like speech than this are dropped."""
    trailing_silence_secs: float = Field(0.5, ge=0.0, le=5.0)
    """Silence appended so that the model hears the end of the last word."""


WORKERS = 2
"""So many segments can be decoded at once: one that was begun too early does not hold up the next."""


def needs(settings: WhisperSettings) -> Needs:
    """faster-whisper, and the embedded model where that is the one."""
    source = resolve_whisper(settings.model)
    return Needs(
        libraries=(("faster_whisper", "local"),), models=(source.model_id,) if source.model_id else ()
    )


def build(settings: WhisperSettings, shared: Shared, work: WorkLog) -> Any:
    """A pipecat STT service on the run's shared model.

    Raises ModelFileProblem where the model cannot be had, BadRequest for a language that it does not know.
    """
    model = _shared_model(settings, shared)
    _refuse_language(settings, model)
    return _service_class()(model, settings, work)


def _refuse_language(settings: WhisperSettings, model: Any) -> None:
    """Raise BadRequest for a pinned language that would fail in each turn, or be heard as English."""
    known = model.supported_languages
    if settings.language is None or settings.language in known:
        return
    raise BadRequest(
        f"asr (whisper), language: the model {settings.model!r} does not know {settings.language!r}.",
        "It hears English only: use a model without .en in its name."
        if known == ["en"]
        else f"It knows {', '.join(sorted(known))}; leave the key empty to have it detected.",
    )


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
            num_workers=WORKERS,
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


SETTLES_WITHIN_S = 0.2
"""Behind an early silence a doubtful transcript waits so long at most for the end of the segment."""


def _service_class() -> Any:
    """The subclass, made when pipecat may be imported."""
    hush_pipecat()
    import numpy as np
    from pipecat.frames.frames import Frame, InputAudioRawFrame, TranscriptionFrame
    from pipecat.processors.frame_processor import FrameDirection
    from pipecat.services.whisper.stt import WhisperSTTService
    from pipecat.utils.time import time_now_iso8601

    class SharedWhisper(EarlyTranscription, WhisperSTTService):
        """Transcribes whole segments on a model that is loaded once."""

        def __init__(self, model: Any, settings: WhisperSettings, work: WorkLog) -> None:
            self._shared_model = model
            self._options = settings
            self._work = work
            self._door = RateDoor(RATE)
            super().__init__(
                sample_rate=RATE,
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

        async def process_audio_frame(self, frame: InputAudioRawFrame, direction: FrameDirection) -> None:
            await super().process_audio_frame(self._door.admit(frame), direction)

        async def transcribe_early(self, audio: bytes, early: EarlyTranscript) -> str:
            return await asyncio.to_thread(self._transcribe, audio, early)

        def _transcribe(self, audio: bytes, early: EarlyTranscript | None = None) -> str:
            """Decode one segment; blocks, so it runs in a thread."""
            start = now_ns()
            try:
                return self._decode(audio, early)
            finally:
                self._work.add("asr_wasted" if early is not None and early.dropped else "asr", start)

        def _decode(self, audio: bytes, early: EarlyTranscript | None) -> str:
            samples = np.frombuffer(audio, dtype=np.int16).astype(np.float32) / 32768.0
            options = self._options
            if options.window == "speech":
                short = self._on_short_window(samples, early)
                if short is not None:
                    return short
                if early is not None:
                    # Half a sentence is often doubtful, and the full window would hold up those that somebody
                    # waits for: it has time until the silence has ended the segment, or not.
                    early.settled.wait(SETTLES_WITHIN_S)
                    if early.dropped:
                        return ""
            model = self._shared_model
            seconds = samples.size / RATE
            attempts = Attempts(options.temperatures, seconds + options.patience_secs)
            pieces, info = model.transcribe(
                samples,
                language=options.language,
                beam_size=options.beam_size,
                temperature=attempts,
                without_timestamps=not options.timestamps,
                condition_on_previous_text=False,
                max_new_tokens=most_tokens(
                    seconds, multilingual=model.model.is_multilingual, longest=model.max_length
                ),
            )
            kept = []
            with suppress(OutOfTime):
                for segment in pieces:
                    if segment.no_speech_prob < options.no_speech_prob and segment.text.strip():
                        kept.append(segment.text.strip())
            facts: dict[str, Any] = {"language": info.language}
            if info.all_language_probs:
                # One that was pinned was not detected, and has no probability.
                facts["language_probability"] = float(info.language_probability)
            if attempts.tried_again:
                facts["asr_fallback"] = attempts.hottest
            if attempts.cut:
                facts["asr_out_of_time"] = attempts.made
            self._note(early, facts)
            return " ".join(kept)

        def _note(self, early: EarlyTranscript | None, facts: dict[str, Any]) -> None:
            """Facts of the turn; none of a transcript that nobody takes."""
            if early is None or not early.dropped:
                for name, value in facts.items():
                    self._work.note(name, value)

        def _on_short_window(self, samples: Any, early: EarlyTranscript | None) -> str | None:
            """The transcript by a window as long as the speech; None where the full one must decide."""
            window = window_for(samples.size / RATE)
            if window is None or (self._shared_model.model.is_multilingual and not self._options.language):
                return None
            decoded = decode(self._shared_model, samples, window, self._options.language)
            if decoded.doubt:
                self._note(early, {"asr_window_doubt": decoded.doubt})
                return None
            self._note(early, {"language": self._options.language or "en"})
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
