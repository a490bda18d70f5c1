"""A live session: one mode's pipeline between microphone and loudspeaker. A turn waits for speech."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.echo import RATE
from voicebench.audio.file_source import Playback
from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns
from voicebench.live.card import Card
from voicebench.live.edges import Found, speech_end, speech_start
from voicebench.pipeline.build import StageSpecs
from voicebench.pipeline.contamination import load_between, ticks
from voicebench.pipeline.ending import judge
from voicebench.pipeline.observer import BarrierFrame, Event, Kind
from voicebench.pipeline.session import BARRIER_TIMEOUT_S, POLL_S, Heard, Session
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.stages.shared import Shared

LONGEST_SPEECH_S = 60.0
"""A person who speaks for so long without a pause is a noise."""
AFTER_REPLY_S = 0.3
"""So long after its last clause has sounded a reply is over."""
LEAD_S = 0.5
"""So much before the first sound belongs to a turn's recording."""


@dataclass
class HeardLive(Heard):
    """What is known of a live turn. `ending` may also be `barged_in` and `device_lost`."""

    first_sample: int = 0
    """The microphone's samples from here (at 16 kHz) belong to the turn;"""
    last_sample: int = 0
    """up to here."""
    edge: Found | None = None
    """The end of the person's speech; None before the detector's stop."""
    stop_ns: int | None = None
    """The detector's stop that the end was found from."""
    barge_in: Found | None = None
    """Where the person began to speak over the reply."""
    lost: str = ""
    """Which device went."""
    gated: int = 0
    """Frames of 20 ms that were the agent's own voice."""
    troubles: int = 0
    """Over- and underflows of the devices."""


@dataclass(frozen=True)
class Segment:
    """One stretch of speech as the detector told it; `stop_ns` is None while it lasts."""

    start_ns: int
    stop_ns: int | None


def segments(events: Sequence[Event]) -> list[Segment]:
    """The detector's stretches of speech, in order."""
    found: list[Segment] = []
    for event in events:
        if event.kind is Kind.VAD_START:
            found.append(Segment(event.at_ns, None))
        elif event.kind is Kind.VAD_STOP and found and found[-1].stop_ns is None:
            found[-1] = Segment(found[-1].start_ns, event.at_ns)
    return found


def answered_segment(found: Sequence[Segment], events: Sequence[Event], by_segment: bool) -> Segment | None:
    """The stretch of speech whose end is the turn's: the last one with words in it.

    That is the last one before the last transcript (for a streaming ASR: begun before it); without any
    transcript the last one. A cough has no words and moves nothing. None: no stretch has ended.
    """
    ended = [one for one in found if one.stop_ns is not None]
    said = [event.at_ns for event in events if event.kind is Kind.TRANSCRIPT and event.text.strip()]
    if not said:
        return ended[-1] if ended else None
    with_words = [
        one for one in ended if (one.stop_ns if by_segment and one.stop_ns else one.start_ns) <= said[-1]
    ]
    return with_words[-1] if with_words else (ended[0] if ended else None)


class LiveSession(Session):
    """Drives one mode's pipeline on real devices."""

    def __init__(self, mode: Mode, specs: StageSpecs, config: Config, shared: Shared, card: Card) -> None:
        super().__init__(mode, specs, config, shared, card.transports)
        self._card = card
        self._edges: dict[int, Found] = {}
        self._goes_on_ns: int | None = None
        self._goes_on_sample = 0
        self.on_progress: Callable[[HeardLive], None] = lambda heard: None
        """Called whenever something may have changed in a turn."""

    async def listen(
        self,
        leave: Callable[[], bool] = lambda: False,
        speak: NDArray[np.int16] | None = None,
    ) -> HeardLive | None:
        """One turn: wait until someone speaks, then until the reply has sounded or someone speaks over it.

        `leave` is asked while nobody speaks; where it says so the turn is none: None. With `speak`, these
        16 kHz samples are spoken in the person's place.
        """
        parts = self._parts
        assert parts is not None, "open the session first"
        heard = self._begin()
        before = ticks()
        parts.source.listen()
        if speak is not None:
            self._card.capture.speak(speak)
        try:
            ending = await self._turn(heard, leave)
        finally:
            self._card.capture.speak_no_more()
        if ending is None:
            return None
        heard.ending = ending
        heard.first, self._turned = not self._turned, True
        heard.lag_ns = self._lag.take()
        heard.load = load_between(before, ticks())
        heard.last_sample = self._card.capture.count
        heard.gated = self._card.capture.gate.gated - heard.gated
        heard.troubles = sum(self._card.troubles) - heard.troubles
        await self._end(heard)
        heard.streams = self._tap.take()
        heard.work, heard.notes = self._work.take()
        return heard

    async def deafen(self) -> None:
        """Hear nothing until the next turn, which then begins anew."""
        self._goes_on_ns = None
        if self._parts is not None:
            await self._parts.source.quiet()

    def _begin(self) -> HeardLive:
        """Forget the turn before, but for the words with which it was interrupted."""
        parts = self._parts
        assert parts is not None
        self._work.take()
        self._tap.take()
        self._lag.take()
        self._edges.clear()
        capture = self._card.capture
        since = self._goes_on_ns
        first = max(0, capture.count - round(LEAD_S * RATE)) if since is None else self._goes_on_sample
        self._goes_on_ns = None
        if since is None:
            parts.observer.begin_turn()
        else:
            parts.observer.events = [event for event in parts.observer.events if event.at_ns >= since]
        parts.sink.begin_turn()
        parts.context.set_messages([])
        return HeardLive(
            playback=Playback(capture.instant(first), 0),
            speech_end_ns=None,
            events=parts.observer.events,
            streams=self._tap.streams,
            played=parts.sink.played,
            ending="timed_out",
            asr=parts.asr,
            first_sample=first,
            gated=capture.gate.gated,
            troubles=sum(self._card.troubles),
        )

    async def _turn(self, heard: HeardLive, leave: Callable[[], bool]) -> str | None:
        while True:
            self._changed.clear()
            lost = self._card.lost
            self.on_progress(heard)
            if lost is not None and self._card.returns and not segments(heard.events):
                # Nobody was in the middle of anything.
                return None
            if lost is not None:
                heard.lost = lost
                self.healthy = False
                return "device_lost"
            if self._runner is not None and self._runner.done():
                return "error"
            spoken = segments(heard.events)
            if not spoken:
                if leave():
                    return None
                heard.first_sample = max(
                    heard.first_sample, self._card.capture.count - round(2 * LEAD_S * RATE)
                )
            else:
                ending = self._judged(heard, spoken, now_ns())
                if ending is not None:
                    return ending
            try:
                async with asyncio.timeout(POLL_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _judged(self, heard: HeardLive, spoken: list[Segment], now: int) -> str | None:
        """Is the turn over, and how did it end?"""
        over = self._spoken_over(heard, spoken)
        if over is not None:
            return over
        last = spoken[-1]
        if last.stop_ns is None:
            return "timed_out" if now - last.start_ns > LONGEST_SPEECH_S * NS_PER_S else None
        segment = answered_segment(spoken, heard.events, heard.asr.by_segment)
        assert segment is not None
        assert segment.stop_ns is not None
        self._date(heard, segment.stop_ns)
        if now - last.stop_ns > self._config.turn_timeout_s * NS_PER_S:
            return "timed_out"
        if _reply_over(heard, now):
            return "answered"
        return judge(heard, now, self._config.hear)

    def _date(self, heard: HeardLive, stop_ns: int) -> None:
        """Say where the speech ended that led to the detector's stop."""
        found = self._edges.get(stop_ns)
        if found is None:
            found = speech_end(self._card.capture, stop_ns, self._config.vad.stop_secs)
            self._edges[stop_ns] = found
        heard.edge, heard.stop_ns, heard.speech_end_ns = found, stop_ns, found.at_ns
        begin = heard.playback.start_ns = self._card.capture.instant(heard.first_sample)
        heard.playback.samples = max(0, (found.at_ns - begin) * RATE // NS_PER_S)

    def _spoken_over(self, heard: HeardLive, spoken: list[Segment]) -> str | None:
        """Did the person begin to speak after the reply had begun to sound?

        `barged_in` where the reply was sounding or still to come, `answered` where it was over; None: no.
        """
        end = heard.speech_end_ns
        if end is None:
            return None
        attempts = [one for one in heard.attempts() if one.turn_end_ns >= end]
        first = next((one for one in attempts if one.first_audible_ns is not None), None)
        if first is None or first.first_audible_ns is None:
            return None
        onset = first.first_audible_ns
        later = next((one for one in spoken if one.start_ns > onset), None)
        if later is None or not _interrupted_after(heard.events, later.start_ns):
            return None
        began = speech_start(self._card.capture, later.start_ns, self._config.vad.start_secs)
        if began.at_ns <= onset:
            return None
        self._goes_on_ns = later.start_ns - NS_PER_MS
        self._goes_on_sample = self._card.capture.sample_at(began.at_ns - round(LEAD_S * NS_PER_S))
        last = heard.played.last_sound()
        if last is not None and last < began.at_ns and not first.owed:
            return "answered"
        heard.barge_in = began
        return "barged_in"

    async def _end(self, heard: HeardLive) -> None:
        """See that nothing of this turn reaches the next one, without breaking off what the person says."""
        parts = self._parts
        assert parts is not None
        goes_on = self._goes_on_ns
        if goes_on is not None:
            await self._barrier_through()
            heard.events = [event for event in parts.observer.events if event.at_ns < goes_on]
            return
        heard.events = list(parts.observer.events)
        if heard.ending == "answered":
            # The person may begin again while this turn is being written.
            self._goes_on_ns = now_ns()
            self._goes_on_sample = max(0, heard.last_sample - round(LEAD_S * RATE))
            await self._barrier_through()
        else:
            await self._settle(heard)

    async def _barrier_through(self) -> None:
        """Wait until what is in the pipeline has come out of it."""
        parts = self._parts
        assert parts is not None
        self._barrier += 1
        self._barrier_passed.clear()
        await parts.worker.queue_frame(BarrierFrame(number=self._barrier))
        try:
            async with asyncio.timeout(BARRIER_TIMEOUT_S):
                await self._barrier_passed.wait()
        except TimeoutError:
            self.healthy = False


def _interrupted_after(events: Sequence[Event], at_ns: int) -> bool:
    return any(event.kind is Kind.INTERRUPTION and event.at_ns >= at_ns for event in events)


def _reply_over(heard: HeardLive, now: int) -> bool:
    """Has all of the reply sounded?

    A voice may say only seconds later that it has ended; here it has where the model's stream is over, every
    clause has all its audio, and that has been played for a moment.
    """
    end = heard.speech_end_ns
    for attempt in heard.attempts():
        stream = attempt.stream
        if end is None or attempt.turn_end_ns < end or stream is None or attempt.first_audible_ns is None:
            continue
        if stream.running or attempt.owed or not attempt.requests or stream.status != "ok":
            return False
        return now > heard.played.cursor_ns + round(AFTER_REPLY_S * NS_PER_S)
    return False
