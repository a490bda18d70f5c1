"""What a turn would have been with one part changed: predictions from measured stages, never measurements.

Each prediction takes a mode's own turns and changes one stage of each. What it cannot know is said with it,
and where too many turns do not tell, its share is empty with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from voicebench.analysis.changes import (
    Floats,
    Turns,
    llm_ms,
    with_pace,
    with_wait,
    without_asr,
    without_llm,
    without_tts,
)
from voicebench.analysis.statistics import percentile, wilson
from voicebench.turns.timeline import Anchor, Stage

LEAST_N = 10
"""From so many turns on a share is claimed."""
MOST_UNKNOWN = 0.1
"""Where more than this part of the turns does not tell, nothing is predicted."""
MOST_DRAWN = 40
"""The other model's times on one sample are told by at most so many of their order statistics."""
SHORTER_WAIT = 0.6
"""The part of the configured endpointing wait that is tried."""
WAIT_SEEN = 0.8
"""The median of endpointing must hold at least this part of the configured wait to be ruled by it."""


@dataclass(frozen=True)
class Prediction:
    """One change, on the turns of one mode and anchor. Predicted, not measured."""

    code: str
    """`llm_infinite`, `asr_infinite`, `tts_infinite`, `vad_stop`, `llm_of` or `llm_published`."""
    words: str
    mode: str
    anchor: Anchor | None
    p50_ms: float | None
    """The median V2V of the turns that count. None where nothing is predicted."""
    share: float | None
    """The share within the budget, over the same turns as the measured one. None: nothing is predicted."""
    ci95: tuple[float, float] | None
    """Wilson's interval of that share: how much the turns scatter, not how far the model of it is off."""
    n: int
    """Turns that the share is over."""
    unknown: int
    """Turns among them whose stages do not tell; they stay as measured."""
    measured_p50_ms: float | None
    measured_share: float | None
    note: str
    """What the prediction takes for granted."""
    reason: str | None = None
    """Why nothing is predicted; None where something is."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values, without the note."""
        told = {**asdict(self), "anchor": None if self.anchor is None else self.anchor.value}
        del told["note"]
        return told


def predict(code: str, words: str, note: str, turns: Turns, budget_ms: float, changed: Floats) -> Prediction:
    """The prediction of V2V being `changed` (NaN: not told) over one mode's turns, at least one.

    Failed turns and cutoffs stay misses; a turn that does not tell stays as measured and is counted.
    """
    live = turns.held & turns.answered
    n = int(turns.held.sum())
    unknown = int(np.isnan(changed[live]).sum())
    then = np.where(np.isnan(changed), turns.v2v, changed)
    hits = int((then[live] <= budget_ms).sum())
    measured = int((turns.v2v[live] <= budget_ms).sum())
    told = changed[turns.counted]
    reason = _reason(n, unknown)
    return Prediction(
        code=code,
        words=words,
        mode=turns.records[0].mode,
        anchor=turns.records[0].anchor,
        p50_ms=None if reason else percentile(told[~np.isnan(told)], 50),
        share=None if reason else hits / n,
        ci95=None if reason else wilson(hits, n),
        n=n,
        unknown=unknown,
        measured_p50_ms=percentile(turns.v2v[turns.counted], 50),
        measured_share=measured / n if n else None,
        note=note,
        reason=reason,
    )


def _reason(n: int, unknown: int) -> str | None:
    if n < LEAST_N:
        return f"cannot tell: {n} turns, and it takes {LEAST_N}"
    if unknown > MOST_UNKNOWN * n:
        return f"cannot tell: {unknown} of {n} turns lack the marks for it"
    return None


def predict_with_llm_of(donor: str, words: str, turns: Turns, others: Turns, budget_ms: float) -> Prediction:
    """`turns` with the model times of the mode `donor` (`others`) on the same samples.

    Each turn keeps its other stages and gets in turn every `llm_ttfat + clause` that the other mode showed on
    that sample, each as likely. Its chance to hold the budget counts as its part of a hit; the interval is
    Wilson's for the nearest whole number of hits. A sample that the other mode never answered tells nothing.
    """
    times: dict[str, list[float]] = {}
    for other, took, counted in zip(others.records, llm_ms(others).tolist(), others.counted, strict=True):
        if counted and not isnan(took):
            times.setdefault(other.sample, []).append(took)
    drawn = {sample: _thinned(known) for sample, known in times.items()}
    rest = without_llm(turns)
    places: dict[str, list[int]] = {}
    for place, record in enumerate(turns.records):
        if record.sample in drawn:
            places.setdefault(record.sample, []).append(place)
    mean, chance = np.full(rest.size, np.nan), np.full(rest.size, np.nan)
    values, weights = [], []
    for sample, those in places.items():
        pairs = rest[those][:, None] + drawn[sample]
        mean[those], chance[those] = pairs.mean(axis=1), (pairs <= budget_ms).mean(axis=1)
        kept = pairs[turns.counted[those] & ~np.isnan(rest[those])]
        values.append(kept.ravel())
        weights.append(np.full(kept.size, 1 / drawn[sample].size))
    note = f"On each sample, the times of {donor} there; the other stages as they were."
    base = predict("llm_of", words, note, turns, budget_ms, mean)
    if base.reason is not None:
        return base
    measured = (turns.v2v <= budget_ms).astype(np.float64)
    hits = float(np.where(np.isnan(mean), measured, chance)[turns.held & turns.answered].sum())
    return replace(
        base,
        share=min(1.0, hits / base.n),
        ci95=wilson(min(base.n, round(hits)), base.n),
        p50_ms=_weighted_median(np.concatenate(values), np.concatenate(weights)),
    )


def _thinned(values: Sequence[float]) -> Floats:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered.size <= MOST_DRAWN:
        return ordered
    return np.percentile(ordered, (np.arange(MOST_DRAWN) + 0.5) * 100 / MOST_DRAWN)


def _weighted_median(values: Floats, weights: Floats) -> float | None:
    """The least value up to which half of the weight lies; None for no values."""
    if not values.size:
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(reached, reached[-1] / 2))])


def predictions_of(
    turns: Turns,
    budget_ms: float,
    wait_ms: float | None,
    donor: tuple[str, Turns] | None,
    published: Sequence[Published] = (),
) -> tuple[Prediction, ...]:
    """All predictions for one mode's turns. Empty for no records.

    `wait_ms` is the configured endpointing wait, None where the config names none; `donor` another mode's
    name and turns; `published` models that were not run.
    """
    if not turns.records:
        return ()
    found = []
    if wait_ms:
        found.append(_other_wait(turns, budget_ms, wait_ms))
    ideals = (
        (
            "asr_infinite",
            "infinitely fast ASR",
            "At best: the turn detector keeps the time that it took beyond the transcript.",
            without_asr,
        ),
        (
            "tts_infinite",
            "infinitely fast TTS",
            "The first audio bytes come at once; leading silence and buffers stay.",
            without_tts,
        ),
        (
            "llm_infinite",
            "infinitely fast LLM",
            "The first clause is there with the request; what is left are the other stages.",
            without_llm,
        ),
    )
    found += [
        predict(code, words, note, turns, budget_ms, change(turns)) for code, words, note, change in ideals
    ]
    if donor is not None:
        name, others = donor
        words = f"LLM of {name.partition('/')[2] or name}"
        found.append(predict_with_llm_of(name, words, turns, others, budget_ms))
    found += [predict_with_published(model, turns, budget_ms) for model in published]
    return tuple(found)


@dataclass(frozen=True)
class Published:
    """A model by its published figures alone."""

    mode: str
    first_text_ms: float
    rate_tok_s: float
    assumed: bool
    """Is one of the figures ours, because nobody published it?"""


def predict_with_published(model: Published, turns: Turns, budget_ms: float) -> Prediction:
    """`turns` with a model that keeps its published figures and says what was said here; see `with_pace`."""
    name = model.mode.partition("/")[2] or model.mode
    figures = f"{model.first_text_ms:g} ms to the first text, {model.rate_tok_s:g} tokens/s"
    kind = "partly assumed" if model.assumed else "as published"
    return predict(
        "llm_published",
        f"LLM at the pace of {name}",
        f"{figures} ({kind}), with replies as they were here; the model itself was not asked.",
        turns,
        budget_ms,
        with_pace(turns, model.first_text_ms, model.rate_tok_s),
    )


def _other_wait(turns: Turns, budget_ms: float, wait_ms: float) -> Prediction:
    shorter = round(wait_ms * SHORTER_WAIT / 10) * 10
    found = predict(
        "vad_stop",
        f"endpointing wait {shorter:g} ms",
        f"In place of {wait_ms:g} ms, all later stages as they were. How many people it would cut off is not "
        "predicted.",
        turns,
        budget_ms,
        with_wait(turns, wait_ms, shorter),
    )
    seen = percentile(turns.took(Stage.ENDPOINTING)[turns.counted & turns.staged], 50)
    if found.reason is None and (seen is None or seen < WAIT_SEEN * wait_ms):
        reason = "cannot tell: endpointing is shorter than the configured wait"
        return replace(found, reason=reason, share=None, ci95=None, p50_ms=None)
    return found
