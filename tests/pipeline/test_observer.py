"""From frames to events: the instant of the push, each frame once, and nothing of the turn before."""

from __future__ import annotations

from typing import Any

import pytest
from pipecat.frames.frames import (
    AggregatedTextFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
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
from pipecat.observers.base_observer import FramePushed
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from voicebench.clock import now_ns
from voicebench.pipeline.observer import BarrierFrame, Event, Kind, TurnObserver

DOWN, UP = FrameDirection.DOWNSTREAM, FrameDirection.UPSTREAM


class Stage(FrameProcessor):
    """A stage that does nothing."""


async def seen(
    frame: Frame,
    direction: FrameDirection = DOWN,
    *,
    from_tts: bool = False,
    first: bool = True,
    at: int | None = None,
) -> list[Event]:
    """The events of one pushed frame."""
    tts, other = Stage(name="a voice"), Stage(name="another stage")
    observer = TurnObserver(tts)
    observer.begin_turn()
    await observer.on_push_frame(pushed(frame, tts if from_tts else other, direction, first, at))
    return observer.events


def pushed(frame: Frame, source: Any, direction: FrameDirection, first: bool, at: int | None) -> FramePushed:
    """What pipecat tells of a push."""
    return FramePushed(
        source=source,
        destination=source,
        frame=frame,
        direction=direction,
        timestamp=now_ns() if at is None else at,
        first_push=first,
    )


def spoken_text(spoken: bool) -> AggregatedTextFrame:
    """Text on its way to speech, or past it."""
    frame = AggregatedTextFrame("It is Paris.", "sentence")
    frame.will_be_spoken = spoken
    return frame


@pytest.mark.parametrize(
    ("frame", "kind", "from_tts"),
    [
        (VADUserStartedSpeakingFrame(), Kind.VAD_START, False),
        (VADUserStoppedSpeakingFrame(), Kind.VAD_STOP, False),
        (TranscriptionFrame("hello", "", ""), Kind.TRANSCRIPT, False),
        (UserStartedSpeakingFrame(), Kind.TURN_START, False),
        (UserStoppedSpeakingFrame(), Kind.TURN_END, False),
        (LLMContextFrame(LLMContext()), Kind.CONTEXT, False),
        (InterruptionFrame(), Kind.INTERRUPTION, False),
        (spoken_text(True), Kind.TTS_REQUEST, True),
        (TTSAudioRawFrame(bytes(4800), 24_000, 1), Kind.TTS_AUDIO, True),
        (TTSTextFrame("hello", "sentence"), Kind.TTS_SPOKEN, True),
        (TTSStoppedFrame(), Kind.TTS_STOPPED, True),
    ],
    ids=lambda value: str(value) if isinstance(value, Kind) else "",
)
async def test_a_frame_is_an_event_at_the_instant_of_its_push(
    frame: Frame, kind: Kind, from_tts: bool
) -> None:
    """Each frame that matters is one event, and its instant is the push, not the callback."""
    at = now_ns() + 10**12
    [event] = await seen(frame, from_tts=from_tts, at=at)
    assert (event.kind, event.at_ns) == (kind, at)
    assert event.seconds == (0.1 if kind is Kind.TTS_AUDIO else 0.0)


@pytest.mark.parametrize(
    ("frame", "direction", "from_tts"),
    [
        (UserStoppedSpeakingFrame(), UP, False),
        (InterruptionFrame(), UP, False),
        (InputAudioRawFrame(bytes(640), 16_000, 1), DOWN, False),
        (TTSAudioRawFrame(bytes(4800), 24_000, 1), DOWN, False),
        (TTSStoppedFrame(), DOWN, False),
        (TTSStartedFrame(), DOWN, True),
        (spoken_text(False), DOWN, True),
        (BarrierFrame(number=1), DOWN, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Frame) else "",
)
async def test_other_frames_are_no_events(frame: Frame, direction: FrameDirection, from_tts: bool) -> None:
    """The twin of a broadcast frame, audio of other stages, and text that is not spoken are no events."""
    assert await seen(frame, direction, from_tts=from_tts) == []


async def test_a_frame_counts_once() -> None:
    """A frame that is pushed on from stage to stage is an event at its first push only."""
    assert await seen(UserStoppedSpeakingFrame(), first=False) == []


async def test_an_error_tells_who_it_came_from() -> None:
    """An error on its way up names the stage that reported it, and its text."""
    stage = Stage(name="a recogniser")
    [event] = await seen(ErrorFrame("no microphone", processor=stage), UP)
    assert (event.kind, event.text, event.by) == (Kind.ERROR, "no microphone", str(stage))
    [event] = await seen(ErrorFrame("no microphone"), UP)
    assert event.by == "another stage"


async def test_what_was_pushed_before_the_turn_is_not_the_turns() -> None:
    """A frame of the turn before, told late, is no event of this one; whoever listens is not woken."""
    observer = TurnObserver(Stage())
    told: list[int] = []
    before = now_ns()
    observer.begin_turn()
    observer.on_event = lambda: told.append(len(observer.events))
    old, new = UserStoppedSpeakingFrame(), UserStoppedSpeakingFrame()
    await observer.on_push_frame(pushed(old, Stage(), DOWN, True, before - 1))
    assert observer.events == []
    await observer.on_push_frame(pushed(new, Stage(), DOWN, True, None))
    assert told == [1]
    observer.begin_turn()
    assert observer.events == []
