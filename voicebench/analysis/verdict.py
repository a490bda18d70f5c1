"""The verdict: what a run's figures mean, in words, with no claim that its turns do not carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicebench.analysis.bottleneck import Bottleneck, bottleneck_of, bottleneck_words
from voicebench.analysis.changes import Turns, llm_ms
from voicebench.analysis.counterfactual import LEAST_N, Prediction, Published, predictions_of
from voicebench.analysis.ledger import Share
from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.report import Entry, Report
from voicebench.analysis.siblings import Faster
from voicebench.analysis.statistics import percentile
from voicebench.plan.modes import catalogue
from voicebench.turns.records import ModeKind, TurnRecord
from voicebench.turns.timeline import Anchor

DOABLE = ("vad_stop", "llm_of", "llm_published")
"""Predictions of what one can choose; an infinitely fast stage cannot be bought."""


@dataclass(frozen=True)
class Verdict:
    """What is to be said first. The sentences are whole; the other fields are what they rest on."""

    headline: str
    """Which modes make the budget, in what share [95 % interval]."""
    left: str
    """What the other stages leave the model."""
    bottleneck: str
    """The principal bottleneck, or that the turns do not tell."""
    faster_words: tuple[str, ...]
    """For each fast mode with its sibling in the run: whether it changes the outcome, and at what cost."""
    advice: str | None
    """The change that is predicted to win most; None where none is predicted to win anything."""
    bottlenecks: tuple[Bottleneck, ...]
    faster: tuple[Faster, ...]
    predictions: tuple[Prediction, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "headline": self.headline,
            "left": self.left,
            "bottleneck": self.bottleneck,
            "faster_words": list(self.faster_words),
            "advice": self.advice,
            "bottlenecks": [found.to_dict() for found in self.bottlenecks],
            "faster": [found.to_dict() for found in self.faster],
            "predictions": [found.to_dict() for found in self.predictions],
            "taken_for_granted": {found.words: found.note for found in self.predictions},
        }


def verdict_of(report: Report, records: Sequence[TurnRecord]) -> Verdict:
    """The verdict on a report and the records that it is made of, one a turn."""
    groups: dict[Entry, list[TurnRecord]] = {}
    for record in records:
        groups.setdefault((record.mode, record.anchor), []).append(record)
    turns = {entry: Turns(found) for entry, found in groups.items()}
    entries = [entry for entry in report.modes if (entry.mode, entry.anchor) in turns]
    bottlenecks = tuple(
        found for entry in entries if (found := bottleneck_of(turns[entry.mode, entry.anchor])) is not None
    )
    faster = report.worth
    wait_ms = configured_wait_ms(report)
    medians = _llm_medians(turns)
    not_run = _published(report)
    predictions = tuple(
        prediction
        for entry in entries
        for prediction in predictions_of(
            turns[entry.mode, entry.anchor],
            report.budget_ms,
            wait_ms,
            _donor(entry, medians, turns),
            not_run.get(entry.mode, ()),
        )
    )
    return Verdict(
        headline=headline(report),
        left=left_words(report),
        bottleneck=bottleneck_words(bottlenecks, wait_ms),
        faster_words=tuple(faster_words(found, report.budget_ms) for found in faster),
        advice=advice_of(predictions),
        bottlenecks=bottlenecks,
        faster=faster,
        predictions=predictions,
    )


def called(mode: str, kind: ModeKind | None, anchor: Anchor | None = None) -> str:
    """A mode's name in a sentence: `opus-4.6 (emulated)`; with the anchor where one is named."""
    name = mode.removeprefix(f"{kind}/") if kind in ("emulated", "local") else mode
    marks = [mark for mark in (kind if kind != "live" else None, anchor.value if anchor else None) if mark]
    return f"{name} ({', '.join(marks)})" if marks else name


def configured_wait_ms(report: Report) -> float | None:
    """The silence that the VAD is configured to wait for, in ms. None where the config does not say."""
    vad = report.run.config.get("vad")
    seconds = vad.get("stop_secs") if isinstance(vad, dict) else None
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
    return float(seconds) * 1000 if known and seconds is not None else None


def share_words(share: Share) -> str:
    """`70 % [58–80]`; below 10 turns the turns themselves, and that they are too few."""
    interval = share.ci95
    if interval is None or share.share is None:
        return "cannot tell: no turn"
    if share.n < LEAST_N:
        return f"{share.hit} of {share.n} turns, too few to tell"
    return f"{whole_percent(share.share)} % [{100 * interval[0]:.0f}–{100 * interval[1]:.0f}]"


def whole_percent(share: float) -> str:
    """A share in whole per cent, in which only none is 0 and only all is 100."""
    if 0 < share < 0.005:
        return "< 1"
    return "> 99" if 0.995 <= share < 1 else f"{100 * share:.0f}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def headline(report: Report) -> str:
    """Which modes make the budget, and how often: the best first."""
    budget = f"{report.budget_ms:g} ms"
    told = [entry for entry in report.modes if entry.budget.n]
    if not told:
        return f"Cannot tell whether {budget} are held: no turn with speech was run to its end."
    if not any(entry.voice_to_voice.n or entry.budget.hit for entry in told):
        turns = sum(entry.budget.n for entry in told)
        return f"No latency was measured: none of {turns} turns with speech gave one, so none held {budget}."
    several = len({entry.anchor for entry in report.modes}) > 1

    def name(entry: ModeReport) -> str:
        return called(entry.mode, entry.kind, entry.anchor if several else None)

    ranked = sorted(told, key=lambda entry: -(entry.budget.share or 0.0))
    every = [entry for entry in ranked if entry.budget.hit == entry.budget.n >= LEAST_N]
    never = [entry for entry in ranked if entry.budget.hit == 0 and entry.budget.n >= LEAST_N]
    parts = []
    if every:
        low = 100 * min(entry.budget.ci95[0] for entry in every if entry.budget.ci95)
        verb = "holds" if len(every) == 1 else "hold"
        parts.append(
            f"{_joined([name(one) for one in every])} {verb} {budget} in every turn [{low:.0f}–100 %]"
        )
    between = [entry for entry in ranked if entry not in every and entry not in never]
    if between:
        first, *rest = between
        parts.append(f"{name(first)} makes {'it' if every else budget} in {share_words(first.budget)}")
        parts += [f"{name(entry)} in {share_words(entry.budget)}" for entry in rest]
    if never:
        verb = (
            "never does" if parts and len(never) == 1 else "never do" if parts else f"never made {budget} in"
        )
        high = 100 * max(entry.budget.ci95[1] for entry in never if entry.budget.ci95)
        among = "" if parts else f" {sum(entry.budget.n for entry in never)} turns"
        parts.append(f"{_joined([name(one) for one in never])} {verb}{among} [0–{high:.0f} %]")
    return "; ".join(parts) + "."


def left_words(report: Report) -> str:
    """What listening and speaking leave the model of the budget."""
    if not report.residual_slot_ms:
        return "Cannot tell what the other stages leave the model: no turn shows what they take."
    slots = sorted(report.slots_ms)
    nominal = f"{slots[0]:g}–{slots[-1]:g}" if len(slots) > 1 else f"{slots[0]:g}" if slots else ""
    parts = []
    for anchor, slot in report.residual_slot_ms.items():
        where = f" (speech end {anchor.value})" if len(report.residual_slot_ms) > 1 else ""
        took = f"Listening and speaking take {report.budget_ms - slot:.0f} ms{where}"
        if slot <= 0:
            parts.append(f"{took}: they overrun the budget before any model has begun")
            continue
        inside = bool(slots) and slots[0] <= round(slot) <= slots[-1]
        beside = f", {'within the usual' if inside else 'not the usual'} {nominal}" if nominal else ""
        parts.append(f"{took}, so the model is left {slot:.0f} ms{beside}")
    return ". ".join(parts) + "."


def faster_words(found: Faster, budget_ms: float) -> str:
    """Whether a fast mode changes the outcome against its sibling, and what it costs."""
    names = f"{found.mode} against {found.sibling}"
    if found.points is None or found.saved_ms is None or found.points_ci95 is None:
        return f"{names}: cannot tell, {found.samples} samples in common, and it takes 6."
    low, high = found.points_ci95
    saved = "cannot tell whether it is sooner"
    if found.saves is not None:
        saved = f"{abs(found.saved_ms):.0f} ms {'sooner' if found.saves else 'later'}"
    points = f"{found.points:+.0f} points [{low:+.0f} to {high:+.0f}]"
    effect = f"{points} within {budget_ms:g} ms"
    if found.changes_outcome is None:
        effect = f"cannot tell whether it holds {budget_ms:g} ms more often ({points})"
    return f"{names}: {saved}, {effect}; {_price_words(found)}."


def _price_words(found: Faster) -> str:
    extra = found.extra_usd_per_1000
    if extra is None:
        return "what that costs cannot be told, as a price is not known"
    parts = [f"${abs(extra):.2f} {'more' if extra >= 0 else 'less'} per 1000 turns"]
    if found.usd_per_1000_per_ms is not None and extra > 0:
        parts.append(f"${found.usd_per_1000_per_ms:.3f} for each ms saved")
    if found.usd_per_1000_per_point is not None and extra > 0:
        parts.append(f"${found.usd_per_1000_per_point:.2f} for each point")
    return ", ".join(parts)


def _llm_medians(turns: Mapping[Entry, Turns]) -> dict[Entry, float]:
    """The median time that each entry's model takes to its first clause, in ms."""
    found = {}
    for entry, those in turns.items():
        times = llm_ms(those)
        median = percentile(times[those.counted & ~np.isnan(times)], 50)
        if median is not None:
            found[entry] = median
    return found


def _donor(
    entry: ModeReport, medians: Mapping[Entry, float], turns: Mapping[Entry, Turns]
) -> tuple[str, Turns] | None:
    """The other mode at the same anchor with the fastest model, by its median; None where none is faster."""
    same = [key for key in medians if key[1] == entry.anchor]
    best = min(same, key=lambda key: medians[key], default=None)
    return None if best is None or best[0] == entry.mode else (best[0], turns[best])


def _published(report: Report) -> dict[str, list[Published]]:
    """For each mode of the run its faster siblings in the catalogue that have figures and were not run."""
    run = {entry.mode for entry in report.modes}
    found: dict[str, list[Published]] = {}
    for mode in catalogue().values():
        if mode.sibling not in run or mode.id in run:
            continue
        rate, first = mode.decode_rate_tok_s, mode.ttft_ms
        if rate is not None and first is not None:
            model = Published(mode.id, first.value, rate.value, rate.assumed or first.assumed)
            found.setdefault(mode.sibling, []).append(model)
    return found


def advice_of(predictions: Sequence[Prediction]) -> str | None:
    """What is predicted to win most, for the mode that it would help most; None where nothing wins a point.

    An infinitely fast stage cannot be bought, so a shorter wait and another mode's model are told where they
    win anything; else the infinitely fast stage that wins most, as the one that is worth work.
    """
    wins = [
        (100 * (one.share - one.measured_share), one)
        for one in predictions
        if one.share is not None and one.measured_share is not None
    ]
    doable = [(win, one) for win, one in wins if one.code in DOABLE and win >= 1]
    best = max(doable or wins, key=lambda item: item[0], default=None)
    if best is None or best[0] < 1:
        return None
    mode, measured = best[1].mode, best[1].measured_share or 0.0
    told = [best[1]]
    told += [
        one for _, one in doable if one is not best[1] and (one.mode, one.anchor) == (mode, best[1].anchor)
    ]
    told.sort(key=lambda one: one.share or 0.0)
    parts = [f"with {_article(one)} to {whole_percent(one.share or 0.0)} %" for one in told]
    start = f"Predicted, not measured: {mode} would rise from {whole_percent(measured)} %"
    return f"{start}, {' and '.join(parts)}."


def _article(one: Prediction) -> str:
    if one.code == "vad_stop":
        return f"an {one.words.replace('wait', 'wait of')}"
    return f"{'the' if one.code in DOABLE else 'an'} {one.words}"
