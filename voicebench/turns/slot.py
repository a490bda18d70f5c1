"""The LLM slot: what a reply had delivered by a deadline, from the instants of its text deltas.

The slot starts at the end of the `dispatch` stage: at the request, or at the turn's end where the request was
made ahead of it. Pure functions of one record; deadlines and instants are integer ns from the slot's start.
"""

from __future__ import annotations

import re
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.turns.records import TurnRecord
from voicebench.turns.timeline import Mark, Timeline

WORDS_PER_MINUTE = 150.0
"""Stated pace of speech where synthesis did not speak the whole reply: a usual figure for English."""

TTFT_SWEEP_MS = (50, 100, 150, 200, 250, 300, 350, 400, 500, 600, 700, 800, 900, 1000)
"""Assumed times to the first token over which delivered tokens are told."""

BY_SYNTHESIS = "speech synthesis, by characters"

_WORD = re.compile(r"(?<!\S)(?:[^\w\s]|_)*[^\W_]\S*")
"""A piece between white space that holds a letter or a digit."""
_LISTENING = (Mark.VAD_STOP, Mark.TRANSCRIPT_FINAL, Mark.TURN_END)
"""The marks before the request at which stages end."""
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+")
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "st", "prof"})


def timeline_of(record: TurnRecord) -> Timeline:
    """The record's marks; one that only a newer version knows is passed over."""
    return Timeline({mark: record.marks_ns[mark] for mark in Mark if mark in record.marks_ns})


@dataclass(frozen=True)
class Delivered:
    """What had come of a reply by a deadline."""

    tokens: float
    """May be fractional, where the provider's count was shared out over the deltas."""
    characters: int
    words: int | None
    """Complete words; None where the text was left out."""
    sentences: int | None
    """Complete sentences; None where the text was left out."""
    speech_s: float | None
    """Seconds of speech in the delivered text; None where the text was left out and nothing was spoken."""


class Delivery:
    """The course of one reply: asked for one deadline after another. Only for a record with deltas.

    `speech_source` says where seconds of speech come from: what synthesis made of this reply, or of the part
    of it that it spoke, scaled by characters; else the stated `words_per_minute`.
    """

    def __init__(self, record: TurnRecord, words_per_minute: float = WORDS_PER_MINUTE) -> None:
        deltas = sorted(record.deltas, key=lambda delta: delta[0])
        self._instants = [at for at, _, _ in deltas]
        self._characters = [0, *accumulate(count for _, count, _ in deltas)]
        self._tokens = [0.0, *accumulate(count for _, _, count in deltas)]
        self._reply = record.reply
        self._words = None if record.reply is None else word_ends(record.reply)
        self._sentences = None if record.reply is None else sentence_ends(record.reply)
        self._pace = words_per_minute
        self._s_per_character = spoken_pace(record)
        self.speech_source = (
            BY_SYNTHESIS if self._s_per_character is not None else f"{words_per_minute:g} words a minute"
        )

    def by(self, deadline_ns: int) -> Delivered:
        """What had come by `deadline_ns`; nothing where that lies before the slot's start."""
        count = bisect_right(self._instants, deadline_ns) if deadline_ns >= 0 else 0
        characters, total = self._characters[count], self._characters[-1]
        words = sentences = speech_s = None
        if self._reply is not None and self._words is not None and self._sentences is not None:
            cut = len(self._reply) if count and characters >= total else characters
            words, sentences = bisect_right(self._words, cut), bisect_right(self._sentences, cut)
        if self._s_per_character is not None:
            speech_s = self._s_per_character * characters
        elif words is not None:
            speech_s = words * 60 / self._pace
        return Delivered(self._tokens[count], characters, words, sentences, speech_s)


def spoken_pace(record: TurnRecord) -> float | None:
    """Seconds of speech a character, by this reply's own synthesis; None where it spoke nothing of it."""
    if record.speech_s is None or record.reply is None:
        return None
    spoken = record.reply if record.heard == "reply" and record.spoken is None else record.spoken
    return record.speech_s / len(spoken) if spoken else None


def word_ends(text: str) -> list[int]:
    """Where the words of `text` end: pieces between white space that hold a letter or a digit."""
    return [found.end() for found in _WORD.finditer(text)]


def sentence_ends(text: str) -> list[int]:
    """Where the sentences of `text` end: after . ! ? or their like, and the quotes and brackets behind.

    A full stop ends none after a title such as Dr., or where a small letter follows (at 9 a.m. on Monday).
    A last piece without a closing mark is no complete sentence.
    """
    ends = []
    for found in _SENTENCE_END.finditer(text):
        if found.group().startswith("."):
            before = text[max(0, found.start() - 12) : found.start()].split()
            after = text[found.end() : found.end() + 8].lstrip()
            if (before and before[-1].lower() in _TITLES) or after[:1].islower():
                continue
        ends.append(found.end())
    return ends


def delivered(
    record: TurnRecord, deadline_ns: int, words_per_minute: float = WORDS_PER_MINUTE
) -> Delivered | None:
    """What had come of the reply by `deadline_ns`. None for a record without deltas.

    For several deadlines make one `Delivery` and ask it.
    """
    return Delivery(record, words_per_minute).by(deadline_ns) if record.deltas else None


def llm_span_ns(record: TurnRecord) -> int | None:
    """The stages of the language model, `llm_ttfat` and `clause`, in ns: the sum that the timeline tells.

    None where V2V is missing or negative, or where the request or the clause left no mark: the model's part
    cannot be told from the rest then.
    """
    marks = record.marks_ns
    begin, end = marks.get(Mark.SPEECH_END), marks.get(Mark.FIRST_AUDIBLE)
    request, clause = marks.get(Mark.LLM_REQUEST), marks.get(Mark.TTS_REQUEST)
    if begin is None or end is None or end < begin or request is None or clause is None:
        return None
    # The boundaries of stages are running maxima, held at the first sound.
    dispatched = max(begin, request, *(at for mark in _LISTENING if (at := marks.get(mark)) is not None))
    spoken = max(dispatched, clause, marks.get(Mark.LLM_FIRST_TEXT, clause))
    return min(spoken, end) - min(dispatched, end)


def non_llm_ns(record: TurnRecord) -> int | None:
    """V2V less the stages of the language model, in ns. None where `llm_span_ns` is."""
    span = llm_span_ns(record)
    if span is None:
        return None
    return record.marks_ns[Mark.FIRST_AUDIBLE] - record.marks_ns[Mark.SPEECH_END] - span


def residual_slot_ns(record: TurnRecord, budget_ms: float) -> int | None:
    """What this turn left the language model of the budget, in ns: budget - (V2V - llm_ttfat - clause).

    Negative where the rest alone overran the budget. None where `non_llm_ns` is. The turn's first clause is
    ready within its own residual slot exactly where V2V <= budget.
    """
    rest = non_llm_ns(record)
    return None if rest is None else round(budget_ms * NS_PER_MS) - rest


def stack_residual_ms(records: Iterable[TurnRecord], budget_ms: float) -> float | None:
    """What the stack leaves any language model: budget less the median of the non-LLM stages, in ms.

    Over all turns of the stack that are in the statistics, whatever their mode, so that it is one number for
    all modes compared. None where no turn has it.
    """
    rests = [rest for record in records if record.measured and (rest := non_llm_ns(record)) is not None]
    return budget_ms - statistics.median(rests) / NS_PER_MS if rests else None


def clause_instant_ns(record: TurnRecord) -> int | None:
    """When the first speakable clause was ready, in ns from the slot's start, at the earliest 0.

    That is the `tts_request` mark, clipped to the turn as its stages are. Where there is none (no speech
    synthesis in the run), what the record says of the clause. None: it never was ready.
    """
    span = llm_span_ns(record)
    if span is not None:
        return span
    marks = timeline_of(record)
    request, start = marks.at(Mark.TTS_REQUEST), marks.slot_start_ns
    if request is not None and start is not None:
        return max(0, request - start)
    return None if record.clause_ready_ns is None else max(0, record.clause_ready_ns)


def clause_ready(record: TurnRecord, deadline_ns: int) -> bool:
    """Was the first speakable clause ready by `deadline_ns`?"""
    instant = clause_instant_ns(record)
    return instant is not None and instant <= deadline_ns


def ended_by(record: TurnRecord, deadline_ns: int) -> bool:
    """Had the reply ended by itself by `deadline_ns`?"""
    end = record.reply_end_ns
    return end is not None and deadline_ns >= 0 and end <= deadline_ns


def decode_rate_tok_s(record: TurnRecord) -> float | None:
    """Visible tokens a second once text flows: (tokens - those of the first delta) / (last - first delta).

    None for fewer than two deltas, or where all came at one instant.
    """
    if len(record.deltas) < 2:
        return None
    span = record.deltas[-1][0] - record.deltas[0][0]
    tokens = sum(count for _, _, count in record.deltas[1:])
    return tokens * NS_PER_S / span if span > 0 else None


def delta_gaps_ns(record: TurnRecord) -> list[int]:
    """The time between successive text deltas, in ns: inter-token latency as it arrives, stalls included.

    A delta may carry several tokens; the gap is not divided among them. Empty for fewer than two deltas.
    """
    return [later[0] - earlier[0] for earlier, later in pairwise(record.deltas)]


def headline_tokens(rate_tok_s: float, slot_ms: float) -> float:
    """Decode rate times slot: what is often quoted. It ignores the wait for the first token."""
    return rate_tok_s * slot_ms / 1000


def tokens_if_first_at(
    record: TurnRecord, slot_ms: float, first_ms: Sequence[float] = TTFT_SWEEP_MS
) -> tuple[float, ...] | None:
    """Tokens delivered by the slot's end had the first text come at each of `first_ms`, the rest as measured.

    The stream keeps its own pace and stalls and is only moved. None for a record without deltas.
    """
    if not record.deltas:
        return None
    begin = record.deltas[0][0]
    instants = [at - begin for at, _, _ in record.deltas]
    tokens = [0.0, *accumulate(count for _, _, count in record.deltas)]
    return tuple(
        tokens[bisect_right(instants, round((slot_ms - first) * NS_PER_MS))] if first <= slot_ms else 0.0
        for first in first_ms
    )
