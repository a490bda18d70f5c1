"""The principal bottleneck: the stage that takes most of the turns, where the turns tell which it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicebench.analysis.bootstrap import MOST_CLUSTERS
from voicebench.analysis.changes import Turns
from voicebench.analysis.counterfactual import LEAST_N
from voicebench.analysis.statistics import cluster_numbers
from voicebench.turns.timeline import Anchor, Stage

RESAMPLES = 1000
SURE = 0.95
"""A stage is called the bottleneck where it is the largest in this part of the resamples."""


MEANING = {
    Stage.ENDPOINTING: "the wait for silence",
    Stage.ASR: "the wait for the transcript",
    Stage.TURN: "deciding that the turn is over",
    Stage.DISPATCH: "handing over to the model",
    Stage.LLM_TTFAT: "the wait for the model's first text",
    Stage.CLAUSE: "the wait for a first clause that can be spoken",
    Stage.TTS: "the wait for the first bytes of speech",
    Stage.PLAYOUT: "silence and buffers ahead of the sound",
}
"""Each stage for a reader who does not know its name."""


@dataclass(frozen=True)
class Bottleneck:
    """The stage that takes most of one mode's turns, on average."""

    mode: str
    anchor: Anchor | None
    stage: Stage
    mean_ms: float
    of_ms: float
    """The mean V2V of the same turns."""
    next_stage: Stage
    sure: bool
    """Is it the largest in 95 % of the resamples (by sample), over at least 10 turns?"""

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "mode": self.mode,
            "anchor": None if self.anchor is None else self.anchor.value,
            "stage": self.stage.value,
            "mean_ms": self.mean_ms,
            "voice_to_voice_mean_ms": self.of_ms,
            "next_stage": self.next_stage.value,
            "sure": self.sure,
        }


def bottleneck_of(turns: Turns, seed: int = 0) -> Bottleneck | None:
    """The stage with the largest mean over the turns of one mode that count. None where none has stages.

    Sure where the same stage is the largest in 95 % of 1000 bootstrap resamples of whole samples (of turns,
    where there is one sample; in at most 2000 groups).
    """
    staged = np.flatnonzero(turns.counted & turns.staged)
    if not staged.size:
        return None
    parts = np.stack([turns.took(stage)[staged] for stage in Stage], axis=1)
    means = parts.mean(axis=0)
    ranked = np.argsort(-means, kind="stable")
    labels = cluster_numbers(turns.records[place].sample for place in staged.tolist())
    if int(labels.max()) == 0:
        labels = np.arange(staged.size, dtype=np.intp)
    labels = np.unique(labels % MOST_CLUSTERS, return_inverse=True)[1]
    units = int(labels.max()) + 1
    sums = np.zeros((units, parts.shape[1]))
    np.add.at(sums, labels, parts)
    weights = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), RESAMPLES)
    same = float(np.mean(np.argmax(weights @ sums, axis=1) == ranked[0]))
    stages = list(Stage)
    return Bottleneck(
        mode=turns.records[0].mode,
        anchor=turns.records[0].anchor,
        stage=stages[int(ranked[0])],
        mean_ms=float(means[ranked[0]]),
        of_ms=float(parts.sum(axis=1).mean()),
        next_stage=stages[int(ranked[1])],
        sure=staged.size >= LEAST_N and same >= SURE,
    )


def bottleneck_words(found: Sequence[Bottleneck], wait_ms: float | None) -> str:
    """The principal bottleneck of the stack: the same in all modes, or which in how many."""
    if not found:
        return "Cannot tell the bottleneck: no turn has stages."
    sure = [one for one in found if one.sure]
    if not sure:
        first = found[0]
        return f"Cannot tell yet whether {first.stage.value} or {first.next_stage.value} is the bottleneck."
    by_stage: dict[Stage, list[Bottleneck]] = {}
    for one in sure:
        by_stage.setdefault(one.stage, []).append(one)
    stage, modes = max(by_stage.items(), key=lambda item: len(item[1]))
    mean = sum(one.mean_ms for one in modes) / len(modes)
    total = sum(one.of_ms for one in modes) / len(modes)
    where = "" if len(modes) == len(found) else f" in {len(modes)} of {len(found)} modes"
    words = f"The principal bottleneck{where} is {stage.value}, {MEANING[stage]}: "
    words += f"{mean:.0f} of {total:.0f} ms on average"
    if stage is Stage.ENDPOINTING and wait_ms is not None:
        words += f", of which {min(wait_ms, mean):.0f} ms are a configured wait: chosen, not computed"
    rest = [f"{other.value} in {len(those)}" for other, those in by_stage.items() if other is not stage]
    unsure = len(found) - len(sure)
    rest += [f"not told by the turns in {unsure}"] if unsure else []
    return f"{words}{'; ' + ', '.join(rest) if rest else ''}."
