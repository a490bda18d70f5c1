"""Word errors of the stack's Whisper against plain pipecat's, on many cuts of each sample.

python -m tests.benchmarks.bench_words                      # twenty cuts of each sample, about four minutes

Where a segment begins and ends, to a few hundredths of a second, decides what Whisper makes of an unclear
word. The stack's benchmark cuts a sample at nearly the same place each time, so that one such word is counted
as often as the sample is run. Here every cut is another one; the two sides hear the same speech, each with as
much of the silence behind it as it waits for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.arms import arm
from tests.benchmarks.bench_figures import Row, share_apart, word_errors
from voicebench.audio.manifest import Sample, load_manifest
from voicebench.audio.prepare import PIPELINE_RATE, prepare
from voicebench.audio.samples import default_folder
from voicebench.clock import NS_PER_MS, now_ns
from voicebench.pipeline.build import resolve
from voicebench.plan.modes import find_mode
from voicebench.stages.shared import Shared, WorkLog
from voicebench.turns.quality import word_errors as compare

ARMS = ("plain", "voicebench")
LONGEST_S = 6.0
"""Longer samples hold pauses, where the two cut them differently."""
LEAD_S = (0.35, 0.95)
"""Before the speech: what pipecat keeps from before the detector noticed it."""
END_S = (0.0, 0.04)
"""Behind the speech, on top of what the arm waits for."""
STOP_S = 0.2
"""The detector's own stop, after which plain pipecat transcribes."""


def cut(pcm: NDArray[np.int16], sample: Sample, place: float, waits_s: float) -> bytes:
    """The speech of a sample with silence around it; `place` in [0, 1] tells which of the cuts."""
    assert sample.segments
    begin = sample.segments[0][0] - (LEAD_S[0] + place * (LEAD_S[1] - LEAD_S[0]))
    end = sample.segments[-1][1] + waits_s + END_S[0] + place * (END_S[1] - END_S[0])
    around = np.zeros(round(LEAD_S[1] * PIPELINE_RATE), dtype=np.int16)
    whole = np.concatenate((around, pcm, around))
    first, last = (around.size + round(at * PIPELINE_RATE) for at in (begin, end))
    return whole[first:last].tobytes()


@dataclass
class Ear:
    """One arm's recogniser, and for how long it waits before it transcribes."""

    service: Any
    waits_s: float
    took_ms: list[float] = field(default_factory=list)

    async def hear(self, audio: bytes) -> str:
        """What it makes of one segment."""
        start = now_ns()
        silence = bytes(2 * round(self.service._trailing_silence_secs * PIPELINE_RATE))
        texts = [frame.text async for frame in self.service.run_stt(audio + silence)]
        self.took_ms.append((now_ns() - start) / NS_PER_MS)
        return " ".join(texts)


def ear(name: str, shared: Shared) -> Ear:
    """The recogniser of that arm, its model loaded."""
    config = arm(name)
    stage = resolve(config, [find_mode(config.modes[0], config.own)], name).asr
    service = stage.plugin.build(stage.settings, shared, WorkLog())
    service._load()
    after_ms = config.early.transcribe_after_ms
    return Ear(service, STOP_S if after_ms is None else after_ms / 1000)


def chosen() -> list[tuple[Sample, NDArray[np.int16]]]:
    """The samples of one short utterance, with their sound at 16 kHz."""
    found = []
    for sample in load_manifest(default_folder()):
        if sample.has_speech and sample.transcript and len(sample.segments or ()) == 1:
            clip = prepare(sample)
            if clip.duration_s <= LONGEST_S:
                found.append((sample, clip.pcm))
    return found


async def measure(ears: dict[str, Ear], cuts: int) -> list[Row]:
    """Each sample at `cuts` places by each arm, as rows of the stack's benchmark without latencies."""
    rows = []
    for sample, pcm in chosen():
        for number in range(cuts):
            for name, one in ears.items():
                text = await one.hear(cut(pcm, sample, number / max(1, cuts - 1), one.waits_s))
                found = compare(sample.transcript, text, sample.language)
                assert found is not None
                rows.append(
                    Row(
                        arm=name,
                        sample=sample.id,
                        repeat=number,
                        outcome="completed",
                        has_speech=True,
                        cutoffs=0,
                        waveform_ms=None,
                        waveform_certain=False,
                        marks_ms=None,
                        wer_errors=found.errors,
                        wer_words=found.words,
                    )
                )
    return rows


def told(rows: list[Row], ears: dict[str, Ear]) -> dict[str, Any]:
    """Each arm's errors, and ours less plain pipecat's with its 95 % interval over the samples."""
    arms = {}
    for name, one in ears.items():
        own = [row for row in rows if row.arm == name]
        errors = Counter[str]()
        for row in own:
            errors[row.sample] += row.wer_errors
        words = sum(row.wer_words for row in own)
        arms[name] = {
            "cuts": len(own),
            "errors": errors.total(),
            "words": words,
            "wer": errors.total() / words,
            "errors_by_sample": {sample: count for sample, count in errors.items() if count},
            "transcribed_in_ms_p50": float(np.median(one.took_ms)),
        }
    plain, ours = ([row for row in rows if row.arm == name] for name in ARMS)
    apart = share_apart(ours, plain, word_errors)
    assert apart is not None
    return {"schema": 1, "arms": arms, "wer_less_plain": apart[0], "wer_less_plain_ci95": apart[1]}


def main() -> int:
    """Run, print and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=20, help="of each sample")
    parser.add_argument("--out", type=Path, default=Path("bench-words.json"))
    options = parser.parse_args()
    shared = Shared()
    try:
        ears = {name: ear(name, shared) for name in ARMS}
        result = told(asyncio.run(measure(ears, options.cuts)), ears)
    finally:
        shared.close()
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
