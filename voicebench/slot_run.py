"""Run the LLM slot alone: the same prompts to every mode, no audio, no pipeline, one record for each request.

Requests follow one another, the modes in turn, so that a drift of this machine or of the network hits all
alike and no request shares the line with another. Each mode has a connection of its own that stays open. A
request that had to open one is *cold*: its record goes to warmup.jsonl, and the request is made again.

With several sessions so many requests are made at the same time, each session over connections of its own.
With a schedule every connection is opened by one cold request before the schedule begins, and none is made
again: that would hold up those that are due. A local model's server answers one request at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from voicebench import emulated, environment
from voicebench.clock import ms
from voicebench.load import LoadPlan, Offered, Served, make_room, offer, put_on_disk
from voicebench.models.store import Progress, ensure
from voicebench.pipeline import collection
from voicebench.pipeline.collection import frozen_heap
from voicebench.pipeline.contamination import load_between, ticks
from voicebench.pipeline.lag import LagMeter
from voicebench.plan.modes import Mode
from voicebench.plan.plan import PlannedTurn
from voicebench.plan.prompts import slot_prompts
from voicebench.slot_plan import SlotPlan, settings_of
from voicebench.slot_record import Conditions, slot_record
from voicebench.slot_streams import save_stream
from voicebench.stages.llm import Asker, Tap
from voicebench.stages.retries import Retry
from voicebench.stages.shared import Shared
from voicebench.turns.durable import FOLDER_MODE, cannot_write
from voicebench.turns.journal import JournalWriter
from voicebench.turns.mode_facts import mode_facts
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import PlannedEntry, RunFolder
from voicebench.turns.stream import StreamLog
from voicebench.turns.timeline import Anchor

COLD_TRIES = 2
"""So often a request is made again because its connection was new; a server that closes each connection after
its answer keeps it so, and the record then says it."""


class SlotReporter(Protocol):
    """Is told how a run goes on, for eyes."""

    def opened(self, folder: RunFolder) -> None:
        """The run's folder is there; from now on it opens at any instant."""

    def phase(self, text: str) -> None:
        """Something that takes a while begins."""

    def begin(self, turns: int) -> None:
        """The measured requests begin."""

    def turn(self, record: TurnRecord) -> None:
        """A measured request is on disk."""

    def cold(self, record: TurnRecord) -> None:
        """A request on a new connection is on disk, kept apart."""


@dataclass(frozen=True)
class SlotOptions:
    """How to run, beside what to run."""

    out: Path | None = None
    offline: bool = False
    no_text: bool = False
    load: LoadPlan = field(default_factory=LoadPlan)
    """How many requests at once, and on which schedule."""
    request_timeout_s: float = 120.0
    """A request whose reply has not ended after so long is given up: `timed_out`."""
    record_streams: Path | None = None
    """A folder for the recorded streams of completed requests, for the emulator to replay."""
    emulator_log: Path | None = None
    """A file for what the emulator wrote when."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)


async def run_slot(
    plan: SlotPlan, options: SlotOptions, reporter: SlotReporter, progress: Progress | None = None
) -> RunFolder:
    """Make all requests. Each is on disk when it is over; the run's folder opens at any instant.

    Raises VoicebenchError where the run cannot begin. A request that fails is a record, and the run goes on.
    """
    make_room()
    ensure(plan.model_ids, progress, options.offline)
    streams = None if options.record_streams is None else _folder(options.record_streams)
    folder = RunFolder.create(options.out)
    folder.start([_entry(turn) for turn in plan.turns], **_facts(plan, options))
    reporter.opened(folder)
    shared = Shared(log_folder=folder.path, offline=options.offline, environment=dict(options.environment))
    done = False
    try:
        with (
            folder.journal(no_text=options.no_text) as journal,
            folder.warmup_journal(no_text=options.no_text) as colds,
        ):
            reporter.phase("Starting")
            modes = await asyncio.to_thread(_start, plan, options, shared)
            bench = _SlotBench(plan, options, folder, shared, reporter, streams)
            try:
                reporter.phase("Warming up")
                for mode in modes:
                    await bench.open(mode)
                served = await bench.measure(journal, colds)
                if not options.load.plain:
                    folder.update(load=options.load.told(served))
                done = True
            finally:
                await bench.close()
    finally:
        shared.close()
        folder.finish(complete=done)
    return folder


def _start(plan: SlotPlan, options: SlotOptions, shared: Shared) -> tuple[Mode, ...]:
    """The modes, the emulated ones at a running emulator, which `shared` ends."""
    started = emulated.start(plan.modes, plan.config.seed, options.emulator_log)
    if started is None:
        return plan.modes
    shared.on_close(started.stop)
    return started.modes


def _folder(path: Path) -> Path:
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def _entry(turn: PlannedTurn) -> PlannedEntry:
    return PlannedEntry(mode=turn.mode, sample=turn.sample, repeat=turn.repeat, anchor=Anchor.NONE)


def _facts(plan: SlotPlan, options: SlotOptions) -> dict[str, Any]:
    """What `run.json` says of a run beside its requests."""
    kept = ("name", "budget_ms", "slots_ms", "modes", "own_modes", "seed", "conversation")
    config = plan.config.model_dump(mode="json", include=set(kept))
    return {
        "command": "slot",
        "config": {
            **config,
            "requests": plan.requests,
            "request_timeout_s": options.request_timeout_s,
        },
        "environment": environment.machine(),
        "versions": environment.versions(),
        "modes": {mode.id: mode_facts(mode) for mode in plan.modes},
        "budget_ms": plan.config.budget_ms,
        "slots_ms": plan.config.slots_ms,
        "load": options.load.told(),
        "noise_floor_reason": "a slot run has no audio path to calibrate",
    }


class _SlotBench:
    """One open connection for each mode and session, and the requests over them."""

    def __init__(
        self,
        plan: SlotPlan,
        options: SlotOptions,
        folder: RunFolder,
        shared: Shared,
        reporter: SlotReporter,
        streams: Path | None,
    ) -> None:
        self._plan = plan
        self._options = options
        self._folder = folder
        self._shared = shared
        self._reporter = reporter
        self._streams = streams
        self._modes = {mode.id: mode for mode in plan.modes}
        self._prompts = {prompt.id: prompt.text for prompt in slot_prompts()}
        self._load = options.load
        self._askers: dict[tuple[str, int], Asker] = {}
        self._taps: dict[tuple[str, int], Tap] = {}
        self._lags = [LagMeter() for _ in range(options.load.sessions)]

    async def open(self, mode: Mode) -> None:
        """Make what asks this mode, its SDK warmed up by a canned stream. Opens no connection yet."""
        plugin = self._plan.plugins[mode.id]
        conversation = self._plan.config.conversation
        assert plugin.ask is not None
        for key in ((mode.id, session) for session in range(self._load.sessions)):
            tap = self._taps[key] = Tap()
            tap.retry = Retry(mode.attempts, self._plan.config.longest_retry_wait_s)
            self._askers[key] = await asyncio.to_thread(
                plugin.ask, mode, settings_of(plugin, mode), conversation, self._shared, tap
            )

    async def measure(self, journal: JournalWriter, colds: JournalWriter) -> Served:
        """Make the planned requests, as the load says. Raises RunProblem where one cannot be written."""
        for lag in self._lags:
            lag.start()
        if self._load.rate_per_s is not None:
            return await self._on_schedule(journal, colds)
        self._reporter.begin(len(self._plan.turns))

        async def run(offered: Offered[PlannedTurn]) -> None:
            for left in reversed(range(COLD_TRIES + 1)):
                stream, conditions = await self._ask(offered)
                record = self._record(offered, stream, conditions)
                if not (stream.new_connection and left and record.outcome is Outcome.COMPLETED):
                    break
                self._reporter.cold(await put_on_disk(colds, record))
            await self._keep(record, stream, journal)

        with frozen_heap():
            return await offer(self._plan.turns, self._load, run)

    async def _on_schedule(self, journal: JournalWriter, colds: JournalWriter) -> Served:
        """As `measure`. A session is free when its reply has ended: what is done with the reply, and a slow
        disk, are no part of the time that it is held."""
        await self._open_connections(colds)
        self._reporter.begin(len(self._plan.turns))
        keeping: set[asyncio.Task[None]] = set()

        async def keep(offered: Offered[PlannedTurn], stream: StreamLog, conditions: Conditions) -> None:
            await self._keep(self._record(offered, stream, conditions), stream, journal)

        def kept(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is None:
                keeping.discard(task)

        async def run(offered: Offered[PlannedTurn]) -> None:
            if not offered.late:
                collection.collect()
            await offered.until_due()
            for task in [task for task in keeping if task.done()]:
                task.result()  # one that could not be written ends the run
            task = asyncio.create_task(keep(offered, *await self._ask(offered, collect=False)))
            keeping.add(task)
            task.add_done_callback(kept)

        try:
            with frozen_heap():
                served = await offer(self._plan.turns, self._load, run)
        finally:
            if keeping:
                await asyncio.wait(keeping)
        for task in list(keeping):
            task.result()
        return served

    async def _keep(self, record: TurnRecord, stream: StreamLog, journal: JournalWriter) -> None:
        """Write a request down and tell it."""
        record = await put_on_disk(journal, record)
        self._reporter.turn(record)
        if self._streams is not None and record.outcome is Outcome.COMPLETED:
            save_stream(self._streams, record, stream, text=not self._options.no_text)

    async def _open_connections(self, colds: JournalWriter) -> None:
        """Ask each mode once in each session: a schedule has no time for the opening of a connection."""
        first = {planned.mode: planned for planned in reversed(self._plan.turns)}

        async def run(offered: Offered[PlannedTurn]) -> None:
            for planned in first.values():
                cold = Offered(planned, offered.session, None)
                record = self._record(cold, *await self._ask(cold))
                self._reporter.cold(await put_on_disk(colds, record))

        await offer([*first.values()][:1] * self._load.sessions, LoadPlan(self._load.sessions), run)

    async def close(self) -> None:
        """Close all connections."""
        for lag in self._lags:
            await lag.stop()
        askers, self._askers = list(self._askers.values()), {}
        for asker in askers:
            await asker.close()

    async def _ask(
        self, offered: Offered[PlannedTurn], *, collect: bool = True
    ) -> tuple[StreamLog, Conditions]:
        """Make one request; no collection of garbage interrupts it."""
        planned = offered.turn
        key = planned.mode, offered.session
        asker, tap, meter = self._askers[key], self._taps[key], self._lags[offered.session]
        limit = self._options.request_timeout_s
        given_up: float | None = None
        before = ticks()
        meter.take()
        with collection.suspended(collect_first=collect):
            try:
                async with asyncio.timeout(limit):
                    await asker.ask(self._prompts[planned.sample])
            except TimeoutError:
                given_up = limit
        lag = meter.take()
        stream = tap.take()[-1]
        return stream, Conditions(lag, load_between(before, ticks()), given_up)

    def _record(self, offered: Offered[PlannedTurn], stream: StreamLog, conditions: Conditions) -> TurnRecord:
        """The record of a request that was made."""
        planned = offered.turn
        record = slot_record(self._folder.id, planned, self._modes[planned.mode], stream, conditions)
        if self._load.plain:
            return record
        ended = stream.end_ns if record.outcome is Outcome.COMPLETED else None
        service_ms = None if ended is None else ms(ended - stream.request_ns)
        return record.model_copy(update=offered.fields(self._load, stream.request_ns, service_ms))
