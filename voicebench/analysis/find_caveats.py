"""Looks over a mode's figures for what a reader must know beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from voicebench.analysis.caveats import LEAST_N_FOR_P95_BOUND, CaveatList
from voicebench.analysis.ledger import counts
from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.statistics import percentile
from voicebench.turns.records import Flag, TurnRecord
from voicebench.turns.second_opinion import WAVEFORM_TOLERANCE_MS, waveform_disagrees
from voicebench.turns.slot import BY_SYNTHESIS
from voicebench.turns.timeline import Anchor

FEW_SAMPLES = 5
"""Fewer samples than this say little about speech in general."""
COLD_MS, COLD_SHARE = 100.0, 0.2
"""A first turn is cold where it is longer than the median by both of these."""
OUTLIER_RANGES = 3.0
"""Beyond the upper quartile by so many interquartile ranges a turn is far out (Tukey, 1977)."""
LEAST_N_FOR_OUTLIERS = 10
SEVERAL_TOKENS = 1.5

_TOLD_OTHERWISE = "missing_"
"""Notes of a turn that begin so are counted together, as `missing_marks`."""


def find_mode_caveats(found: CaveatList, entry: ModeReport, records: Sequence[TurnRecord]) -> None:
    """Add the caveats of one entry, whose one record a turn are `records`."""
    counted = [record for record in records if counts(record)]
    latencies = [one.voice_to_voice_ms for one in counted if one.voice_to_voice_ms is not None]

    def add(code: str, count: int | None = None, detail: str = "") -> None:
        anchor = None if entry.anchor is None else entry.anchor.value
        found.add(code, count, detail=detail, mode=entry.mode, anchor=anchor)

    if entry.kind == "emulated":
        add("emulated", len(records))
    if any(headline.assumed for headline in entry.headlines.values()):
        add("assumed_speed")
    spoken = entry.anchor is not Anchor.NONE
    if spoken:
        _sample_size(add, entry, latencies)
        _first_turns(add, entry, counted)
        _strays(add, latencies)
    models = {record.model for record in records}
    if len(models) > 1:
        add("mixed_models", len(models))
    if spoken:
        _marks(add, entry, counted)
    if entry.tokens_per_delta is not None and entry.tokens_per_delta > SEVERAL_TOKENS:
        add("several_tokens_a_delta", None, f"{entry.tokens_per_delta:.1f}")
    for source, count in entry.speech_sources.items():
        if source != BY_SYNTHESIS:
            add("speech_assumed", count, source)
    for flag in Flag:
        if entry.flags[flag.value]:
            add(flag.value, entry.flags[flag.value])
    notes = Counter(note for record in records for note in set(record.caveats))
    for note, count in sorted(notes.items()):
        if not note.startswith(_TOLD_OTHERWISE):
            add(note, count)


class _Add(Protocol):
    """How the helpers below add a caveat of the entry: code, count, detail."""

    def __call__(self, code: str, count: int | None = None, detail: str = "") -> None: ...


def _sample_size(add: _Add, entry: ModeReport, latencies: Sequence[float]) -> None:
    if not latencies:
        add("no_turns")
        return
    if len(latencies) < LEAST_N_FOR_P95_BOUND:
        add("few_turns", len(latencies))
    if entry.samples < FEW_SAMPLES:
        add("few_samples", entry.samples)


def _first_turns(add: _Add, entry: ModeReport, counted: Sequence[TurnRecord]) -> None:
    """Was the first turn slower than the rest, in the warm-up or after it?"""
    median = entry.voice_to_voice.p50
    if median is None:
        return
    limit = median + max(COLD_MS, COLD_SHARE * median)
    if not entry.warmup:
        add("no_warm_up")
    elif entry.warmup[0] > limit:
        add("cold_first_turn", 1, f"{entry.warmup[0] - median:.0f}")
    first = min(counted, key=lambda record: record.turn).voice_to_voice_ms
    if first is not None and first > limit and first == entry.voice_to_voice.max:
        add("slow_first_turn", 1, f"{first - median:.0f}")


def _strays(add: _Add, latencies: Sequence[float]) -> None:
    if len(latencies) < LEAST_N_FOR_OUTLIERS:
        return
    low, high = percentile(latencies, 25), percentile(latencies, 75)
    if low is None or high is None:
        return
    beyond = sum(latency > high + OUTLIER_RANGES * (high - low) for latency in latencies)
    if beyond and high > low:
        add("outliers", beyond)


def _marks(add: _Add, entry: ModeReport, counted: Sequence[TurnRecord]) -> None:
    if entry.voice_to_voice.missing:
        add("no_latency", entry.voice_to_voice.missing)
    unmarked = sum(record.stages_ms is not None and None in record.stages_ms.values() for record in counted)
    if unmarked:
        add("missing_marks", unmarked)
    differing = sum(
        waveform_disagrees(
            record.voice_to_voice_ms,
            record.waveform_v2v_ms,
            record.waveform_certain,
            record.waveform_uncertainty_ms,
        )
        for record in counted
    )
    if differing:
        add("waveform_disagrees", differing, f"{WAVEFORM_TOLERANCE_MS:g}")
