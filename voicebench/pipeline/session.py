"""A session: one pipeline that lives from turn to turn. A turn speaks a clip and waits for its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.file_source import FRAME_MS, IN_REAL_TIME_S, PATIENCE_MS, RATE, Playback, Tail
from voicebench.audio.played import Played
from voicebench.clock import NS_PER_S, now_ns
from voicebench.errors import RunProblem, VoicebenchError
from voicebench.pipeline import collection, marks
from voicebench.pipeline.asr_watch import AsrWatch
from voicebench.pipeline.build import Parts, StageSpecs, Transports, build
from voicebench.pipeline.contamination import Load, load_between, ticks
from voicebench.pipeline.ending import judge, open_turn
from voicebench.pipeline.lag import PERIOD_NS, LagMeter
from voicebench.pipeline.marks import Attempt
from voicebench.pipeline.observer import BarrierFrame, Event, Kind
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.stages.llm import Tap
from voicebench.stages.llm_keys import redact
from voicebench.stages.shared import Shared, Work, WorkLog
from voicebench.stages.tools import Toolbox, ToolCallLog
from voicebench.turns.stream import StreamLog

POLL_S = 0.02
BLIND_TURNS = ("vad", "speech_timeout")
"""Turn detectors that do not listen themselves; others may look back from the speech by the clock."""
CLEAN_ENDINGS = ("answered", "no_reply", "nobody_spoke", "stale")
"""After any other ending the pipeline is built anew, so that nothing of it reaches the next turn."""
START_TIMEOUT_S = 60.0
BARRIER_TIMEOUT_S = 3.0
CLOSE_TIMEOUT_S = 5.0


@dataclass
class Heard:
    """All that is known of one turn when it is over. Instants are ns of the monotonic clock."""

    playback: Playback
    speech_end_ns: int | None
    events: list[Event]
    streams: list[StreamLog]
    played: Played
    ending: str
    """`answered`, `no_reply`, `silent_reply`, `nobody_spoke`, `stale`, `cancelled`, `error`, `timed_out`."""
    first: bool = False
    """Is it the first turn of its pipeline?"""
    begun_ns: int = 0
    """When the turn was begun: the silence before the clip starts."""
    asr: AsrWatch = field(default_factory=AsrWatch)
    tools: Toolbox = field(default_factory=Toolbox)
    calls: list[ToolCallLog] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    lag_ns: int = 0
    load: Load = field(default_factory=lambda: Load(None, None, None))

    def attempts(self) -> list[Attempt]:
        """The turn's attempts in order."""
        return marks.attempts(self.events, self.streams, self.played)


class Session:
    """Drives one mode's pipeline. `healthy` turns false when a turn could not be ended cleanly."""

    def __init__(
        self,
        mode: Mode,
        specs: StageSpecs,
        config: Config,
        shared: Shared,
        transports: Transports | None = None,
    ) -> None:
        self.mode = mode
        self._transports = transports
        self.healthy = False
        self._turned = False
        self._config = config
        self._work = WorkLog()
        self._tap = Tap()
        self._specs = specs
        self._shared = shared
        self._parts: Parts | None = None
        self._runner: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._barrier = 0
        self._barrier_passed = asyncio.Event()
        self._lag = LagMeter()

    async def open(self) -> None:
        """Build the pipeline and wait until it runs. Models that are not there yet are loaded first.

        Raises VoicebenchError where a stage cannot be built or the pipeline does not start.
        """
        parts = self._parts = await self._build()
        parts.observer.on_event = self._changed.set
        parts.sink.on_sound = self._changed.set
        self._tap.on_change = self._changed.set
        started = asyncio.Event()

        async def on_started(*_: object) -> None:
            started.set()

        async def on_frame(_: object, frame: object) -> None:
            if isinstance(frame, BarrierFrame) and frame.number == self._barrier:
                self._barrier_passed.set()

        from pipecat.workers.runner import WorkerRunner

        parts.worker.add_event_handler("on_pipeline_started", on_started)
        parts.worker.set_reached_downstream_filter((BarrierFrame,))
        parts.worker.add_event_handler("on_frame_reached_downstream", on_frame)
        runner = WorkerRunner(handle_sigint=False, handle_sigterm=False)
        await runner.add_workers(parts.worker)
        self._runner = asyncio.create_task(runner.run(), name=f"session {self.mode.id}")
        try:
            await self._started(started)
        except BaseException:
            await self.close()
            raise
        self.healthy = True
        self._lag.start()

    async def _started(self, started: asyncio.Event) -> None:
        """Wait until the pipeline runs. Raises RunProblem where it ends first, or does not begin in time."""
        assert self._runner is not None
        waiting = asyncio.create_task(started.wait())
        try:
            await asyncio.wait(
                {waiting, self._runner}, timeout=START_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
        if not started.is_set():
            raise RunProblem(f"The pipeline of the mode {self.mode.id} did not start.")

    async def _build(self) -> Parts:
        """The pipeline, built in a thread, since models may have to be loaded."""
        try:
            return await asyncio.to_thread(
                build,
                self.mode,
                self._specs,
                self._config,
                self._shared,
                self._work,
                self._tap,
                self._transports,
            )
        except VoicebenchError:
            raise
        except Exception as error:
            # The stages' libraries raise what they like.
            told = redact(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
            raise RunProblem(f"The pipeline of the mode {self.mode.id} cannot be built: {told}") from error

    async def close(self) -> None:
        """Cancel the pipeline and wait for it, a few seconds at most."""
        self.healthy = False
        await self._lag.stop()
        parts, runner = self._parts, self._runner
        self._parts = self._runner = None
        if parts is None or runner is None:
            return
        ending = {runner}
        if not runner.done():
            ending.add(asyncio.create_task(parts.worker.cancel()))
            await asyncio.wait(ending, timeout=CLOSE_TIMEOUT_S)
            for task in ending:
                task.cancel()
            await asyncio.wait(ending, timeout=BARRIER_TIMEOUT_S)
        for task in ending:
            if task.done() and not task.cancelled():
                task.exception()  # a pipeline that broke was told of when it did

    async def turn(
        self,
        clip: NDArray[np.int16],
        speech_end_s: float | None,
        has_speech: bool | None,
        *,
        at_ns: int | None = None,
    ) -> Heard:
        """Speak 16 kHz mono `clip` and wait until the turn is over, at the latest at its time-out.

        `speech_end_s` is the end of the speech in the clip, None where there is none or nobody knows.
        The turn begins at `at_ns`, at the earliest; None: at once.
        """
        parts = self._parts
        assert parts is not None, "open the session first"
        await self._collect_garbage()
        if at_ns is not None and (wait := at_ns - now_ns()) > 0:
            await asyncio.sleep(wait / NS_PER_S)
        begun_ns = now_ns()
        self._work.take()
        self._tap.take()
        self._lag.take()
        parts.tools.take()
        parts.observer.begin_turn()
        parts.sink.begin_turn()
        parts.context.set_messages([])
        before = ticks()
        collection.suspend()
        try:
            playback = await self._play(parts, clip, speech_end_s)
            heard = Heard(
                playback=playback,
                speech_end_ns=None if speech_end_s is None else playback.instant(speech_end_s),
                events=parts.observer.events,
                streams=self._tap.streams,
                played=parts.sink.played,
                ending="timed_out",
                asr=parts.asr,
                tools=parts.tools,
            )
            heard.ending = await self._wait(heard)
        finally:
            collection.resume()
            await parts.source.quiet()
        heard.begun_ns = begun_ns
        heard.first, self._turned = not self._turned, True
        heard.lag_ns = self._lag.take()
        heard.load = load_between(before, ticks())
        await self._settle(heard)
        heard.events = list(parts.observer.events)
        heard.streams = self._tap.take()
        heard.work, heard.notes = self._work.take()
        heard.calls = parts.tools.take()
        return heard

    async def _play(self, parts: Parts, clip: NDArray[np.int16], speech_end_s: float | None) -> Playback:
        """Begin to speak the clip at the run's pace."""
        if self._config.pace == "real":
            played: Playback = parts.source.play(clip)
            return played
        end_s = clip.size / RATE if speech_end_s is None else speech_end_s
        after_ms = self._config.early.transcribe_after_ms
        tail = Tail(
            max(0.0, end_s - IN_REAL_TIME_S),
            # Whatever is begun early is begun in real time: one window of the detector may lie behind it.
            patience_ms=PATIENCE_MS if after_ms is None else min(PATIENCE_MS, max(FRAME_MS, after_ms - 32)),
            silence_too=self._config.turn.kind in BLIND_TURNS,
        )
        played = await parts.source.play_tail(clip, tail, parts.vad)
        return played

    async def _collect_garbage(self) -> None:
        """Collect now what would else be collected in the turn, where it stops everything for many ms."""
        collection.collect()
        # The meter wakes late from this, and must have noted so before the turn's account begins.
        await asyncio.sleep(3 * PERIOD_NS / NS_PER_S)

    async def _wait(self, heard: Heard) -> str:
        """Wait until the turn is over; says how it ended."""
        after = heard.speech_end_ns if heard.speech_end_ns is not None else heard.playback.end_ns
        deadline = heard.playback.end_ns + round(self._config.turn_timeout_s * NS_PER_S)
        while True:
            self._changed.clear()
            now = now_ns()
            if now >= deadline:
                return "timed_out"
            if self._runner is not None and self._runner.done():
                return "error"
            if now > after:
                ending = judge(heard, now, self._config.hears)
                if ending is not None:
                    return ending
            try:
                async with asyncio.timeout(POLL_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _settle(self, heard: Heard) -> None:
        """Stop what still speaks or thinks, and see that nothing of this turn reaches the next one."""
        parts = self._parts
        assert parts is not None
        broken = any(event.kind is Kind.ERROR for event in heard.events)
        late = heard.asr.may_speak(heard.events)
        if heard.ending not in CLEAN_ENDINGS or broken or late or open_turn(heard.events):
            self.healthy = False
            return
        await parts.source.broadcast_interruption()
        self._barrier += 1
        self._barrier_passed.clear()
        await parts.worker.queue_frame(BarrierFrame(number=self._barrier))
        try:
            async with asyncio.timeout(BARRIER_TIMEOUT_S):
                await self._barrier_passed.wait()
        except TimeoutError:
            self.healthy = False
            return
        await parts.user.reset()
