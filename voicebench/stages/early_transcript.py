"""Transcription that begins at the first silence: what speech recognition on whole segments needs for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class EarlyTranscript:
    """A transcription begun before the turn's end; `dropped` when the person went on speaking."""

    task: asyncio.Task[str] | None = None
    dropped: bool = False
    taken: bool = False
    """Has its segment ended?"""
    announced: bool = False
    """Was the transcript told to the turn detector?"""
    number: int = 0
    """Of those that its service began; later ones are higher."""
    settled: threading.Event = field(default_factory=threading.Event)
    """Set when it is known whether the silence ends the segment: taken or dropped."""


class EarlyTranscription:
    """Mixed into a pipecat STT service on whole segments, before it in the order of bases.

    The service implements `transcribe_early` and takes the result in its `run_stt` by `taken_early`.
    """

    announces = False
    """Is an early transcript told to the turn detector, so that the model can be asked at once?"""
    on_early_text: Callable[[str], None] = staticmethod(lambda text: None)
    """Called with an early transcript that stands."""
    on_dropped_text: Callable[[str], None] = staticmethod(lambda text: None)
    """Called with one of which the person has gone on: most likely what the whole will begin with."""
    before_asking: Callable[[], None] = staticmethod(lambda: None)
    """Called before a transcript is told to the turn detector."""
    _early: EarlyTranscript | None = None
    _early_loop: asyncio.AbstractEventLoop | None = None
    _early_begun = 0
    _early_asked = 0
    """The number of the last one that was told to the turn detector."""

    async def transcribe_early(self, audio: bytes, early: EarlyTranscript) -> str:
        """The transcript of `audio`, 16-bit mono with its trailing silence; empty where nothing was said."""
        raise NotImplementedError

    async def start(self, frame: Any) -> None:
        """Remember the loop that the detector's thread is to call."""
        self._early_loop = asyncio.get_running_loop()
        await super().start(frame)  # type: ignore[misc]  # of the service that this is mixed into

    def silence(self) -> None:
        """The person may have finished: begin to transcribe. May be called from any thread."""
        if self._early_loop is not None:
            self._early_loop.call_soon_threadsafe(self._begin_early)

    def speech(self) -> None:
        """The person goes on: what was begun is dropped. May be called from any thread."""
        if self._early_loop is not None:
            self._early_loop.call_soon_threadsafe(self._drop_early)

    def taken_early(self) -> asyncio.Task[str] | None:
        """The transcription that was begun for the segment which ends now; None: there is none."""
        early, self._early = self._early, None
        if early is None:
            return None
        early.taken = True
        early.settled.set()
        return early.task

    def _begin_early(self) -> None:
        self._drop_early()
        service: Any = self
        self._early_begun += 1
        early = EarlyTranscript(number=self._early_begun)
        audio = bytes(service._audio_buffer) + service._trailing_silence()
        early.task = service.create_task(self._run_early(audio, early), "early-transcript")
        self._early = early

    def _drop_early(self) -> None:
        early, self._early = self._early, None
        if early is None:
            return
        early.dropped = True
        early.settled.set()
        if early.announced:
            from pipecat.frames.frames import EagerEndOfTurnCancelFrame

            service: Any = self
            service.create_task(service.push_frame(EagerEndOfTurnCancelFrame()), "early-transcript-revoked")

    async def _run_early(self, audio: bytes, early: EarlyTranscript) -> str:
        text = await self.transcribe_early(audio, early)
        if not text:
            return text
        if early.dropped:
            # Where a later one was asked with already, nothing begins with this one any more.
            if early.number >= self._early_asked:
                self.on_dropped_text(text)
            return text
        self.on_early_text(text)
        if self.announces and not (early.taken and self._speaks_again()):
            self.before_asking()
            await self._announce(text, early)
        return text

    def _speaks_again(self) -> bool:
        """Does the person speak, after the segment had ended?"""
        service: Any = self
        return bool(service._user_speaking)

    async def _announce(self, text: str, early: EarlyTranscript) -> None:
        from pipecat.frames.frames import EagerTranscriptionFrame
        from pipecat.utils.time import time_now_iso8601

        early.announced = True
        self._early_asked = early.number
        service: Any = self
        # The detector looks at `result` when the frame reaches it: dropped by then, it asks nobody.
        await service.push_frame(
            EagerTranscriptionFrame(text, service._user_id, time_now_iso8601(), result=early)
        )
