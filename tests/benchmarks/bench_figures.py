"""The arithmetic of the stack benchmark: from rows, one a turn, to each arm's figures. No I/O, no clock."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.statistics import wilson

BUDGET_MS = 800.0
DRAWS = 1000
LEAST_FOR_P95 = 20

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]


@dataclass(frozen=True)
class Row:
    """One measured turn of one arm."""

    arm: str
    sample: str
    repeat: int
    outcome: str
    has_speech: bool
    cutoffs: int
    """Ends of turn before the person had stopped."""
    waveform_ms: float | None
    """V2V found in the recording alone; None where an edge was not found."""
    waveform_certain: bool
    marks_ms: float | None
    """V2V by the marks: a cross-check."""
    flags: tuple[str, ...] = ()
    stages_ms: dict[str, float | None] | None = None
    wer_errors: int = 0
    wer_words: int = 0
    """Words of the reference; 0 where there is none."""
    answer_correct: bool | None = None
    speech_wait_ms: float | None = None
    """Silence in the midst of what was heard of the reply, since its audio was not there."""

    @property
    def counts(self) -> bool:
        """Does its latency count? Completed, nobody cut off, not retried, and both edges in the recording."""
        left_out = self.cut_off or "retried" in self.flags
        return self.outcome == "completed" and not left_out and self.waveform_ms is not None

    @property
    def cut_off(self) -> bool:
        """Was the person cut off, or the model asked without the last words?"""
        return bool(self.cutoffs) or "cutoff" in self.flags

    def to_dict(self) -> dict[str, Any]:
        """Plain values: a line of the run's rows."""
        return asdict(self)

    @classmethod
    def of(cls, told: dict[str, Any]) -> Row:
        """The row that `to_dict` told."""
        return cls(**{**told, "flags": tuple(told["flags"])})


def order(arms: Sequence[str], samples: Sequence[str], repeat: int) -> list[tuple[str, str]]:
    """The turns of one repeat as (arm, sample): every arm meets every sample once.

    The arms take turns, each one first equally often, so that a drift of the machine hits all alike. At any
    moment each is at another sample: the language model's server keeps what it read last, and the second arm
    that asks the same question would be answered from there.
    """
    count = len(samples)
    if count == 1:
        return [(arm, samples[0]) for arm in arms]
    for seed in range(1000):
        draw = random.Random(seed)
        ahead = [draw.randrange(count) for _ in arms]
        found = []
        for step in range(count):
            first = (step + repeat) % len(arms)
            for place in (*range(first, len(arms)), *range(first)):
                found.append((arms[place], samples[(step + ahead[place]) % count]))
        if all(one[1] != other[1] for one, other in pairwise(found)):
            return found
    raise ValueError(f"{count} samples are too few to keep {len(arms)} arms apart")


def interval(values: Sequence[tuple[str, float]], statistic: Statistic) -> tuple[float, float] | None:
    """The 95 % interval of a statistic of (sample, value): samples are drawn anew, each with all its turns.

    None for fewer than two samples.
    """
    groups = _groups(values)
    if len(groups) < 2:
        return None
    draw = np.random.default_rng(7)
    found = []
    for _ in range(DRAWS):
        picked = draw.integers(0, len(groups), len(groups))
        found.append(statistic(np.concatenate([groups[index] for index in picked])))
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def between(
    one: Sequence[tuple[str, float]],
    other: Sequence[tuple[str, float]],
    made_of: Callable[[float, float], float],
) -> tuple[float, tuple[float, float] | None] | None:
    """What `made_of` makes of the two medians, with its 95 % interval over the samples that both have.

    Samples are drawn for both at once, as they met the same ones. None where they share no sample.
    """
    shared = sorted({sample for sample, _ in one} & {sample for sample, _ in other})
    if not shared:
        return None
    ours, theirs = ([_of(values, sample) for sample in shared] for values in (one, other))
    point = made_of(float(np.median(np.concatenate(ours))), float(np.median(np.concatenate(theirs))))
    if len(shared) < 2:
        return point, None
    draw = np.random.default_rng(7)
    found = []
    for _ in range(DRAWS):
        picked = draw.integers(0, len(shared), len(shared))
        medians = (float(np.median(np.concatenate([of[i] for i in picked]))) for of in (ours, theirs))
        found.append(made_of(*medians))
    low, high = np.percentile(found, (2.5, 97.5))
    return point, (float(low), float(high))


def _of(values: Sequence[tuple[str, float]], sample: str) -> Floats:
    return np.asarray([value for name, value in values if name == sample])


def _groups(values: Sequence[tuple[str, float]]) -> list[Floats]:
    return [_of(values, sample) for sample in sorted({name for name, _ in values})]


def latencies(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """(sample, V2V from the waveform in ms) of the turns that count."""
    return [(row.sample, row.waveform_ms) for row in rows if row.counts and row.waveform_ms is not None]


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """An arm's figures. Latencies are from the waveform; a figure that n does not allow is None."""
    values = latencies(rows)
    data = np.asarray([value for _, value in values])
    spoken = [row for row in rows if row.has_speech]
    cut = sum(row.cut_off for row in spoken)
    within = int((data <= BUDGET_MS).sum())
    words = sum(row.wer_words for row in rows)
    asked = [row for row in rows if row.answer_correct is not None]
    has_p95 = data.size >= LEAST_FOR_P95
    apart = [
        abs(row.waveform_ms - row.marks_ms)
        for row in rows
        if row.counts and row.waveform_ms is not None and row.marks_ms is not None
    ]
    return {
        "n": int(data.size),
        "turns": len(rows),
        "outcomes": dict(Counter(row.outcome for row in rows)),
        "flags": dict(Counter(flag for row in rows for flag in row.flags)),
        "waveform_uncertain": sum(1 for row in rows if row.counts and not row.waveform_certain),
        "waveform_less_marks_ms_max": max(apart, default=None),
        "p50_ms": float(np.median(data)) if data.size else None,
        "p50_ci95_ms": interval(values, lambda drawn: float(np.median(drawn))),
        "p95_ms": float(np.percentile(data, 95)) if has_p95 else None,
        "p95_ci95_ms": interval(values, lambda drawn: float(np.percentile(drawn, 95))) if has_p95 else None,
        "min_ms": float(data.min()) if data.size else None,
        "max_ms": float(data.max()) if data.size else None,
        "within_800": {"hit": within, "n": len(spoken), "ci95": wilson(within, len(spoken))},
        "cutoffs": {"count": cut, "n": len(spoken), "ci95": wilson(cut, len(spoken))},
        "wer": sum(row.wer_errors for row in rows) / words if words else None,
        "wer_words": words,
        "answers": {"correct": sum(1 for row in asked if row.answer_correct), "n": len(asked)},
        "speech_wait_ms_max": max(
            (row.speech_wait_ms for row in rows if row.speech_wait_ms is not None), default=None
        ),
        "stage_medians_ms": _stages(rows),
    }


def _stages(rows: Sequence[Row]) -> dict[str, float | None]:
    """Each stage's median over the turns that count; None for one that no turn has."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, value in (row.stages_ms or {}).items() if row.counts else ():
            found.setdefault(name, []).extend([] if value is None else [value])
    return {name: float(np.median(values)) if values else None for name, values in found.items()}


def summary(
    rows: Sequence[Row], arms: Sequence[str], least: int, counted: Sequence[str] | None = None
) -> dict[str, Any]:
    """The figures of all arms, ours as a share of plain pipecat's, and which of `counted` (None: all) have
    fewer than `least` turns."""
    by_arm = {name: [row for row in rows if row.arm == name] for name in arms}
    told: dict[str, Any] = {"arms": {name: figures(own) for name, own in by_arm.items()}}
    told["least_n"] = least
    told["short_of_n"] = [
        name for name in (arms if counted is None else counted) if told["arms"][name]["n"] < least
    ]
    if "plain" in by_arm and "voicebench" in by_arm:
        ours, plain = latencies(by_arm["voicebench"]), latencies(by_arm["plain"])
        ratio = between(ours, plain, lambda one, other: one / other)
        told["ratio_p50"], told["ratio_p50_ci95"] = (None, None) if ratio is None else ratio
        for name, part in (("wer_less_plain", word_errors), ("cutoffs_less_plain", _cut)):
            found = share_apart(by_arm["voicebench"], by_arm["plain"], part)
            told[name], told[f"{name}_ci95"] = (None, None) if found is None else found
    return told


def share_apart(
    one: Sequence[Row], other: Sequence[Row], part: Callable[[Row], tuple[int, int]]
) -> tuple[float, tuple[float, float] | None] | None:
    """The share in `one` less that in `other`, with its 95 % interval over the samples that both have.

    `part` gives a turn's count and what it is of: word errors of words, a cut turn of 1. None where a side
    has nothing to count of.
    """
    shared = sorted({row.sample for row in one} & {row.sample for row in other})
    sums = np.asarray(
        [
            [
                [sum(part(row)[i] for row in side if row.sample == name) for i in (0, 1)]
                for side in (one, other)
            ]
            for name in shared
        ],
        dtype=np.float64,
    )
    if not shared or not sums[:, :, 1].sum(axis=0).all():
        return None

    def apart(drawn: Floats) -> float:
        counts, of = drawn.sum(axis=0).T
        return float(counts[0] / of[0] - counts[1] / of[1])

    draw = np.random.default_rng(7)
    picks = [draw.integers(0, len(shared), len(shared)) for _ in range(DRAWS)]
    found = [apart(sums[picked]) for picked in picks if sums[picked][:, :, 1].sum(axis=0).all()]
    low, high = np.percentile(found, (2.5, 97.5))
    return apart(sums), (float(low), float(high))


def word_errors(row: Row) -> tuple[int, int]:
    """Errors, and of how many words: for `share_apart`."""
    return row.wer_errors, row.wer_words


def _cut(row: Row) -> tuple[int, int]:
    return int(row.cut_off), int(row.has_speech)


def ablation(rows: Sequence[Row], arms: Sequence[str]) -> str:
    """A Markdown table: what each setting is worth, as the stack is with that one changed."""
    base = latencies([row for row in rows if row.arm == "voicebench"])
    lines = [
        "| changed | n | p50 (95 %) | p95 | less voicebench (95 %) | cutoffs | word errors | answers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in arms:
        own = [row for row in rows if row.arm == name]
        told = figures(own)
        alone = name == "voicebench"
        change = None if alone else between(latencies(own), base, lambda one, other: one - other)
        answers = told["answers"]
        wer = "–" if told["wer"] is None else f"{told['wer']:.1%}"
        cells = (
            "nothing" if alone else name,
            str(told["n"]),
            _with_interval(told["p50_ms"], told["p50_ci95_ms"]),
            "–" if told["p95_ms"] is None else f"{told['p95_ms']:.0f}",
            "–" if change is None else _with_interval(*change, sign="+"),
            f"{told['cutoffs']['count']} of {told['cutoffs']['n']}",
            wer,
            f"{answers['correct']} of {answers['n']}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _with_interval(value: float | None, ends: tuple[float, float] | None, sign: str = "") -> str:
    if value is None:
        return "–"
    told = f"{value:{sign}.0f} ms"
    return told if ends is None else f"{told} ({ends[0]:{sign}.0f} to {ends[1]:{sign}.0f})"
