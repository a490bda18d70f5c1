"""The bench of a run: its sessions, and one record on disk for each turn that is put on them.

A run with `sessions` has so many conversations at the same time. Each has, for every mode, a pipeline of its
own: its own audio source, detector, language model service and loudspeaker. What they share:

- **Models** are loaded once. Whisper decodes one segment at a time, the local language model's server answers
  one request at a time, the others wait; Piper speaks in several threads. These waits, and the cores that all
  share with this program, stand in the latencies, and the report says so (`shared_models`,
  `processors_busy`). A hosted service sees each session on connections of one pool.
- **Warm-up** is run in every session, all at once: each pipeline and connection is warm, under the load that
  is measured.
- **The journal** takes one line at a time, in the order in which turns end, written by a thread, since
  waiting for the disk would hold up the others.
- **Recordings** are each session's own. Writing and judging one takes processor time while others speak;
  where that holds up the loop, the turn that it hits is `client_limited`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from voicebench.audio.manifest import Sample
from voicebench.clock import NS_PER_MS
from voicebench.errors import RunProblem, VoicebenchError
from voicebench.load import LoadPlan, Offered, Served, offer, put_on_disk
from voicebench.pipeline.build import StageSpecs
from voicebench.pipeline.collection import frozen_heap
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.plan.plan import PlannedTurn
from voicebench.stages.llm_keys import redact
from voicebench.stages.shared import Shared
from voicebench.turns.journal import JournalWriter
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import AUDIO_FOLDER, RunFolder
from voicebench.turns.timeline import Anchor

if TYPE_CHECKING:
    from voicebench.audio.prepare import Prepared
    from voicebench.pipeline.record import TurnFacts
    from voicebench.pipeline.session import Heard, Session


COLD = "cold_pipeline"
"""The caveat of a turn whose pipeline was built anew, after a fault, and was not warmed up."""
READY_NS = 80 * NS_PER_MS
"""So long before it is due a turn is handed to its session, which collects garbage first."""


class Reporter(Protocol):
    """Is told how a run goes on, for eyes."""

    def opened(self, folder: RunFolder) -> None:
        """The run's folder is there; from now on it opens at any instant."""

    def phase(self, text: str) -> None:
        """Something that takes a while begins."""

    def begin(self, turns: int) -> None:
        """The measured turns begin."""

    def turn(self, record: TurnRecord) -> None:
        """A measured turn is on disk."""

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is on disk."""


@dataclass(frozen=True)
class RunPlan:
    """All that a run needs, checked: nothing has been loaded yet."""

    config: Config
    modes: tuple[Mode, ...]
    samples: tuple[Sample, ...]
    turns: tuple[PlannedTurn, ...]
    specs: StageSpecs
    model_ids: tuple[str, ...]
    where: str = "configuration"

    @property
    def by_id(self) -> dict[str, Sample]:
        """The samples by id."""
        return {sample.id: sample for sample in self.samples}


def _file_safe(name: str) -> str:
    """A sample's or a mode's name with nothing in it that a file name could not hold."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "x"


def told(error: Exception) -> str:
    """What went wrong and what to do about it, in one line."""
    if isinstance(error, VoicebenchError):
        return redact(f"{error.what} {error.remedy}".strip())
    return redact(f"{type(error).__name__}: {' '.join(str(error).split())}")[:300]


def marked_cold(record: TurnRecord) -> TurnRecord:
    """The record of a turn that was the first of a pipeline built anew."""
    return record.model_copy(update={"caveats": (*record.caveats, COLD)})


async def calibrate_run(folder: RunFolder, turns: int, phase: Callable[[str], None]) -> None:
    """Calibrate with so many scripted turns and write what is found into `run.json`; 0 turns: nothing."""
    if not turns:
        return
    from voicebench.pipeline.calibrate import calibrate

    phase("Calibrating")
    found = await calibrate(turns)
    floor = found.noise_floor_ms
    folder.update(
        noise_floor_ms=floor,
        noise_floor_reason=None if floor is not None else "no calibration turn gave a latency",
        calibration=found.to_dict(),
    )


class Bench:
    """The sessions of a run, opened when first needed and again when one is not healthy."""

    def __init__(
        self,
        plan: RunPlan,
        folder: RunFolder,
        shared: Shared,
        reporter: Reporter,
        keep_audio: bool,
        load: LoadPlan | None = None,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._shared = shared
        self._reporter = reporter
        self._keep_audio = keep_audio
        self._load = load or LoadPlan()
        self._sessions: dict[tuple[str, int], Session] = {}
        self._anew: set[tuple[str, int]] = set()
        self._modes = {mode.id: mode for mode in plan.modes}

    async def warm_up(self, journal: JournalWriter) -> None:
        """Load every mode's models and run its warm-up turns in each session; they are kept apart.

        Raises VoicebenchError where a mode's pipeline cannot be built.
        """
        spoken = await asyncio.to_thread(self._spoken_sample)
        at_once = range(self._load.sessions)

        async def warm(offered: Offered[PlannedTurn]) -> None:
            record = await put_on_disk(journal, await self._turn(offered))
            self._reporter.warmup(record)

        for mode_id in self._plan.config.modes:
            self._reporter.phase(f"Loading {mode_id}")
            for session in at_once:
                await self._session(mode_id, session)
            for number in range(self._plan.config.warmup_turns):
                self._reporter.phase(f"Warming up {mode_id}")
                turn = PlannedTurn(number, mode_id, spoken.id, number)
                await offer([turn] * self._load.sessions, LoadPlan(self._load.sessions), warm)

    def _spoken_sample(self) -> Sample:
        """The first sample that can be read and holds speech; where there is none, the first one."""
        from voicebench.audio.prepare import prepare

        for sample in self._plan.samples:
            try:
                if sample.has_speech is not False and prepare(sample).has_speech is not False:
                    return sample
            except Exception:  # noqa: S112 - its own turn tells what is wrong with it
                continue
        return self._plan.samples[0]

    async def calibrate(self) -> None:
        """Measure what the harness itself adds, and write it into `run.json`."""
        await calibrate_run(self._folder, self._plan.config.calibration_turns, self._reporter.phase)

    async def measure(self, turns: Sequence[PlannedTurn], journal: JournalWriter) -> Served:
        """Run the planned turns, as the load says. Raises RunProblem where one cannot be written."""
        self._reporter.begin(len(turns))

        async def run(offered: Offered[PlannedTurn]) -> None:
            record = await put_on_disk(journal, await self._turn(offered, keep_audio=self._keep_audio))
            self._reporter.turn(record)

        with frozen_heap():
            return await offer(turns, self._load, run)

    async def close(self) -> None:
        """End all sessions, then the connections that they shared."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))
        await self._shared.close_clients()

    async def _session(self, mode_id: str, number: int) -> Session:
        """The mode's healthy pipeline of a session; one that is not is closed and built anew."""
        from voicebench.pipeline.session import Session

        key = mode_id, number
        session = self._sessions.get(key)
        if session is not None and session.healthy:
            return session
        if session is not None:
            del self._sessions[key]
            self._anew.add(key)
            await session.close()
        session = Session(self._modes[mode_id], self._plan.specs, self._plan.config, self._shared)
        await session.open()
        self._sessions[key] = session
        return session

    async def _turn(self, offered: Offered[PlannedTurn], *, keep_audio: bool = False) -> TurnRecord:
        """One turn, whatever happens in it. A wrong file or a stage that breaks is a failed record."""
        from voicebench.audio.prepare import prepare
        from voicebench.pipeline.record import failed_record, record

        planned = offered.turn
        key = planned.mode, offered.session
        sample = self._plan.by_id[planned.sample]
        try:
            clip = await asyncio.to_thread(prepare, sample)
        except Exception as error:
            return failed_record(self._turn_facts(planned, sample, None), told(error))
        facts = self._turn_facts(planned, sample, clip)
        try:
            session = await self._session(*key)
            await offered.until_due(READY_NS)
            heard = await session.turn(clip.pcm, clip.speech_end_s, clip.has_speech, at_ns=offered.due_ns)
            made = record(facts, heard)
            if heard.first and key in self._anew:
                made = marked_cold(made)
        except Exception as error:
            if key in self._sessions:
                self._sessions[key].healthy = False
            return failed_record(facts, told(error))
        if not self._load.plain:
            latency = made.voice_to_voice_ms if made.outcome is Outcome.COMPLETED else None
            made = made.model_copy(update=offered.fields(self._load, heard.begun_ns, latency))
        return await asyncio.to_thread(self._recorded, made, clip, heard) if keep_audio else made

    def _recorded(self, made: TurnRecord, clip: Prepared, heard: Heard) -> TurnRecord:
        """The record with the turn's recording on disk and the waveform's own figure beside ours."""
        from voicebench.audio.prepare import PIPELINE_RATE
        from voicebench.audio.reconcile import second_opinion
        from voicebench.audio.recorder import record, write

        recording = record(clip.pcm, PIPELINE_RATE, heard.playback.start_ns, heard.played)
        name = f"{made.turn:05d}-{_file_safe(made.sample)}-{_file_safe(made.mode)}-r{made.repeat}.flac"
        try:
            write(recording, self._folder.audio_folder() / name)
        except OSError as error:
            raise RunProblem(f"The recording {name} cannot be written: {error}.") from error
        audio = {"audio": f"{AUDIO_FOLDER}/{name}"}
        return made.model_copy(update={**audio, **second_opinion(recording).fields()})

    def _turn_facts(self, planned: PlannedTurn, sample: Sample, clip: Prepared | None) -> TurnFacts:
        from voicebench.pipeline.record import TurnFacts

        return TurnFacts(
            run=self._folder.id,
            index=planned.index,
            repeat=planned.repeat,
            mode=self._modes[planned.mode],
            sample=sample.id,
            anchor=Anchor(sample.anchor) if clip is None else clip.anchor,
            condition=sample.condition,
            has_speech=sample.has_speech if clip is None else clip.has_speech,
            reference=sample.transcript,
            acceptable=sample.answers,
            language=sample.language,
            caveats=() if clip is None else clip.caveats,
            heard=self._plan.config.hears,
        )
