"""All that is told of one mode at one anchor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.courses import Courses
from voicebench.analysis.ledger import (
    Ledger,
    Share,
    budget_share,
    cutoffs_of,
    flag_counts,
    ledger_of,
    left_out,
)
from voicebench.analysis.load_figures import LoadFigures, waited
from voicebench.analysis.quality import (
    Answers,
    WordErrors,
    answers_of,
    word_errors_by_condition,
    word_errors_of,
)
from voicebench.analysis.slot_figures import Headline, SlotFigures, Sweep, headline_of, slots_of, sweep_of
from voicebench.analysis.speculation import Speculation, speculation_of
from voicebench.analysis.statistics import (
    StageMeans,
    Summary,
    cluster_numbers,
    stage_means_near,
    summarize,
    upper_bound_p95,
)
from voicebench.clock import NS_PER_MS
from voicebench.turns.records import ModeKind, Outcome, TurnRecord
from voicebench.turns.run_folder import ModeFacts
from voicebench.turns.slot import WORDS_PER_MINUTE
from voicebench.turns.timeline import Anchor, Mark, Stage

Floats = NDArray[np.float64]

_STAGES = tuple(stage.value for stage in Stage)


@dataclass(frozen=True)
class ModeReport:
    """One entry of a report: a mode at one anchor. Durations in ms; see `report.json` for the plain form."""

    mode: str
    kind: ModeKind | None
    """None where the mode has neither a record nor facts."""
    model: str | None
    anchor: Anchor | None
    """None where no turn of the mode was run and the plan does not say."""
    asked: dict[str, Any]
    served: dict[str, int]
    """`field=value` as the provider said it, to the number of completed turns."""
    ledger: Ledger
    flags: dict[str, int]
    cutoffs: Share
    voice_to_voice: Summary
    p95_at_most: float | None
    """V2V's p95 is at most this, at 95 % confidence; None below n = 59."""
    budget: Share
    stages: dict[str, Summary]
    near_p50: StageMeans | None
    near_p95: StageMeans | None
    work: dict[str, Summary]
    ttft: Summary
    """From the request to the first token of any kind."""
    ttfat: Summary
    """From the request to the first visible character of the answer."""
    slots: tuple[SlotFigures, ...]
    headlines: dict[str, Headline]
    sweeps: tuple[Sweep, ...]
    decode_rate: Summary
    """Tokens a second."""
    gaps: Summary
    """Time between successive deltas. n counts gaps; missing and excluded count turns."""
    tokens_per_delta: float | None
    token_counts: dict[str, int]
    """How the tokens were counted, to the number of replies."""
    speech_sources: dict[str, int]
    wer: WordErrors
    wer_by_condition: dict[str, WordErrors]
    answers: Answers
    usd_per_turn: Summary
    usd_total: float | None
    speculation: Speculation
    lag: Summary
    load: LoadFigures
    """Without any figure where the run had no schedule."""
    waveform_difference: Summary
    """V2V found in the recording less V2V by the marks."""
    pipecat: dict[str, Summary]
    samples: int
    """Different samples behind V2V."""
    warmup: tuple[float, ...]
    """V2V of the warm-up turns, in order; in no other figure."""
    cold_ttfat: Summary
    """First text of the requests apart from the measured ones that opened a connection."""
    cold_connect: Summary
    """How long opening it took them, in ms."""


class _Counted:
    """The turns of an entry that count, and the summaries over them."""

    def __init__(self, records: Sequence[TurnRecord]) -> None:
        completed = [record for record in records if record.outcome is Outcome.COMPLETED]
        self.records = [record for record in completed if not left_out(record)]
        self.excluded = len(completed) - len(self.records)
        self.samples = cluster_numbers(record.sample for record in self.records)

    def over(self, value: Callable[[TurnRecord], float | None]) -> Summary:
        """The summary of one value a turn; a turn without it is missing."""
        return self.of(np.array([value(record) for record in self.records], dtype=np.float64))

    def of(self, values: Floats) -> Summary:
        """The summary of one value a turn, NaN where it has none."""
        there = ~np.isnan(values)
        found = values[there]
        return summarize(found, values.size - found.size, self.excluded, self.samples[there])

    def by_name(self, values: Callable[[TurnRecord], dict[str, float]]) -> dict[str, Summary]:
        """The summary of each named value, in the order of appearance."""
        told = [values(record) for record in self.records]
        names = dict.fromkeys(name for found in told for name in found)
        return {
            name: self.of(np.array([found.get(name) for found in told], dtype=np.float64)) for name in names
        }

    def stages(self) -> Floats:
        """The stages in ms: a row a turn, a column a stage, NaN where there is none."""
        nothing: dict[str, float | None] = {}
        parts = [
            [told.get(stage) for stage in _STAGES]
            for told in (record.stages_ms or nothing for record in self.records)
        ]
        return np.array(parts, dtype=np.float64).reshape(-1, len(_STAGES))


def build_mode(
    mode: str,
    anchor: Anchor | None,
    records: Sequence[TurnRecord],
    *,
    facts: ModeFacts,
    warmup: Iterable[TurnRecord] = (),
    not_run: int = 0,
    budget_ms: float,
    slots_ms: Sequence[float],
    stack_ms: float | None,
    words_per_minute: float = WORDS_PER_MINUTE,
) -> ModeReport:
    """The entry over `records`: one a turn, all of one mode and anchor.

    `not_run` counts planned turns without a record; `stack_ms` is what the stack leaves any mode.
    """
    counted = _Counted(records)
    apart = list(warmup)
    cold = [record for record in apart if record.new_connection and record.outcome is Outcome.COMPLETED]
    first = records[0] if records else None
    kind = first.mode_kind if first else facts.kind
    v2v = counted.over(lambda record: record.voice_to_voice_ms)
    latencies = [one.voice_to_voice_ms for one in counted.records if one.voice_to_voice_ms is not None]
    stages = counted.stages()
    courses = Courses(counted.records, words_per_minute)
    silent = len(counted.records) - len(courses)
    samples = counted.samples[courses.places]
    rates = courses.decode_rate_tok_s()
    paced = ~np.isnan(rates)
    rate = summarize(rates[paced], silent + int((~paced).sum()), counted.excluded, samples[paced])
    gaps, reply = courses.gaps_ns()
    bills = [record.usd for record in records if record.usd is not None]
    return ModeReport(
        mode=mode,
        kind=kind,
        model=first.model if first else facts.model,
        anchor=anchor,
        asked=next((record.asked for record in records if record.asked), facts.asked),
        served=_served(records),
        ledger=ledger_of(records, not_run),
        flags=flag_counts(records),
        cutoffs=cutoffs_of(records),
        voice_to_voice=v2v,
        p95_at_most=upper_bound_p95(latencies),
        budget=budget_share(records, budget_ms),
        stages={name: counted.of(stages[:, place]) for place, name in enumerate(_STAGES)},
        near_p50=_stage_means(counted.records, stages, 50),
        near_p95=_stage_means(counted.records, stages, 95),
        work=counted.by_name(lambda record: record.work_ms),
        ttft=counted.over(partial(_between, Mark.LLM_REQUEST, Mark.LLM_FIRST_TOKEN)),
        ttfat=counted.over(partial(_between, Mark.LLM_REQUEST, Mark.LLM_FIRST_TEXT)),
        slots=slots_of(courses, samples, slots_ms, budget_ms, stack_ms, silent, counted.excluded),
        headlines={
            f"{slot_ms:g}": headline_of(
                slot_ms, rate.p50, facts.published_decode_tok_s, facts.published_source, facts.assumed
            )
            for slot_ms in slots_ms
        },
        sweeps=tuple(sweep_of(courses, slot_ms) for slot_ms in slots_ms),
        decode_rate=rate,
        gaps=summarize(gaps / NS_PER_MS, silent + courses.without_gaps(), counted.excluded, samples[reply]),
        tokens_per_delta=courses.tokens / courses.deltas if courses.deltas else None,
        token_counts=dict(Counter(record.token_count for record in counted.records if record.token_count)),
        speech_sources=courses.speech_sources(),
        wer=word_errors_of(records),
        wer_by_condition=word_errors_by_condition(records),
        answers=answers_of(records, kind),
        usd_per_turn=counted.over(lambda record: record.usd),
        usd_total=sum(bills) if bills else None,
        speculation=speculation_of(records),
        lag=counted.over(lambda record: record.lag_ms),
        load=LoadFigures(
            queue=counted.over(lambda record: record.queue_ms),
            service=counted.over(lambda record: record.service_ms),
            from_schedule=counted.over(lambda record: record.from_schedule_ms),
            waited=sum(map(waited, records)),
        ),
        waveform_difference=counted.over(waveform_difference),
        pipecat=counted.by_name(lambda record: record.pipecat_ms),
        samples=len({record.sample for record in counted.records if record.voice_to_voice_ms is not None}),
        warmup=tuple(
            record.voice_to_voice_ms
            for record in apart
            if record.outcome is Outcome.COMPLETED and record.voice_to_voice_ms is not None
        ),
        cold_ttfat=_over(cold, partial(_between, Mark.LLM_REQUEST, Mark.LLM_FIRST_TEXT)),
        cold_connect=_over(cold, lambda record: record.connect_ms),
    )


def _over(records: Sequence[TurnRecord], value: Callable[[TurnRecord], float | None]) -> Summary:
    """The summary of one value over records that stand apart from the measured ones."""
    found = [one for record in records if (one := value(record)) is not None]
    return summarize(found, len(records) - len(found))


def _between(begin: Mark, end: Mark, record: TurnRecord) -> float | None:
    first, last = record.marks_ns.get(begin), record.marks_ns.get(end)
    return None if first is None or last is None else (last - first) / NS_PER_MS


def waveform_difference(record: TurnRecord) -> float | None:
    """Over recordings whose edges the analyser trusts, or says nothing of."""
    if record.waveform_v2v_ms is None or record.voice_to_voice_ms is None:
        return None
    if record.waveform_certain is False:
        return None
    return record.waveform_v2v_ms - record.voice_to_voice_ms


def _stage_means(records: Sequence[TurnRecord], stages: Floats, percent: float) -> StageMeans | None:
    """The means of the stages near a percentile; one without its mark is 0, as its time is in the next."""
    staged = [record.voice_to_voice_ms is not None and record.stages_ms is not None for record in records]
    totals = np.array([record.voice_to_voice_ms for record in records], dtype=np.float64)[staged]
    parts = np.nan_to_num(stages[staged])
    return stage_means_near(totals, dict(zip(_STAGES, parts.T, strict=True)), percent)


def _served(records: Iterable[TurnRecord]) -> dict[str, int]:
    """What the provider said it served: `field=value` to the number of completed turns."""
    return dict(
        Counter(
            f"{field}={value}"
            for record in records
            if record.outcome is Outcome.COMPLETED
            for field, value in record.served.items()
        )
    )
