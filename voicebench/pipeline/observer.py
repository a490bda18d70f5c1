"""From pipecat's frames to the events of a turn: the only file that reads frames for their instants.

An event's instant is that of the frame's push on the monotonic clock. The observer's own callback runs later,
from a queue, and its delay enters nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pipecat.clocks.base_clock import BaseClock
from pipecat.frames.frames import (
    AggregatedTextFrame,
    ControlFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMContextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    TTSTextFrame,
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.processors.frame_processor import FrameDirection

from voicebench.clock import now_ns
from voicebench.stages.llm_keys import redact


class MonotonicClock(BaseClock):
    """pipecat's clock, set to the run's own: frame stamps and audio instants compare directly."""

    def get_time(self) -> int:
        """Now, in ns of the monotonic clock."""
        return now_ns()

    def start(self) -> None:
        """Nothing to start."""


class Kind(StrEnum):
    """What happened."""

    VAD_START = "vad_start"
    VAD_STOP = "vad_stop"
    TRANSCRIPT = "transcript"
    TURN_START = "turn_start"
    TURN_END = "turn_end"
    CONTEXT = "context"
    """The conversation goes to the language model."""
    TTS_REQUEST = "tts_request"
    TTS_AUDIO = "tts_audio"
    TTS_SPOKEN = "tts_spoken"
    """All audio of a piece of text has come back."""
    TTS_STOPPED = "tts_stopped"
    INTERRUPTION = "interruption"
    ERROR = "error"
    BARRIER = "barrier"


@dataclass(frozen=True)
class Event:
    """One event: instant in ns, text (transcript, clause, error), and the seconds of audio it carries."""

    kind: Kind
    at_ns: int
    text: str = ""
    seconds: float = 0.0
    by: str = ""
    """Who reported an error."""


@dataclass
class BarrierFrame(ControlFrame):
    """Goes through the pipeline behind everything else: where it comes out, nothing older is left."""

    number: int = 0


_KINDS: dict[type[Frame], Kind] = {
    VADUserStartedSpeakingFrame: Kind.VAD_START,
    VADUserStoppedSpeakingFrame: Kind.VAD_STOP,
    UserStartedSpeakingFrame: Kind.TURN_START,
    UserStoppedSpeakingFrame: Kind.TURN_END,
    TTSStartedFrame: Kind.TTS_REQUEST,
    TTSStoppedFrame: Kind.TTS_STOPPED,
    InterruptionFrame: Kind.INTERRUPTION,
}


class TurnObserver(BaseObserver):
    """Collects events. `on_event` is called after each, with the collected list up to date."""

    def __init__(self, tts: Any) -> None:
        super().__init__(observe_every_push=False)
        self._tts = tts
        self.events: list[Event] = []
        self.on_event: Callable[[], None] = lambda: None
        self._since_ns = 0

    def begin_turn(self) -> None:
        """Forget what happened before, also what is told only later."""
        self.events = []
        self._since_ns = now_ns()

    async def on_push_frame(self, data: FramePushed) -> None:
        """Take what matters from a pushed frame."""
        if not data.first_push or data.timestamp < self._since_ns:
            return
        event = self._event(data)
        if event is not None:
            self.events.append(event)
            self.on_event()

    def _event(self, data: FramePushed) -> Event | None:
        frame, at = data.frame, data.timestamp
        if isinstance(frame, ErrorFrame):
            source = frame.processor if frame.processor is not None else data.source
            return Event(Kind.ERROR, at, redact(str(frame.error)), by=str(source))
        if data.direction is not FrameDirection.DOWNSTREAM:
            return None
        if isinstance(frame, BarrierFrame):
            return None
        if isinstance(frame, TranscriptionFrame):
            return Event(Kind.TRANSCRIPT, at, frame.text)
        if isinstance(frame, LLMContextFrame):
            return Event(Kind.CONTEXT, at)
        if data.source is self._tts:
            return self._spoken(frame, at)
        kind = _KINDS.get(type(frame))
        if kind is None or kind in (Kind.TTS_REQUEST, Kind.TTS_STOPPED):
            return None
        return Event(kind, at)

    @staticmethod
    def _spoken(frame: Frame, at: int) -> Event | None:
        """An event of the speech synthesis service itself."""
        if isinstance(frame, TTSAudioRawFrame):
            return Event(Kind.TTS_AUDIO, at, seconds=frame.num_frames / frame.sample_rate)
        if isinstance(frame, TTSTextFrame):
            return Event(Kind.TTS_SPOKEN, at, frame.text)
        if isinstance(frame, AggregatedTextFrame):
            return Event(Kind.TTS_REQUEST, at, frame.text) if frame.will_be_spoken else None
        if isinstance(frame, TTSStoppedFrame):
            return Event(Kind.TTS_STOPPED, at)
        return None
