"""Plain pipecat against voicebench's stack: the same audio, interleaved, judged by the waveform.

`python -m tests.benchmarks.bench_stack --arms plain,voicebench --repeats 3 --out bench.json`
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.arms import OFF, TEN, arm
from voicebench import environment
from voicebench.analysis.statistics import summarize, wilson
from voicebench.audio.manifest import Sample, load_manifest
from voicebench.audio.prepare import PIPELINE_RATE, Prepared, prepare
from voicebench.audio.reconcile import second_opinion
from voicebench.audio.recorder import record as recording_of
from voicebench.audio.samples import default_folder
from voicebench.pipeline.build import resolve
from voicebench.pipeline.record import TurnFacts, record
from voicebench.pipeline.session import Session
from voicebench.plan.config import Config
from voicebench.plan.modes import find_mode
from voicebench.stages.shared import Shared
from voicebench.turns.records import Outcome, TurnRecord


@dataclass
class Arm:
    """One arm: its configuration, its session, and what came of its turns."""

    name: str
    config: Config
    session: Session | None = None
    records: list[TurnRecord] = field(default_factory=list)
    waveform_ms: list[tuple[str, float]] = field(default_factory=list)


def _session(one: Arm, shared: Shared) -> Session:
    mode = find_mode("local/smollm2-135m", {})
    return Session(mode, resolve(one.config, [mode], one.name), one.config, shared)


async def _turn(one: Arm, shared: Shared, sample: Sample, clip: Prepared, repeat: int) -> None:
    """Run one turn and keep it; the first turn of a sample in an arm is not kept twice."""
    if one.session is None or not one.session.healthy:
        if one.session is not None:
            await one.session.close()
        one.session = _session(one, shared)
        await one.session.open()
    heard = await one.session.turn(clip.pcm, clip.speech_end_s, clip.has_speech)
    facts = TurnFacts(
        run="bench",
        index=len(one.records),
        repeat=repeat,
        mode=one.session.mode,
        sample=sample.id,
        anchor=clip.anchor,
        has_speech=clip.has_speech,
        reference=sample.transcript,
        acceptable=sample.answers,
        language=sample.language,
    )
    if repeat < 0:
        return
    kept = record(facts, heard)
    one.records.append(kept)
    opinion = second_opinion(recording_of(clip.pcm, PIPELINE_RATE, heard.playback.start_ns, heard.played))
    if kept.outcome is Outcome.COMPLETED and not kept.cutoffs and opinion.voice_to_voice_ms is not None:
        one.waveform_ms.append((sample.id, opinion.voice_to_voice_ms))


async def run(names: list[str], samples: list[Sample], repeats: int) -> list[Arm]:
    """All arms over all samples, arms taking turns in a rotating order; two turns of each warm it up."""
    shared = Shared()
    arms = [Arm(name, arm(name)) for name in names]
    clips = {sample.id: prepare(sample) for sample in samples}
    try:
        for one in arms:
            for number in (-2, -1):
                await _turn(one, shared, samples[0], clips[samples[0].id], number)
        rotation = 0
        for repeat in range(repeats):
            for sample in samples:
                order = arms[rotation % len(arms) :] + arms[: rotation % len(arms)]
                rotation += 1
                for one in order:
                    await _turn(one, shared, sample, clips[sample.id], repeat)
    finally:
        for one in arms:
            if one.session is not None:
                await one.session.close()
        shared.close()
    return arms


def told(one: Arm) -> dict[str, Any]:
    """An arm's figures."""
    values = np.asarray([value for _, value in one.waveform_ms])
    summary = summarize(values.tolist(), clusters=[sample for sample, _ in one.waveform_ms])
    words = sum(record.wer.words for record in one.records if record.wer)
    errors = sum(record.wer.errors for record in one.records if record.wer)
    spoken = [record for record in one.records if record.speech_in_sample]
    cut = sum(1 for record in spoken if record.cutoffs)
    within = int((values <= 800.0).sum())
    return {
        "n": int(values.size),
        "turns": len(one.records),
        "not_completed": sum(1 for record in one.records if record.outcome is not Outcome.COMPLETED),
        "p50_ms": summary.p50,
        "p50_ci95_ms": summary.ci95_p50,
        "p95_ms": summary.p95,
        "min_ms": summary.min,
        "max_ms": summary.max,
        "within_800": {"hit": within, "n": len(spoken), "ci95": wilson(within, len(spoken))},
        "cutoffs": {"count": cut, "n": len(spoken), "ci95": wilson(cut, len(spoken))},
        "wer": errors / words if words else None,
        "wer_words": words,
        "answers": {
            "correct": sum(1 for record in one.records if record.answer_correct),
            "n": sum(1 for record in one.records if record.answer_correct is not None),
        },
        "stage_medians_ms": _stages(one),
    }


def _stages(one: Arm) -> dict[str, float]:
    rows = [record.stages_ms for record in one.records if record.stages_ms and not record.cutoffs]
    names = rows[0].keys() if rows else ()
    return {
        name: float(np.median([row[name] for row in rows if row[name] is not None] or [0.0]))
        for name in names
    }


def main() -> None:
    """Run, print and write bench.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--arms", default="plain,voicebench")
    parser.add_argument("--samples", choices=("ten", "all"), default="ten")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    names = options.arms.split(",") if options.arms != "off" else ["voicebench", *OFF]
    folder = default_folder()
    samples = [sample for sample in load_manifest(folder) if sample.has_speech]
    if options.samples == "ten":
        ids = [name for name, _ in TEN]
        samples = [sample for sample in samples if sample.id in ids]
    arms = asyncio.run(run(names, samples, options.repeats))
    result: dict[str, Any] = {
        "schema": 1,
        "machine": environment.machine(),
        "versions": environment.versions(),
        "clips": {one.id: hashlib.sha256(one.path.read_bytes()).hexdigest() for one in samples},
        "arms": {one.name: told(one) for one in arms},
    }
    found = result["arms"]
    if "plain" in found and "voicebench" in found and found["plain"]["p50_ms"]:
        result["ratio_p50"] = found["voicebench"]["p50_ms"] / found["plain"]["p50_ms"]
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for name, figures in found.items():
        print(name, json.dumps(figures))
    print("ratio of p50", result.get("ratio_p50"))


if __name__ == "__main__":
    main()
