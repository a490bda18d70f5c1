"""Run a plan: check everything first, load the models, warm up, then one record on disk for each turn."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from voicebench import emulated, environment
from voicebench.audio.manifest import Sample
from voicebench.errors import BadRequest, RunProblem, VoicebenchError
from voicebench.models.catalogue import load_catalogue
from voicebench.models.resolve import resolve_llm
from voicebench.models.store import Progress, ensure
from voicebench.pipeline.build import StageSpecs, resolve
from voicebench.plan import registry
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode, find_mode
from voicebench.plan.plan import PlannedTurn, expand
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.turns.journal import JournalWriter
from voicebench.turns.mode_facts import mode_facts
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import AUDIO_FOLDER, PlannedEntry, RunFolder
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


@dataclass(frozen=True)
class RunOptions:
    """How to run, beside what to run."""

    out: Path | None = None
    resume: Path | None = None
    """The folder of a run to go on with; `out` is then not looked at."""
    keep_audio: bool = False
    offline: bool = False
    no_text: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    request: Mapping[str, object] = field(default_factory=dict)
    """What was asked for beside the config, kept so that the run can be resumed."""


def make_plan(
    config: Config,
    samples: Sequence[Sample],
    *,
    limit: int | None = None,
    where: str = "configuration",
    variables: Mapping[str, str] | None = None,
) -> RunPlan:
    """Check the request and expand it. Loads no model and opens no connection.

    Raises BadRequest, MissingExtra, MissingKey or ModelFileProblem.
    """
    if not samples:
        raise BadRequest("There are no samples to run.", "Name audio files or folders.")
    chosen = tuple(samples[:limit]) if limit is not None else tuple(samples)
    modes = tuple(find_mode(mode_id, config.own, where) for mode_id in config.modes)
    for limited in config.samples_per_mode:
        find_mode(limited, config.own, f"{where}, samples_per_mode")
    emulated.check(modes)
    specs = resolve(config, list(emulated.placed(modes)), where)
    found = os.environ if variables is None else variables
    wanted: list[str] = []
    named = [(specs.asr, "ASR"), (specs.tts, "TTS"), (specs.turn, "The turn detector")]
    named += [(stage, f"The mode {mode_id}") for mode_id, stage in specs.llm.items()]
    for stage, name in named:
        needs = stage.plugin.needs(stage.settings)
        registry.require(needs, f"{name} ({stage.plugin.title})", found)
        stage.plugin.check(stage.settings)
        wanted.extend(needs.models)
    for mode in modes:
        if mode.api == "llama-cpp":
            source = resolve_llm(mode.settings.get("model") or mode.model)
            if source.model_id:
                wanted.append(source.model_id)
    turns = expand(
        config.modes,
        [sample.id for sample in chosen],
        repeats=config.repeats,
        seed=config.seed,
        at_most=config.samples_per_mode,
    )
    return RunPlan(config, modes, chosen, tuple(turns), specs, tuple(dict.fromkeys(wanted)), where)


async def run(
    plan: RunPlan, options: RunOptions, reporter: Reporter, progress: Progress | None = None
) -> RunFolder:
    """Run all turns. Each is on disk when it is over; the run's folder opens at any instant.

    Raises VoicebenchError where the run cannot begin. A turn that fails is a record, and the run goes on.
    """
    hush_pipecat()
    ensure(plan.model_ids, progress, options.offline)
    folder, turns = _open(plan, options)
    reporter.opened(folder)
    shared = Shared(log_folder=folder.path, offline=options.offline, environment=dict(options.environment))
    done = False
    try:
        plan = await asyncio.to_thread(_with_emulator, plan, shared)
        with (
            folder.journal(no_text=options.no_text) as journal,
            folder.warmup_journal(no_text=options.no_text) as warmups,
        ):
            bench = _Bench(plan, folder, shared, reporter, options.keep_audio)
            try:
                if turns:
                    await bench.warm_up(warmups)
                    await bench.calibrate()
                    await bench.measure(turns, journal)
                done = True
            finally:
                await bench.close()
    finally:
        shared.close()
        folder.finish(complete=done)
    return folder


def _with_emulator(plan: RunPlan, shared: Shared) -> RunPlan:
    """The plan with its emulated modes at a running emulator, which `shared` ends."""
    started = emulated.start(plan.modes, plan.config.seed)
    if started is None:
        return plan
    shared.on_close(started.stop)
    return replace(plan, modes=started.modes, specs=resolve(plan.config, list(started.modes), plan.where))


def _open(plan: RunPlan, options: RunOptions) -> tuple[RunFolder, list[PlannedTurn]]:
    """The run's folder, new or resumed, and the turns that are still to be run."""
    if options.resume is None:
        folder = RunFolder.create(options.out)
        entries = [_entry(turn, plan.by_id[turn.sample]) for turn in plan.turns]
        folder.start(entries, **_facts(plan), request=dict(options.request))
        return folder, list(plan.turns)
    folder = RunFolder.open(options.resume)
    done = {(one.mode, one.sample, one.repeat) for one in folder.turns().records}
    left = [turn for turn in plan.turns if (turn.mode, turn.sample, turn.repeat) not in done]
    return folder, left


def _entry(turn: PlannedTurn, sample: Sample) -> PlannedEntry:
    return PlannedEntry(mode=turn.mode, sample=turn.sample, repeat=turn.repeat, anchor=Anchor(sample.anchor))


def _facts(plan: RunPlan) -> dict[str, object]:
    """What `run.json` says of a run beside its turns."""
    catalogue = load_catalogue()
    return {
        "command": "batch",
        "config": plan.config.model_dump(mode="json"),
        "environment": environment.machine(),
        "versions": environment.versions(),
        "models": {
            model_id: {file.name: file.sha256 for file in catalogue.get(model_id).files}
            for model_id in plan.model_ids
        },
        "modes": {mode.id: mode_facts(mode) for mode in plan.modes},
        "budget_ms": plan.config.budget_ms,
        "slots_ms": plan.config.slots_ms,
        "synthetic_samples": sum(1 for sample in plan.samples if _is_synthetic(sample)),
    }


def _is_synthetic(sample: Sample) -> bool:
    """Is the sample's voice, as its manifest names it, one of a speech synthesis?"""
    return (sample.voice or "").split(" ")[0] in ("piper", "espeak-ng")


def _file_safe(name: str) -> str:
    """A sample's or a mode's name with nothing in it that a file name could not hold."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "x"


def _told(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, VoicebenchError):
        return error.what
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


class _Bench:
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
        turns = self._plan.config.calibration_turns
        if not turns:
            return
        from voicebench.pipeline.calibrate import calibrate

        self._reporter.phase("Calibrating")
        found = await calibrate(turns)
        floor = found.noise_floor_ms
        self._folder.update(
            noise_floor_ms=floor,
            noise_floor_reason=None if floor is not None else "no calibration turn gave a latency",
            calibration=found.to_dict(),
        )

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
        caveats = made.caveats
        if made.measured and opinion.disagrees(made.voice_to_voice_ms):
            caveats = (*caveats, "waveform_disagrees")
        return made.model_copy(
            update={
                "audio": f"{AUDIO_FOLDER}/{name}",
                "waveform_v2v_ms": opinion.voice_to_voice_ms,
                "waveform_certain": opinion.certain,
                "caveats": caveats,
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
            heard=self._plan.config.hear,
        )
