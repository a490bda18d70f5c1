"""Plain pipecat against voicebench's stack: the same audio, interleaved, judged by the waveform.

python -m tests.benchmarks.bench_stack                      # ten clips, n >= 24 an arm: bench.json
python -m tests.benchmarks.bench_stack --arms plain,voicebench,off --samples all --least 60 --runs 3 \
    --out bench-full.json --resume                          # and what each setting is worth: bench-full.md

Each turn is written to `<out>-run-N.jsonl` as it ends; `--resume` goes on behind the last one. Exit status 3
where an arm did not reach its least number of turns that count.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.arms import TEN, arm, off_arms
from tests.benchmarks.bench_figures import Row, ablation, order, summary
from voicebench import environment
from voicebench.audio.manifest import Sample, load_manifest
from voicebench.audio.prepare import PIPELINE_RATE, Prepared, prepare
from voicebench.audio.reconcile import second_opinion
from voicebench.audio.recorder import record as recording_of
from voicebench.audio.samples import default_folder
from voicebench.load import make_room
from voicebench.pipeline.build import resolve
from voicebench.pipeline.record import TurnFacts, record
from voicebench.pipeline.session import Session
from voicebench.plan.config import Config
from voicebench.plan.modes import find_mode
from voicebench.stages.shared import Shared

MAIN = ("plain", "voicebench")
WARMUP_TURNS = 2
MOST_REPEATS = 2
"""Where turns do not count, so many times the planned repeats are run at most."""


@dataclass
class Arm:
    """One arm: its configuration and its session."""

    name: str
    config: Config
    session: Session | None = None


@dataclass(frozen=True)
class Asked:
    """What is to be measured."""

    arms: tuple[str, ...]
    samples: tuple[Sample, ...]
    repeats: int
    least: int
    repeats_off: int | None = None
    """Of the arms with one setting changed; they need no least number of turns. None: as the others."""

    def arms_of(self, repeat: int) -> tuple[str, ...]:
        """The arms that take part in this repeat."""
        few = self.repeats_off is not None and repeat >= self.repeats_off
        return tuple(name for name in self.arms if name in MAIN or not few)

    @property
    def counted(self) -> tuple[str, ...]:
        """The arms that must reach the least number of turns in each run."""
        return self.arms if self.repeats_off is None else tuple(one for one in self.arms if one in MAIN)


async def _turn(one: Arm, shared: Shared, sample: Sample, clip: Prepared, repeat: int) -> Row:
    """Run one turn in the arm's session, anew where that is not well."""
    if one.session is None or not one.session.healthy:
        if one.session is not None:
            await one.session.close()
        mode = find_mode(one.config.modes[0], one.config.own)
        one.session = Session(mode, resolve(one.config, [mode], one.name), one.config, shared)
        await one.session.open()
    heard = await one.session.turn(clip.pcm, clip.speech_end_s, clip.has_speech)
    kept = record(
        TurnFacts(
            run="bench",
            index=0,
            repeat=repeat,
            mode=one.session.mode,
            sample=sample.id,
            anchor=clip.anchor,
            has_speech=clip.has_speech,
            reference=sample.transcript,
            acceptable=sample.answers,
            language=sample.language,
            heard=one.config.hears,
        ),
        heard,
    )
    opinion = await asyncio.to_thread(
        lambda: second_opinion(recording_of(clip.pcm, PIPELINE_RATE, heard.playback.start_ns, heard.played))
    )
    return Row(
        arm=one.name,
        sample=sample.id,
        repeat=repeat,
        outcome=kept.outcome.value,
        has_speech=bool(kept.speech_in_sample),
        cutoffs=kept.cutoffs,
        waveform_ms=opinion.voice_to_voice_ms,
        waveform_certain=opinion.certain,
        marks_ms=kept.voice_to_voice_ms,
        flags=tuple(flag.value for flag in kept.flags),
        stages_ms=kept.stages_ms,
        wer_errors=kept.wer.errors if kept.wer else 0,
        wer_words=kept.wer.words if kept.wer else 0,
        answer_correct=kept.answer_correct,
        speech_wait_ms=kept.speech_wait_ms,
    )


async def measure(asked: Asked, rows_file: Path) -> list[Row]:
    """Run what `rows_file` does not hold yet, one line a turn. Gives all rows, those before included.

    After the planned repeats more are run until each arm has its least number of turns that count.
    """
    make_room()
    rows = read_rows(rows_file)
    done = {(row.arm, row.sample, row.repeat) for row in rows}
    shared = Shared()
    arms = {name: Arm(name, arm(name)) for name in asked.arms}
    by_id = {sample.id: sample for sample in asked.samples}
    clips = {sample.id: prepare(sample) for sample in asked.samples}
    began = time.monotonic()
    try:
        for number, one in enumerate(arms.values()):
            for turn in range(WARMUP_TURNS):
                sample = asked.samples[(number + turn) % len(asked.samples)]
                await _turn(one, shared, sample, clips[sample.id], -1)
        with rows_file.open("a", encoding="utf-8") as file:
            for repeat in range(asked.repeats * MOST_REPEATS):
                if repeat >= asked.repeats and not _short(rows, asked):
                    break
                planned = order(asked.arms_of(repeat), list(by_id), repeat)
                for name, sample_id in planned:
                    if (name, sample_id, repeat) in done:
                        continue
                    row = await _turn(arms[name], shared, by_id[sample_id], clips[sample_id], repeat)
                    rows.append(row)
                    file.write(json.dumps(row.to_dict()) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                minutes = (time.monotonic() - began) / 60
                print(f"{rows_file.name}: repeat {repeat + 1} done, {minutes:.1f} min", file=sys.stderr)
    finally:
        for one in arms.values():
            if one.session is not None:
                await one.session.close()
        shared.close()
    return rows


def _short(rows: Sequence[Row], asked: Asked) -> bool:
    counted = [row.arm for row in rows if row.counts]
    return any(counted.count(name) < asked.least for name in asked.counted)


def read_rows(path: Path) -> list[Row]:
    """The rows on disk; a torn last line, as a stop may leave it, is cut off the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) != len(data):
        path.write_bytes(whole)
    return [Row.of(json.loads(line)) for line in whole.splitlines()]


def chosen_samples(which: str) -> tuple[Sample, ...]:
    """The ten short clips, or all that hold speech. Raises SystemExit where one of the ten is not there."""
    spoken = [sample for sample in load_manifest(default_folder()) if sample.has_speech]
    if which == "all":
        return tuple(spoken)
    by_id = {sample.id: sample for sample in spoken}
    missing = [name for name in TEN if name not in by_id]
    if missing:
        raise SystemExit(f"The samples lack {', '.join(missing)}.")
    return tuple(by_id[name] for name in TEN)


def told(asked: Asked, rows: Sequence[Row], run: int) -> dict[str, Any]:
    """One run's result."""
    return {
        "schema": 1,
        "run": run,
        "latency": "voice to voice in ms, found in the recording alone",
        "machine": environment.machine(),
        "versions": environment.versions(),
        "clips": {
            sample.id: {
                "file": sample.path.name,
                "sha256": hashlib.sha256(sample.path.read_bytes()).hexdigest(),
            }
            for sample in asked.samples
        },
        **summary(rows, asked.arms, asked.least, asked.counted),
        "ten_clips": summary([row for row in rows if row.sample in TEN], MAIN, asked.least),
    }


def over_runs(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The smallest and the largest figure of the runs, over all samples and over the ten clips."""
    found: dict[str, Any] = {}
    for scope, told in (("all", results), ("ten_clips", [one["ten_clips"] for one in results])):
        values = {"ratio_p50": [one.get("ratio_p50") for one in told]}
        for name in MAIN:
            for figure in ("p50_ms", "p95_ms", "wer"):
                values[f"{name} {figure}"] = [one["arms"].get(name, {}).get(figure) for one in told]
        found[scope] = {
            key: (min(known), max(known)) if (known := [v for v in many if v is not None]) else None
            for key, many in values.items()
        }
    return found


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def main() -> int:
    """Run, print and write the result; 3 where an arm has fewer turns that count than asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arms", default="plain,voicebench", help="`off`: all those with one setting off")
    parser.add_argument("--samples", choices=("ten", "all"), default="ten")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--repeats-off", type=int, help="of the arms with one setting off: each run then adds to them"
    )
    parser.add_argument("--least", type=int, default=24, help="turns that count, for each arm and run")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--resume", action="store_true", help="go on behind the turns that are on disk")
    options = parser.parse_args()
    named = options.arms.split(",")
    arms = tuple(one for name in named for one in (off_arms() if name == "off" else [name]))
    asked = Asked(arms, chosen_samples(options.samples), options.repeats, options.least, options.repeats_off)
    results, everything = [], []
    for run in range(1, options.runs + 1):
        rows_file = options.out.with_name(f"{options.out.stem}-run-{run}.jsonl")
        if not options.resume:
            rows_file.unlink(missing_ok=True)
        rows = asyncio.run(measure(asked, rows_file))
        results.append(told(asked, rows, run))
        everything += rows
        _write(rows_file.with_suffix(".json"), _json(results[-1]))
    whole = results[0]
    if options.runs > 1:
        whole = told(asked, everything, 0) | {"over_runs": over_runs(results), "runs": results}
    _write(options.out, _json(whole))
    for name, found in whole["arms"].items():
        print(name, json.dumps(found))
    for name in ("ratio_p50", "wer_less_plain", "cutoffs_less_plain"):
        print(name, whole.get(name), whole.get(f"{name}_ci95"))
    if len(arms) > 2:
        table = ablation(everything, [name for name in arms if name != "plain"])
        _write(options.out.with_suffix(".md"), table)
        print(table)
    short = {name for result in results for name in result["short_of_n"]}
    if short:
        print(f"Fewer than {options.least} turns that count: {', '.join(sorted(short))}", file=sys.stderr)
    return 3 if short else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped. What was measured is on disk; --resume goes on behind it.", file=sys.stderr)
        sys.exit(130)
