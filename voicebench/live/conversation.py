"""A conversation: devices checked, models warm, then one record on disk for each turn that is spoken."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voicebench.bench import calibrate_run, marked_cold, told
from voicebench.errors import VoicebenchError
from voicebench.live.beginning import REPEATED, SAMPLE, question, recording_name
from voicebench.live.card import Card
from voicebench.live.keys import Keys, Wishes
from voicebench.live.screen import LiveScreen
from voicebench.load import make_room
from voicebench.models.store import Progress, ensure
from voicebench.pipeline.build import begin_loading
from voicebench.plan.modes import with_members
from voicebench.runner import RunPlan, run_facts, with_emulator
from voicebench.stages.llm_keys import without_keys
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.journal import JournalWriter
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import AUDIO_FOLDER, PlannedEntry, RunFolder
from voicebench.turns.timeline import Anchor

if TYPE_CHECKING:
    from voicebench.live.session import HeardLive, LiveSession
    from voicebench.pipeline.record import TurnFacts


@dataclass(frozen=True)
class LiveOptions:
    """How to run a conversation, beside its plan and devices."""

    turns: int | None = None
    """So many turns with each mode; None: until the person quits."""
    out: Path | None = None
    keep_audio: bool = False
    no_text: bool = False
    offline: bool = False
    echo: bool = True
    """Is the agent's own voice to be recognised in the microphone?"""
    wishes: Wishes = field(default_factory=Wishes)
    """What is asked for while it goes on, by key or otherwise."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    @property
    def anchor(self) -> Anchor:
        """Where the end of speech is taken from."""
        return Anchor.WAVEFORM if self.keep_audio else Anchor.VAD_BACKDATED


async def converse(
    plan: RunPlan,
    card: Card,
    options: LiveOptions,
    screen: LiveScreen,
    progress: Progress | None = None,
) -> None:
    """Hold the conversation. Each turn is on disk when it is over; the devices are closed whatever happens.

    Where the card is `stuck` afterwards, the process can only be left by force. Raises VoicebenchError where
    the conversation cannot begin.
    """
    hush_pipecat()
    make_room()
    screen.steps(3 + 2 * len(plan.modes))
    try:
        screen.phase("Opening the devices")
        level = await card.open()
        names = (card.capture.stream.device.name, card.playout.stream.device.name)
        screen.devices(*names, level)
        await asyncio.to_thread(ensure, plan.model_ids, progress, options.offline)
        await _in_folder(plan, card, options, screen)
    finally:
        await card.close()


async def _in_folder(plan: RunPlan, card: Card, options: LiveOptions, screen: LiveScreen) -> None:
    folder = RunFolder.create(options.out)
    folder.start([], **run_facts(plan, "live"), devices=card.facts)
    screen.opened(folder)
    shared = Shared(log_folder=folder.path, offline=options.offline, environment=dict(options.environment))
    done = False
    try:
        begin_loading(plan.specs, with_members(plan.modes), plan.config.conversation, shared)
        plan = await asyncio.to_thread(with_emulator, plan, shared)
        with (
            folder.journal(no_text=options.no_text) as journal,
            folder.warmup_journal(no_text=options.no_text) as warmups,
        ):
            talk = _Talk(plan, folder, shared, card, options, screen, journal)
            try:
                await talk.warm_up(warmups)
                await talk.calibrate()
                done = await talk.go_on()
            finally:
                await talk.close()
    finally:
        shared.close()
        folder.finish(complete=done, devices=card.facts)


class _Talk:
    """The sessions of a conversation, one per mode, and what has been said so far."""

    def __init__(
        self,
        plan: RunPlan,
        folder: RunFolder,
        shared: Shared,
        card: Card,
        options: LiveOptions,
        screen: LiveScreen,
        journal: JournalWriter,
    ) -> None:
        self._plan, self._folder, self._shared = plan, folder, shared
        self._card, self._options, self._screen, self._journal = card, options, screen, journal
        self._modes = {mode.id: mode for mode in plan.modes}
        self._sessions: dict[str, LiveSession] = {}
        self._wishes = options.wishes
        self._entries: list[PlannedEntry] = []
        self._counts: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._anew: set[str] = set()
        self._last: NDArray[np.int16] | None = None

    async def warm_up(self, journal: JournalWriter) -> None:
        """Load every mode's models and speak a recorded question to it, with the loudspeaker silent."""
        clip = await asyncio.to_thread(question)
        for mode_id in self._modes:
            self._screen.phase(f"Loading {mode_id}")
            await self._session(mode_id)
            if clip is None:
                continue
            self._card.playout.silent = True
            try:
                for number in range(self._plan.config.warmup_turns):
                    self._screen.phase(f"Warming up {mode_id}")
                    session = await self._session(mode_id)
                    heard = await session.listen(speak=clip)
                    if heard is None:
                        break
                    record = without_keys(self._record(self._facts(mode_id, number, number, SAMPLE), heard))
                    journal.append(record)
                    self._screen.warmup(record)
            finally:
                self._card.playout.silent = False
            await self._drop_unhealthy(mode_id)
        if clip is None and self._plan.config.warmup_turns:
            self._screen.say("No recorded question is here to warm up with: the first turn may be slower.")

    async def calibrate(self) -> None:
        """Measure what the harness itself adds, and write it into `run.json`."""
        await calibrate_run(self._folder, self._plan.config.calibration_turns, self._screen.phase)

    async def go_on(self) -> bool:
        """Turn after turn until the person quits or all turns were had; True where it ended as was asked."""
        order = list(self._modes)
        place = 0
        with Keys(self._wishes, self._pressed) as keys:
            self._planned(order[place])
            self._screen.speak(order[place], keys.active)
            while True:
                mode_id = order[place]
                wishes = self._wishes
                if not await self._card.there():
                    return False
                if wishes.quit:
                    return True
                if wishes.next_mode or wishes.mode is not None:
                    chosen = order.index(wishes.mode) if wishes.mode in order else place + 1
                    wishes.next_mode, wishes.mode = False, None
                    await self._silence(mode_id)
                    place = chosen % len(order)
                    self._screen.speak(order[place], keys.active)
                    continue
                speak = None
                if wishes.repeat:
                    wishes.repeat = False
                    speak = self._last
                record = await self._turn(mode_id, speak)
                if record is None:
                    continue
                if (
                    record.outcome is Outcome.FAILED
                    and not self._card.returns
                    and self._card.lost is not None
                ):
                    return False
                if self._options.turns is not None and self._turns[mode_id] >= self._options.turns:
                    place += 1
                    if place >= len(order):
                        return True
                    await self._silence(mode_id)
                    self._screen.speak(order[place], keys.active)

    async def _turn(self, mode_id: str, speak: NDArray[np.int16] | None) -> TurnRecord | None:
        """One turn; None where nobody spoke before something else was asked for."""
        from voicebench.pipeline.record import failed_record

        sample = SAMPLE if speak is None else REPEATED
        repeat = self._counts[mode_id]
        facts = self._facts(mode_id, len(self._entries), repeat, sample)
        heard: HeardLive | None = None
        try:
            session = await self._session(mode_id)
            heard = await session.listen(lambda: self._wishes.any, speak)
            if heard is None:
                return None
            record = self._record(facts, heard)
            if heard.first and mode_id in self._anew:
                record = marked_cold(record)
        except VoicebenchError as problem:
            record = failed_record(facts, told(problem))
        record = without_keys(record)
        if heard is not None and self._options.keep_audio and heard.ending != "device_lost":
            record = await asyncio.to_thread(self._recorded, record, heard)
        if heard is not None and heard.edge is not None and record.outcome is not Outcome.NO_SPEECH:
            end = self._card.capture.sample_at(heard.edge.at_ns) + 3_200
            self._last = self._card.capture.between(heard.first_sample, end, clean=True)[1]
        self._journal.append(record)
        self._counts[mode_id] += 1
        if record.outcome is not Outcome.NO_SPEECH:
            self._turns[mode_id] += 1
        self._entries.append(
            PlannedEntry(mode=mode_id, sample=record.sample, repeat=repeat, anchor=record.anchor)
        )
        self._planned(mode_id)
        self._screen.turn(record, heard)
        return record

    def _record(self, facts: TurnFacts, heard: HeardLive) -> TurnRecord:
        from voicebench.live.record import live_record

        return live_record(facts, heard, self._card)

    def _recorded(self, made: TurnRecord, heard: HeardLive) -> TurnRecord:
        from voicebench.live.record import keep_recording

        name = recording_name(made.turn, made.sample, made.mode)
        path = self._folder.audio_folder() / name
        return keep_recording(made, heard, self._card, path, f"{AUDIO_FOLDER}/{name}")

    def _planned(self, current: str) -> None:
        """Write into `run.json` which turns were had, and which are still to come."""
        entries = list(self._entries)
        if self._options.turns is not None:
            order = list(self._modes)
            for mode_id in order[order.index(current) :]:
                for number in range(self._options.turns - self._turns[mode_id]):
                    repeat = self._counts[mode_id] + number
                    anchor = self._options.anchor
                    entries.append(PlannedEntry(mode=mode_id, sample=SAMPLE, repeat=repeat, anchor=anchor))
        self._folder.update(planned=tuple(entries), devices=self._card.facts)

    def _facts(self, mode_id: str, index: int, repeat: int, sample: str) -> TurnFacts:
        from voicebench.pipeline.record import TurnFacts

        return TurnFacts(
            run=self._folder.id,
            index=index,
            repeat=repeat,
            mode=self._modes[mode_id],
            sample=sample,
            anchor=self._options.anchor,
            heard=self._plan.config.hear,
        )

    def _pressed(self, key: str) -> None:
        if key == "m":
            self._card.capture.muted = not self._card.capture.muted
            self._screen.say("muted" if self._card.capture.muted else "not muted")

    async def _session(self, mode_id: str) -> LiveSession:
        """The mode's healthy session; one that is not is closed and built anew."""
        from voicebench.live.session import LiveSession

        await self._drop_unhealthy(mode_id)
        session = self._sessions.get(mode_id)
        if session is None:
            mode = self._modes[mode_id]
            session = LiveSession(mode, self._plan.specs, self._plan.config, self._shared, self._card)
            session.on_progress = self._screen.progress
            await session.open()
            self._sessions[mode_id] = session
        return session

    async def _drop_unhealthy(self, mode_id: str) -> None:
        session = self._sessions.get(mode_id)
        if session is not None and not session.healthy:
            del self._sessions[mode_id]
            self._anew.add(mode_id)
            await session.close()

    async def _silence(self, mode_id: str) -> None:
        """This mode hears nothing any more until its next turn."""
        session = self._sessions.get(mode_id)
        if session is not None:
            await session.deafen()

    async def close(self) -> None:
        """End all sessions at once."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        await self._shared.close_clients()
