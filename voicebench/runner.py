"""Run a plan: check everything first, load the models, warm up, then one record on disk for each turn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from voicebench import emulated, environment
from voicebench.audio.manifest import Sample
from voicebench.bench import Bench, Reporter, RunPlan
from voicebench.errors import BadRequest
from voicebench.load import LoadPlan, make_room
from voicebench.models.catalogue import load_catalogue
from voicebench.models.resolve import resolve_llm
from voicebench.models.store import Progress, ensure
from voicebench.pipeline.build import begin_loading, check_pace, resolve
from voicebench.plan import registry
from voicebench.plan.config import Config
from voicebench.plan.modes import find_mode, with_members
from voicebench.plan.plan import PlannedTurn, expand
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import Shared
from voicebench.stages.tools import check_tools
from voicebench.turns.mode_facts import mode_facts
from voicebench.turns.run_folder import PlannedEntry, RunFolder
from voicebench.turns.timeline import Anchor

__all__ = ["Reporter", "RunOptions", "RunPlan", "make_plan", "run", "run_facts", "with_emulator"]


@dataclass(frozen=True)
class RunOptions:
    """How to run, beside what to run."""

    out: Path | None = None
    resume: Path | None = None
    """The folder of a run to go on with; `out` is then not looked at."""
    keep_audio: bool = False
    offline: bool = False
    no_text: bool = False
    load: LoadPlan = field(default_factory=LoadPlan)
    """How many turns at once, and on which schedule."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
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
    check_pace(config, specs.asr.plugin.by_segment(specs.asr.settings), specs.asr.plugin.title)
    for mode in with_members(modes):
        check_tools(mode.tools, f"mode {mode.id}")
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

    Raises VoicebenchError where the run cannot begin, or can no longer be written. A turn that fails is a
    record, and the run goes on.
    """
    if plan.config.pace != "real" and not options.load.plain:
        raise BadRequest(
            "Sped-up recordings take processor time from the other sessions, and from the schedule.",
            "Leave out --sessions and --rate, or --pace.",
        )
    hush_pipecat()
    make_room()
    ensure(plan.model_ids, progress, options.offline)
    folder, turns = _open(plan, options)
    reporter.opened(folder)
    shared = Shared(log_folder=folder.path, offline=options.offline, environment=dict(options.environment))
    done = False
    try:
        if turns:
            begin_loading(plan.specs, with_members(plan.modes), plan.config.conversation, shared)
        plan = await asyncio.to_thread(with_emulator, plan, shared)
        with (
            folder.journal(no_text=options.no_text) as journal,
            folder.warmup_journal(no_text=options.no_text) as warmups,
        ):
            bench = Bench(plan, folder, shared, reporter, options.keep_audio, options.load)
            try:
                if turns:
                    await bench.warm_up(warmups)
                    await bench.calibrate()
                    served = await bench.measure(turns, journal)
                    if not options.load.plain:
                        folder.update(load=options.load.told(served))
                done = True
            finally:
                await bench.close()
    finally:
        shared.close()
        folder.finish(complete=done)
    return folder


def with_emulator(plan: RunPlan, shared: Shared) -> RunPlan:
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
        facts = run_facts(plan, "batch")
        folder.start(entries, **facts, load=options.load.told(), request=dict(options.request))
        return folder, list(plan.turns)
    folder = RunFolder.open(options.resume)
    done = {(one.mode, one.sample, one.repeat) for one in folder.turns().records}
    left = [turn for turn in plan.turns if (turn.mode, turn.sample, turn.repeat) not in done]
    return folder, left


def _entry(turn: PlannedTurn, sample: Sample) -> PlannedEntry:
    return PlannedEntry(mode=turn.mode, sample=turn.sample, repeat=turn.repeat, anchor=Anchor(sample.anchor))


def run_facts(plan: RunPlan, command: str) -> dict[str, object]:
    """What `run.json` says of a run beside its turns."""
    catalogue = load_catalogue()
    return {
        "command": command,
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
