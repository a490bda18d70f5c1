"""What a turn would have been with one part changed: predictions from measured stages, never measurements.

Each prediction takes a mode's own turns and changes one stage of each. What it cannot know is said with it,
and where too many turns do not tell, its share is empty with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.ledger import counts, holds_speech, was_cut_off
from voicebench.analysis.statistics import percentile, wilson
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.timeline import LLM_STAGES, Anchor, Stage

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

Change = Callable[[TurnRecord], float | None]
"""A turn's voice-to-voice latency in ms with something changed; None where the turn does not tell."""


@dataclass(frozen=True)
class Prediction:
    """One change, on the turns of one mode and anchor. Predicted, not measured."""

    code: str
    """`llm_infinite`, `asr_infinite`, `tts_infinite`, `vad_stop` or `llm_of`."""
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


def without_llm(record: TurnRecord) -> float | None:
    """V2V less `llm_ttfat` and `clause`, in ms: a model whose first clause is there at once.

    None without stages, and where the request or the clause left no mark: see `slot.non_llm_ns`.
    """
    if record.stages_ms is None or record.voice_to_voice_ms is None:
        return None
    parts = record.stages_ms
    if parts.get(Stage.DISPATCH.value) is None or parts.get(Stage.CLAUSE.value) is None:
        return None
    return record.voice_to_voice_ms - sum(parts.get(stage.value) or 0.0 for stage in LLM_STAGES)


def without_asr(record: TurnRecord) -> float | None:
    """V2V in ms with a transcript there at once.

    The turn detector worked beside the recogniser: where the record tells its `turn_model` work, `asr` and
    `turn` together shrink to no less than that, else to no less than `turn`. None without stages.
    """
    if record.stages_ms is None or record.voice_to_voice_ms is None:
        return None
    asr, turn = record.stages_ms.get(Stage.ASR.value), record.stages_ms.get(Stage.TURN.value) or 0.0
    if asr is None:
        return None
    least = max(turn, min(asr + turn, record.work_ms.get("turn_model", 0.0)))
    return record.voice_to_voice_ms - (asr + turn - least)


def without_tts(record: TurnRecord) -> float | None:
    """V2V less `tts`, in ms: the first audio bytes there at once; silence ahead of the voice stays."""
    if record.stages_ms is None or record.voice_to_voice_ms is None:
        return None
    tts = record.stages_ms.get(Stage.TTS.value)
    return None if tts is None else record.voice_to_voice_ms - tts


def with_wait(record: TurnRecord, configured_ms: float, wait_ms: float) -> float | None:
    """V2V in ms with `wait_ms` of silence in place of the configured wait, all later stages as they were.

    Endpointing shrinks to no less than 0. None without stages or where endpointing has no mark.
    """
    if record.stages_ms is None or record.voice_to_voice_ms is None:
        return None
    endpointing = record.stages_ms.get(Stage.ENDPOINTING.value)
    if endpointing is None:
        return None
    return record.voice_to_voice_ms - endpointing + max(0.0, endpointing + wait_ms - configured_ms)


def in_share(record: TurnRecord) -> bool:
    """Is the turn among those that a budget share is over? See `ledger.budget_share`."""
    return (
        holds_speech(record)
        and record.outcome is not Outcome.INTERRUPTED
        and Flag.ASKED_NOT_SERVED not in record.flags
    )


def llm_ms(record: TurnRecord) -> float | None:
    """`llm_ttfat` and `clause` of a turn, in ms. None where they cannot be told from the rest."""
    rest = without_llm(record)
    return None if rest is None or record.voice_to_voice_ms is None else record.voice_to_voice_ms - rest


def predict(
    code: str,
    words: str,
    note: str,
    records: Sequence[TurnRecord],
    budget_ms: float,
    change: Change,
) -> Prediction:
    """The prediction of `change` over one mode's records, one a turn, at least one.

    Failed turns and cutoffs stay misses; a turn that does not tell stays as measured and is counted.
    """
    held = [record for record in records if in_share(record)]
    hits = measured = unknown = 0
    for record in held:
        if record.outcome is not Outcome.COMPLETED or was_cut_off(record):
            continue
        now = record.voice_to_voice_ms
        then = change(record)
        unknown += then is None
        measured += now is not None and now <= budget_ms
        latency = now if then is None else then
        hits += latency is not None and latency <= budget_ms
    counted = [record for record in records if counts(record) and record.voice_to_voice_ms is not None]
    changed = [one for record in counted if (one := change(record)) is not None]
    reason = _reason(len(held), unknown)
    n = len(held)
    return Prediction(
        code=code,
        words=words,
        mode=records[0].mode,
        anchor=records[0].anchor,
        p50_ms=None if reason else percentile(changed, 50),
        share=None if reason else hits / n,
        ci95=None if reason else wilson(hits, n),
        n=n,
        unknown=unknown,
        measured_p50_ms=percentile([record.voice_to_voice_ms or 0.0 for record in counted], 50),
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


def predict_with_llm_of(
    donor: str, words: str, records: Sequence[TurnRecord], others: Sequence[TurnRecord], budget_ms: float
) -> Prediction:
    """`records` with the model times of the mode `donor` (`others`) on the same samples.

    Each turn keeps its other stages and gets in turn every `llm_ttfat + clause` that the other mode showed on
    that sample, each as likely. Its chance to hold the budget counts as its part of a hit; the interval is
    Wilson's for the nearest whole number of hits. A sample that the other mode never answered tells nothing.
    """
    times: dict[str, list[float]] = {}
    for other in others:
        if counts(other) and (found := llm_ms(other)) is not None:
            times.setdefault(other.sample, []).append(found)
    drawn = {sample: _thinned(found) for sample, found in times.items()}
    note = f"On each sample, the times of {donor} there; the other stages as they were."
    base = predict("llm_of", words, note, records, budget_ms, lambda record: _mean(record, drawn))
    if base.reason is not None:
        return base
    hits = 0.0
    for record in records:
        if not in_share(record) or record.outcome is not Outcome.COMPLETED or was_cut_off(record):
            continue
        rest = without_llm(record)
        if rest is None or record.sample not in drawn:
            hits += record.voice_to_voice_ms is not None and record.voice_to_voice_ms <= budget_ms
        else:
            hits += float(np.mean(drawn[record.sample] + rest <= budget_ms))
    share = min(1.0, hits / base.n)
    return replace(
        base,
        share=share,
        ci95=wilson(min(base.n, round(hits)), base.n),
        p50_ms=_mixture_median(records, drawn),
    )


def _thinned(values: Sequence[float]) -> NDArray[np.float64]:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered.size <= MOST_DRAWN:
        return ordered
    return np.percentile(ordered, (np.arange(MOST_DRAWN) + 0.5) * 100 / MOST_DRAWN)


def _mean(record: TurnRecord, drawn: dict[str, NDArray[np.float64]]) -> float | None:
    rest = without_llm(record)
    return None if rest is None or record.sample not in drawn else rest + float(drawn[record.sample].mean())


def _mixture_median(records: Sequence[TurnRecord], drawn: dict[str, NDArray[np.float64]]) -> float | None:
    """The median over all pairs of a turn and a time of the other model, each turn weighing the same."""
    values, weights = [], []
    for record in records:
        rest = without_llm(record)
        if counts(record) and rest is not None and record.sample in drawn:
            times = drawn[record.sample]
            values.append(times + rest)
            weights.append(np.full(times.size, 1 / times.size))
    if not values:
        return None
    every, weight = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(every, kind="stable")
    reached = np.cumsum(weight[order])
    return float(every[order][int(np.searchsorted(reached, reached[-1] / 2))])


def predictions_of(
    records: Sequence[TurnRecord],
    budget_ms: float,
    wait_ms: float | None,
    donor: tuple[str, Sequence[TurnRecord]] | None,
) -> tuple[Prediction, ...]:
    """All predictions for one mode's records, one a turn. Empty for no records.

    `wait_ms` is the configured endpointing wait, None where the config names none; `donor` another mode's
    name and records.
    """
    if not records:
        return ()
    found = []
    if wait_ms:
        found.append(_other_wait(records, budget_ms, wait_ms))
    found += [
        predict(
            "asr_infinite",
            "infinitely fast ASR",
            "At best: the turn detector keeps the time that it took beyond the transcript.",
            records,
            budget_ms,
            without_asr,
        ),
        predict(
            "tts_infinite",
            "infinitely fast TTS",
            "The first audio bytes come at once; leading silence and buffers stay.",
            records,
            budget_ms,
            without_tts,
        ),
        predict(
            "llm_infinite",
            "infinitely fast LLM",
            "The first clause is there with the request; what is left are the other stages.",
            records,
            budget_ms,
            without_llm,
        ),
    ]
    if donor is not None:
        name, others = donor
        words = f"LLM of {name.partition('/')[2] or name}"
        found.append(predict_with_llm_of(name, words, records, others, budget_ms))
    return tuple(found)


def _other_wait(records: Sequence[TurnRecord], budget_ms: float, wait_ms: float) -> Prediction:
    shorter = round(wait_ms * SHORTER_WAIT / 10) * 10
    found = predict(
        "vad_stop",
        f"endpointing wait {shorter:g} ms",
        f"In place of {wait_ms:g} ms, all later stages as they were. How many people it would cut off is not "
        "predicted.",
        records,
        budget_ms,
        lambda record: with_wait(record, wait_ms, shorter),
    )
    seen = percentile(
        [
            record.stages_ms.get(Stage.ENDPOINTING.value) or 0.0
            for record in records
            if counts(record) and record.stages_ms is not None
        ],
        50,
    )
    if found.reason is None and (seen is None or seen < WAIT_SEEN * wait_ms):
        reason = "cannot tell: endpointing is shorter than the configured wait"
        return replace(found, reason=reason, share=None, ci95=None, p50_ms=None)
    return found
