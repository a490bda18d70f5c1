"""From the specs of a mode to a pipecat pipeline: source -> ASR -> turn -> LLM -> TTS -> sink."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from voicebench.errors import BadRequest
from voicebench.pipeline.asr_watch import AsrWatch
from voicebench.pipeline.vad_watch import VadWatch
from voicebench.plan import registry
from voicebench.plan.config import Config, Conversation, validated
from voicebench.plan.modes import Mode, with_members
from voicebench.plan.registry import Plugin
from voicebench.stages.clauses import aggregator
from voicebench.stages.early import ask_early, early_hook
from voicebench.stages.llm import Tap
from voicebench.stages.retries import Retry
from voicebench.stages.shared import Shared, WorkLog
from voicebench.stages.tools import Toolbox
from voicebench.stages.vad import build_vad

DEFAULT_RATE = 24_000


@dataclass(frozen=True)
class Stage:
    """A plug-in and its checked settings."""

    plugin: Plugin
    settings: Any


@dataclass(frozen=True)
class StageSpecs:
    """The stages that all modes of a run share, and each mode's own LLM."""

    asr: Stage
    tts: Stage
    turn: Stage
    llm: dict[str, Stage]


def resolve(config: Config, modes: list[Mode], where: str) -> StageSpecs:
    """Find the plug-ins and check their settings; loads no model.

    Raises BadRequest for an unknown kind or a wrong setting.
    """
    return StageSpecs(
        asr=_stage("asr", config.asr.kind, config.asr.settings, where),
        tts=_stage("tts", config.tts.kind, config.tts.settings, where),
        turn=_stage("turn", config.turn.kind, config.turn.settings, where),
        llm={mode.id: _llm_stage(mode) for mode in with_members(modes)},
    )


def _llm_stage(mode: Mode) -> Stage:
    where = f"mode {mode.id}"
    stage = _stage("llm", mode.api, mode.settings, where)
    if mode.attempts > 1 and not stage.plugin.retries:
        raise BadRequest(f"{where}: the kind {mode.api!r} of llm is never asked again.", "Set attempts to 1.")
    return stage


def _stage(point: str, kind: str, settings: dict[str, Any], where: str) -> Stage:
    plugin = registry.find(point, kind, where)
    return Stage(plugin, validated(plugin.settings, settings, f"{where}, {point} ({kind})"))


def begin_loading(
    specs: StageSpecs, modes: Sequence[Mode], conversation: Conversation, shared: Shared
) -> None:
    """Begin to load what the stages say takes long, and return at once.

    Language models are served by processes of their own: each is started and waited for in a thread. Those of
    ASR and TTS are loaded one after the other in another one, as both are Python libraries that are imported
    first. What goes wrong is told when the pipeline is built, which then asks for the same.
    """

    def load(*ways: Callable[[], object]) -> None:
        for way in ways:
            with suppress(Exception):
                way()

    def of(stage: Stage, *given: Any) -> list[Callable[[], object]]:
        found = stage.plugin.load
        return [] if found is None else [partial(found, *given, shared)]

    served = [specs.llm[mode.id] for mode in modes]
    for mode, stage in zip(modes, served, strict=True):
        if ways := of(stage, mode, stage.settings, conversation):
            threading.Thread(target=load, args=ways, name=f"load {mode.id}").start()
    heard = [*of(specs.asr, specs.asr.settings), *of(specs.tts, specs.tts.settings)]
    if heard:
        threading.Thread(target=load, args=heard, name="load ASR and TTS").start()


def check_pace(config: Config, by_segment: bool | None, asr: str) -> None:
    """Refuse to speed up what an ASR hears that listens by the clock; None: it is not known yet."""
    if config.pace == "tail" and by_segment is False:
        raise BadRequest(
            f"pace: tail needs an ASR that transcribes whole segments, and {asr} listens as the sound comes: "
            "what it heard sped up it would not hear as it does in real time.",
            "Leave --pace out.",
        )


@dataclass
class Parts:
    """A built pipeline and the pieces that a session drives."""

    worker: Any
    source: Any
    sink: Any
    observer: Any
    context: Any
    user: Any
    asr: AsrWatch
    tools: Toolbox
    vad: VadWatch


Transports = Callable[[int], tuple[Any, Any]]
"""Makes a pipeline's source and sink, given the rate in Hz of the voice."""


def build(
    mode: Mode,
    specs: StageSpecs,
    config: Config,
    shared: Shared,
    work: WorkLog,
    tap: Tap,
    transports: Transports | None = None,
) -> Parts:
    """Build the pipeline of one mode. Models are loaded here where `shared` does not hold them yet.

    Without `transports` it hears recorded clips and plays to a sink without a device.
    """
    from voicebench.stages.quiet import hush_pipecat

    hush_pipecat()
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineParams, PipelineWorker
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import (
        LLMContextAggregatorPair,
        LLMUserAggregatorParams,
    )

    from voicebench.audio.file_source import RATE, FileSource
    from voicebench.audio.play_sink import PlaySink
    from voicebench.audio.rate_door import hold_rate
    from voicebench.pipeline.observer import MonotonicClock, TurnObserver
    from voicebench.pipeline.pipecat_latency import latency_observer
    from voicebench.pipeline.spared import keep_audio, tell_pushes_only

    llm_stage = specs.llm[mode.id]
    tap.retry = Retry(mode.attempts, config.longest_retry_wait_s)
    asr = specs.asr.plugin.build(specs.asr.settings, shared, work)
    asr_watch = AsrWatch()
    asr_watch.watch(asr)
    check_pace(config, asr_watch.by_segment, specs.asr.plugin.title)
    tts = specs.tts.plugin.build(specs.tts.settings, shared, work)
    early = aggregator(config.clause)
    if early is not None:
        # pipecat takes an aggregator only as a processor of its own, whose frames then hide the request.
        tts._text_aggregator = early
    llm = llm_stage.plugin.build(mode, llm_stage.settings, config.conversation, shared, tap)
    strategies = specs.turn.plugin.build(specs.turn.settings, config.vad, work)
    ask_early(config.early, mode, config.clause, asr, llm, tts, strategies, tap, work)
    rate = getattr(tts, "native_rate", DEFAULT_RATE)

    source: Any
    sink: Any
    if transports is None:
        source, sink = FileSource(), PlaySink(rate, config.pipecat.out_chunk_ms)
    else:
        source, sink = transports(rate)
    hold_rate(source, RATE)
    toolbox = Toolbox(mode.tools)
    toolbox.register(llm)
    context = LLMContext(tools=toolbox.schema()) if mode.tools else LLMContext()
    vad, vad_watch = build_vad(config.vad, early_hook(config.early, asr, llm, work)), VadWatch()
    vad_watch.watch(vad)
    pair = LLMContextAggregatorPair(
        context,
        user_params=LLMUserAggregatorParams(
            user_turn_strategies=strategies,
            # The session's own time-out ends a turn; ended earlier here, a late transcript would be lost.
            user_turn_stop_timeout=max(5.0, config.turn_timeout_s),
            empty_user_turn=None,
            vad_analyzer=vad,
        ),
    )
    if not config.pipecat.audio_downstream:
        keep_audio(pair.user())
    observer = TurnObserver(tts)
    says = latency_observer(lambda latency_ms: work.note("pipecat_user_bot_latency_ms", latency_ms))
    worker = PipelineWorker(
        Pipeline([source, asr, pair.user(), llm, tts, sink, pair.assistant()]),
        params=PipelineParams(
            audio_in_sample_rate=RATE,
            audio_out_sample_rate=rate,
            enable_metrics=False,
            enable_usage_metrics=False,
        ),
        clock=MonotonicClock(),
        observers=[observer, says],
        enable_rtvi=config.pipecat.rtvi,
        enable_turn_tracking=False,
        idle_timeout_secs=None,
        cancel_on_idle_timeout=False,
        check_dangling_tasks=False,
    )
    if not config.pipecat.process_events:
        tell_pushes_only(worker)
    return Parts(worker, source, sink, observer, context, pair.user(), asr_watch, toolbox, vad_watch)
