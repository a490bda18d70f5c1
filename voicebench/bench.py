"""The bench of a run: one session per mode, and one record on disk for each turn that is put on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from voicebench.audio.manifest import Sample
from voicebench.errors import RunProblem, VoicebenchError
from voicebench.pipeline.build import StageSpecs
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.plan.plan import PlannedTurn
from voicebench.stages.shared import Shared
from voicebench.turns.journal import JournalWriter
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import AUDIO_FOLDER, RunFolder
from voicebench.turns.timeline import Anchor

if TYPE_CHECKING:
    from voicebench.audio.prepare import Prepared
    from voicebench.pipeline.record import TurnFacts
    from voicebench.pipeline.session import Heard, Session


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


def _told(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, VoicebenchError):
        return error.what
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


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
    """The sessions of a run, one per mode, opened when first needed and again when one is not healthy."""

    def __init__(
        self, plan: RunPlan, folder: RunFolder, shared: Shared, reporter: Reporter, keep_audio: bool
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._shared = shared
        self._reporter = reporter
        self._keep_audio = keep_audio
        self._sessions: dict[str, Session] = {}
        self._modes = {mode.id: mode for mode in plan.modes}

    async def warm_up(self, journal: JournalWriter) -> None:
        """Load every mode's models and run its warm-up turns, which are kept apart.

        Raises VoicebenchError where a mode's pipeline cannot be built.
        """
        spoken = await asyncio.to_thread(self._spoken_sample)
        for mode_id in self._plan.config.modes:
            self._reporter.phase(f"Loading {mode_id}")
            await self._session(mode_id)
            for number in range(self._plan.config.warmup_turns):
                self._reporter.phase(f"Warming up {mode_id}")
                record = await self._turn(PlannedTurn(number, mode_id, spoken.id, number))
                journal.append(record)
                self._reporter.warmup(record)

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

    async def measure(self, turns: Sequence[PlannedTurn], journal: JournalWriter) -> None:
        """Run the planned turns one after the other."""
        self._reporter.begin(len(turns))
        for planned in turns:
            record = await self._turn(planned, keep_audio=self._keep_audio)
            journal.append(record)
            self._reporter.turn(record)

    async def close(self) -> None:
        """End all sessions."""
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    async def _session(self, mode_id: str) -> Session:
        """The mode's healthy session; one that is not is closed and built anew."""
        from voicebench.pipeline.session import Session

        session = self._sessions.get(mode_id)
        if session is not None and session.healthy:
            return session
        if session is not None:
            del self._sessions[mode_id]
            await session.close()
        session = Session(self._modes[mode_id], self._plan.specs, self._plan.config, self._shared)
        await session.open()
        self._sessions[mode_id] = session
        return session

    async def _turn(self, planned: PlannedTurn, *, keep_audio: bool = False) -> TurnRecord:
        """One turn, whatever happens in it. A wrong file or a stage that breaks is a failed record."""
        from voicebench.audio.prepare import prepare
        from voicebench.pipeline.record import failed_record, record

        sample = self._plan.by_id[planned.sample]
        try:
            clip = await asyncio.to_thread(prepare, sample)
        except Exception as error:
            return failed_record(self._turn_facts(planned, sample, None), _told(error))
        facts = self._turn_facts(planned, sample, clip)
        try:
            session = await self._session(planned.mode)
            heard = await session.turn(clip.pcm, clip.speech_end_s, clip.has_speech)
            made = record(facts, heard)
        except Exception as error:
            if planned.mode in self._sessions:
                self._sessions[planned.mode].healthy = False
            return failed_record(facts, _told(error))
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
        opinion = second_opinion(recording)
        return made.model_copy(
            update={
                "audio": f"{AUDIO_FOLDER}/{name}",
                "waveform_v2v_ms": opinion.voice_to_voice_ms,
                "waveform_certain": opinion.certain,
                "waveform_uncertainty_ms": opinion.uncertainty_ms,
            }
        )

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
