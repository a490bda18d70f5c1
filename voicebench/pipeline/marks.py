"""From the events of a turn to its marks: which attempt answered the person, and when each step of it ended.

Pure: events, streams and the account of what was played go in, an `Answer` comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from voicebench.audio.played import Played
from voicebench.pipeline.observer import Event, Kind
from voicebench.turns.stream import StreamLog
from voicebench.turns.timeline import Mark


@dataclass
class Attempt:
    """One committed end of turn, the request it led to, and the speech that came of it."""

    turn_end_ns: int
    vad_stop_ns: int | None = None
    transcript_ns: int | None = None
    streams: list[StreamLog] = field(default_factory=list)
    requests: list[Event] = field(default_factory=list)
    """Clauses as they went to speech synthesis."""
    audio: list[Event] = field(default_factory=list)
    spoken: int = 0
    """How many clauses have all their audio."""
    speech_ended: bool = False
    """Has speech synthesis ended this reply?"""
    first_audible_ns: int | None = None
    last_audible_ns: int | None = None

    @property
    def stream(self) -> StreamLog | None:
        """The request's stream; where a tool call led to another, the first with text, else the last."""
        for stream in self.streams:
            if stream.first_text_ns is not None:
                return stream
        return self.streams[-1] if self.streams else None

    @property
    def owed(self) -> bool:
        """Is there a clause that went to speech synthesis and has not all its audio yet?

        Where synthesis said that it was done, after some audio, nothing is owed any more.
        """
        return len(self.requests) > self.spoken and not (self.speech_ended and self.audio)

    @property
    def speech_s(self) -> float:
        """Seconds of speech that synthesis has made so far."""
        return sum(event.seconds for event in self.audio)

    @property
    def first_clause_s(self) -> float | None:
        """Seconds of speech in the first clause; None until all of it has come."""
        if not self.requests or not (self.spoken or self.speech_ended):
            return None
        if len(self.requests) == 1:
            return self.speech_s
        second = self.requests[1].at_ns
        return sum(event.seconds for event in self.audio if event.at_ns < second)


def attempts(events: Sequence[Event], streams: Sequence[StreamLog], played: Played) -> list[Attempt]:
    """The attempts of a turn in order.

    What was detected and transcribed before one end of turn does not count for the next one.
    """
    found: list[Attempt] = []
    vad_stop: int | None = None
    ordered = sorted(events, key=lambda event: event.at_ns)
    for event in ordered:
        if event.kind is Kind.VAD_STOP:
            vad_stop = event.at_ns
        elif event.kind is Kind.TURN_END:
            found.append(Attempt(event.at_ns, vad_stop))
            vad_stop = None
    _give_streams(found, ordered, streams)
    _give_transcripts(found, ordered)
    _give_speech(found, ordered)
    _give_sound(found, played)
    return found


def _give_streams(found: list[Attempt], events: Sequence[Event], streams: Sequence[StreamLog]) -> None:
    """Each stream belongs to the end of turn that its context led to.

    The context is the last one pushed before the request. Its end of turn is the next one, unless the person
    began to speak in between; a context pushed after the end (a tool's result) belongs to the one before.
    A request that follows another one replaced it, unless that one had called a tool. One that was revoked
    before its turn ended belongs to none.
    """
    contexts = [event.at_ns for event in events if event.kind is Kind.CONTEXT]
    starts = [event.at_ns for event in events if event.kind is Kind.TURN_START]
    for stream in streams:
        if stream.revoked:
            continue
        before = [at for at in contexts if at <= stream.request_ns]
        pushed = before[-1] if before else stream.request_ns
        following = next((attempt for attempt in found if attempt.turn_end_ns >= pushed), None)
        if following is None or any(pushed < at < following.turn_end_ns for at in starts):
            following = next((one for one in reversed(found) if one.turn_end_ns < pushed), None)
        if following is None:
            continue
        if following.streams and not following.streams[-1].tool_calls:
            following.streams.clear()
        following.streams.append(stream)


def _give_transcripts(found: list[Attempt], events: Sequence[Event]) -> None:
    """The last transcript that an attempt's request holds; without a request the last one before its end.

    A request made ahead holds an early transcript: the one that confirmed it came before the turn's end.
    """
    transcripts = [event.at_ns for event in events if event.kind is Kind.TRANSCRIPT]
    after = 0
    for attempt in found:
        first = attempt.streams[0] if attempt.streams else None
        until = attempt.turn_end_ns if first is None else first.request_ns
        if first is not None and first.speculative:
            until = max(until, attempt.turn_end_ns)
        own = [at for at in transcripts if after < at <= until]
        attempt.transcript_ns = own[-1] if own else None
        after = max(attempt.turn_end_ns, until)


def _give_speech(found: list[Attempt], events: Sequence[Event]) -> None:
    """Speech belongs to the latest attempt whose request was made before it."""
    for event in events:
        if event.kind not in (Kind.TTS_REQUEST, Kind.TTS_AUDIO, Kind.TTS_SPOKEN, Kind.TTS_STOPPED):
            continue
        owners = [one for one in found if one.streams and one.streams[0].request_ns <= event.at_ns]
        if not owners:
            continue
        owner = owners[-1]
        if event.kind is Kind.TTS_REQUEST:
            owner.requests.append(event)
        elif event.kind is Kind.TTS_AUDIO:
            owner.audio.append(event)
        elif event.kind is Kind.TTS_SPOKEN:
            owner.spoken += 1
        else:
            owner.speech_ended = True


def _give_sound(found: list[Attempt], played: Played) -> None:
    """The first and the last sound of each attempt: those after its first audio and before the next one's."""
    voiced = [attempt for attempt in found if attempt.audio]
    for index, attempt in enumerate(voiced):
        following = voiced[index + 1].audio[0].at_ns if index + 1 < len(voiced) else None
        attempt.first_audible_ns = played.first_sound(attempt.audio[0].at_ns, following)
        if attempt.first_audible_ns is not None:
            attempt.last_audible_ns = played.last_sound(following)


@dataclass
class Answer:
    """The attempt that answered, and the marks of the turn. `attempt` is None where nothing answered."""

    attempt: Attempt | None
    marks: dict[Mark, int]
    cutoffs: int
    """Ends of turn that were committed before the person had finished."""
    stale_heard: bool
    """Did a reply sound that was made before the person had finished?"""


def answer(found: Sequence[Attempt], speech_end_ns: int | None) -> Answer:
    """The answered attempt: the first to sound of those whose end of turn is not before `speech_end_ns`.

    Where only earlier ones sounded: the one that was sounding at `speech_end_ns` counts as the answer, with a
    negative latency; one that began after it is stale and counts as none. `speech_end_ns` None: no speech.
    """
    end = speech_end_ns
    cutoffs = 0 if end is None else sum(1 for one in found if one.turn_end_ns < end)
    fresh = [one for one in found if end is None or one.turn_end_ns >= end]
    stale = [one for one in found if end is not None and one.turn_end_ns < end]
    chosen = next((one for one in fresh if one.first_audible_ns is not None), None)
    stale_heard = any(one.first_audible_ns is not None for one in stale)
    if chosen is None and not fresh:
        chosen = next((one for one in reversed(stale) if _sounds_at(one, end)), None)
    if chosen is None and fresh:
        chosen = next((one for one in reversed(fresh) if one.streams), fresh[-1])
    marks = {} if chosen is None else marks_of(chosen)
    if end is not None:
        marks[Mark.SPEECH_END] = end
    return Answer(chosen, marks, cutoffs, stale_heard)


def _sounds_at(attempt: Attempt, instant_ns: int | None) -> bool:
    """Had this attempt's reply begun to sound before that instant, and did it go on after it?"""
    first, last = attempt.first_audible_ns, attempt.last_audible_ns
    return instant_ns is not None and first is not None and last is not None and first < instant_ns < last


def marks_of(attempt: Attempt) -> dict[Mark, int]:
    """The marks of an attempt that are there so far, but for `speech_end`, in ns of the monotonic clock."""
    stream = attempt.stream
    found = {
        Mark.VAD_STOP: attempt.vad_stop_ns,
        Mark.TRANSCRIPT_FINAL: attempt.transcript_ns,
        Mark.TURN_END: attempt.turn_end_ns,
        Mark.LLM_REQUEST: attempt.streams[0].request_ns if attempt.streams else None,
        Mark.LLM_FIRST_TOKEN: stream.first_token_ns if stream else None,
        Mark.LLM_FIRST_TEXT: stream.first_text_ns if stream else None,
        Mark.TTS_REQUEST: attempt.requests[0].at_ns if attempt.requests else None,
        Mark.TTS_FIRST_BYTE: attempt.audio[0].at_ns if attempt.audio else None,
        Mark.FIRST_AUDIBLE: attempt.first_audible_ns,
    }
    return {mark: at for mark, at in found.items() if at is not None}
