"""Turns made of events, in ms after the end of the person's speech, which lies at ORIGIN."""

from __future__ import annotations

from typing import Any

import numpy as np

from voicebench.audio.file_source import Playback
from voicebench.audio.played import Played
from voicebench.clock import NS_PER_MS
from voicebench.pipeline.marks import Answer, answer, attempts
from voicebench.pipeline.observer import Event, Kind
from voicebench.pipeline.record import TurnFacts
from voicebench.pipeline.session import Heard
from voicebench.plan.modes import Mode
from voicebench.turns.stream import AttemptLog, StreamLog, StreamStatus
from voicebench.turns.timeline import Anchor, Mark

ORIGIN = 5_000_000_000
RATE = 16_000


def at(ms: float) -> int:
    """The instant so many ms after the end of speech."""
    return ORIGIN + round(ms * NS_PER_MS)


def event(kind: Kind, ms: float, text: str = "", seconds: float = 0.0, by: str = "") -> Event:
    """One event."""
    return Event(kind, at(ms), text, seconds, by)


def heard_person(vad_stop: float = 200, transcript: float = 300, turn_end: float = 320) -> list[Event]:
    """What a person's turn brings, up to its end."""
    return [
        event(Kind.VAD_START, -1500),
        event(Kind.TURN_START, -1499),
        event(Kind.INTERRUPTION, -1498),
        event(Kind.VAD_STOP, vad_stop),
        event(Kind.TRANSCRIPT, transcript, "What is it?"),
        event(Kind.CONTEXT, turn_end - 1),
        event(Kind.TURN_END, turn_end),
    ]


def stream(
    request: float = 325,
    first: float | None = 500,
    *,
    texts: tuple[str, ...] = ("It is", " Paris."),
    gap: float = 20,
    end: float | None = None,
    status: StreamStatus = "ok",
    detail: str = "",
    tool_calls: int = 0,
    finish: str | None = "stop",
) -> StreamLog:
    """A request, with its first text at `first` ms (None: without text); `end` None: 5 ms after the last."""
    log = StreamLog(request_ns=at(request), model="made-1", tool_calls=tool_calls, finish_reason=finish)
    log.attempts.append(AttemptLog(log.request_ns))
    last = request + 50
    if first is not None:
        for index, text in enumerate(texts):
            last = first + index * gap
            log.deltas.append((at(last), text))
        log.first_token_ns = log.deltas[0][0]
    log.terminal = status == "ok"
    if status != "running":
        log.end(at(last + 5 if end is None else end), status, detail)
    return log


def spoken(
    request: float = 530, audio: float = 600, seconds: float = 0.5, text: str = "It is Paris."
) -> list[Event]:
    """What speech synthesis brings for one clause, up to its end."""
    return [
        event(Kind.TTS_REQUEST, request, text),
        event(Kind.TTS_AUDIO, audio, seconds=seconds),
        event(Kind.TTS_SPOKEN, audio + 1, text),
        event(Kind.TTS_STOPPED, audio + 2),
    ]


def played(*sounds: tuple[float, float]) -> Played:
    """An account in which sound is from ms to ms, each sound a run of its own."""
    account = Played()
    for begin, end in sounds:
        count = round((end - begin) * RATE / 1000)
        account.write(np.full(count, 12_000, dtype=np.int16), RATE, at(begin))
    return account


def answered(events: list[Event], streams: list[StreamLog], sounds: Played, speech: bool = True) -> Answer:
    """What answered a turn."""
    return answer(attempts(events, streams, sounds), ORIGIN if speech else None)


def in_ms(marks: dict[Mark, int]) -> dict[str, float]:
    """Marks in ms after the end of speech."""
    return {mark.value: (instant - ORIGIN) / NS_PER_MS for mark, instant in marks.items()}


def turn(
    events: list[Event] | None = None,
    streams: list[StreamLog] | None = None,
    sounds: Played | None = None,
    ending: str = "answered",
    *,
    speech: bool = True,
    **more: Any,
) -> Heard:
    """A turn that is over: by default one that was answered in 640 ms."""
    return Heard(
        playback=Playback(start_ns=at(-2000), samples=RATE * 2),
        speech_end_ns=ORIGIN if speech else None,
        events=heard_person() + spoken() if events is None else events,
        streams=[stream()] if streams is None else streams,
        played=played((640, 1140)) if sounds is None else sounds,
        ending=ending,
        **more,
    )


def facts(**changes: Any) -> TurnFacts:
    """What is known of the turn before it is run."""
    values: dict[str, Any] = {
        "run": "r",
        "index": 0,
        "repeat": 0,
        "mode": Mode(id="made/m", kind="local", provider="made", api="scripted", model="made-1"),
        "sample": "s",
        "anchor": Anchor.ANNOTATED,
        "has_speech": True,
        "reference": "what is it",
        "acceptable": ("Paris",),
        "language": "en",
    }
    return TurnFacts(**{**values, **changes})
