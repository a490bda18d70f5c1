"""Voice-to-voice latency with one part of the turn changed: one formula each, over all turns of a mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voicebench.analysis.ledger import counts, holds_speech, was_cut_off
from voicebench.clock import NS_PER_MS
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.slot import llm_span_ns
from voicebench.turns.timeline import LLM_STAGES, Stage

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


class Turns:
    """One mode's records, one a turn, as columns: times in ms, NaN where there is none."""

    def __init__(self, records: Sequence[TurnRecord]) -> None:
        self.records = records
        self.v2v = _column([record.voice_to_voice_ms for record in records])
        nothing: dict[str, float | None] = {}
        stages = [record.stages_ms or nothing for record in records]
        self.staged: Truths = np.array([record.stages_ms is not None for record in records], dtype=bool)
        self.staged &= ~np.isnan(self.v2v)
        self.parts = {stage: _column([told.get(stage) for told in stages]) for stage in Stage}
        self.turn_model = np.array([record.work_ms.get("turn_model", 0.0) for record in records])
        self.held: Truths = np.array([in_share(record) for record in records], dtype=bool)
        """Among those that a budget share is over?"""
        self.answered: Truths = np.array(
            [record.outcome is Outcome.COMPLETED and not was_cut_off(record) for record in records],
            dtype=bool,
        )
        self.counted: Truths = np.array([counts(record) for record in records], dtype=bool)
        self.counted &= ~np.isnan(self.v2v)

    def took(self, stage: Stage) -> Floats:
        """The time of a stage, 0 where it has no mark: its time is in the next one then."""
        return np.nan_to_num(self.parts[stage])

    def told_by(self, values: Floats, *stages: Stage) -> Floats:
        """The values, NaN for turns without stages and for those where one of `stages` has no mark."""
        known = self.staged.copy()
        for stage in stages:
            known &= ~np.isnan(self.parts[stage])
        return np.where(known, values, np.nan)


def _column(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)


def without_llm(turns: Turns) -> Floats:
    """V2V less `llm_ttfat` and `clause`, in ms: a model whose first clause is there at once.

    NaN without stages, and where the request or the clause left no mark: see `slot.llm_span_ns`.
    """
    rest = turns.v2v - sum(turns.took(stage) for stage in LLM_STAGES)
    return turns.told_by(rest, Stage.DISPATCH, Stage.CLAUSE)


def without_asr(turns: Turns) -> Floats:
    """V2V in ms with a transcript there at once.

    The turn detector worked beside the recogniser: where the record tells its `turn_model` work, `asr` and
    `turn` together shrink to no less than that, else to no less than `turn`. NaN without stages.
    """
    asr, turn = turns.took(Stage.ASR), turns.took(Stage.TURN)
    least = np.maximum(turn, np.minimum(asr + turn, turns.turn_model))
    return turns.told_by(turns.v2v - (asr + turn - least), Stage.ASR)


def without_tts(turns: Turns) -> Floats:
    """V2V less `tts`, in ms: the first audio bytes there at once; silence ahead of the voice stays."""
    return turns.told_by(turns.v2v - turns.took(Stage.TTS), Stage.TTS)


def with_wait(turns: Turns, configured_ms: float, wait_ms: float) -> Floats:
    """V2V in ms with `wait_ms` of silence in place of the configured wait, all later stages as they were.

    Endpointing shrinks to no less than 0. NaN without stages or where endpointing has no mark.
    """
    endpointing = turns.took(Stage.ENDPOINTING)
    then = np.maximum(0.0, endpointing + wait_ms - configured_ms)
    return turns.told_by(turns.v2v - endpointing + then, Stage.ENDPOINTING)


def with_pace(turns: Turns, first_text_ms: float, rate_tok_s: float) -> Floats:
    """V2V in ms with a model of another pace: its first text after `first_text_ms`, then `rate_tok_s`.

    The first clause is there once the tokens that it took here have come at that rate; what the turn then
    waited for beyond its last delta, and all other stages, stay. NaN where `without_llm` is, and where no
    delta came before the clause went to synthesis.
    """
    rest = without_llm(turns)
    found = np.full(rest.size, np.nan)
    for place in np.flatnonzero(~np.isnan(rest)).tolist():
        record = turns.records[place]
        span = llm_span_ns(record)
        deltas = [] if span is None else [delta for delta in record.deltas if delta[0] <= span]
        if span is not None and deltas:
            flow_ms = 1000 * sum(tokens for _, _, tokens in deltas[1:]) / rate_tok_s
            beyond_ms = (span - max(0, deltas[-1][0])) / NS_PER_MS
            found[place] = rest[place] + first_text_ms + flow_ms + beyond_ms
    return found


def in_share(record: TurnRecord) -> bool:
    """Is the turn among those that a budget share is over? See `ledger.budget_share`."""
    return (
        holds_speech(record)
        and record.outcome is not Outcome.INTERRUPTED
        and Flag.ASKED_NOT_SERVED not in record.flags
    )


def llm_ms(turns: Turns) -> Floats:
    """`llm_ttfat` and `clause` of each turn, in ms. NaN where they cannot be told from the rest."""
    return turns.v2v - without_llm(turns)
