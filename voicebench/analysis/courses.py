"""The replies of one mode over time, as columns: what each had delivered by any deadline, for all at once.

The figures of a single reply are defined in `turns/slot.py`; these are the same ones over many.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.clock import NS_PER_S
from voicebench.turns.records import TurnRecord
from voicebench.turns.slot import (
    BY_SYNTHESIS,
    WORDS_PER_MINUTE,
    clause_instant_ns,
    llm_span_ns,
    sentence_ends,
    spoken_pace,
    word_ends,
)
from voicebench.turns.timeline import Mark

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

CELLS = 1 << 20
"""So many deltas are laid out side by side at a time."""


@dataclass(frozen=True)
class Reached:
    """What had come of each reply by one deadline each; NaN where a figure does not exist."""

    tokens: Floats
    characters: Floats
    words: Floats
    sentences: Floats
    speech_s: Floats


@dataclass(frozen=True)
class _Block:
    """Some replies, a row each, in the order of arrival."""

    rows: Numbers
    at_ns: Floats
    """Beyond a reply's last delta infinite."""
    tokens: Floats
    """Cumulative, from 0: one column more than there are deltas."""
    characters: Floats


class Courses:
    """The replies whose deltas were kept, of `records` in their order."""

    def __init__(self, records: Sequence[TurnRecord], words_per_minute: float = WORDS_PER_MINUTE) -> None:
        self.places: Numbers = np.array(
            [place for place, record in enumerate(records) if record.deltas], dtype=np.intp
        )
        """Which of the records these are."""
        self.records = [records[place] for place in self.places]
        self._flat = np.frombuffer(b"".join(one.deltas.packed for one in self.records)).reshape(-1, 3)
        self._sizes = np.array([len(one.deltas) for one in self.records], dtype=np.intp)
        self._begins = np.cumsum(self._sizes) - self._sizes
        spans = [llm_span_ns(one) for one in self.records]
        self.clause_ns = _column(
            [
                clause_instant_ns(one) if span is None else span
                for one, span in zip(self.records, spans, strict=True)
            ]
        )
        """`slot.clause_instant_ns` of each."""
        self.non_llm_ns = _column(
            [
                None
                if span is None
                else one.marks_ns[Mark.FIRST_AUDIBLE] - one.marks_ns[Mark.SPEECH_END] - span
                for one, span in zip(self.records, spans, strict=True)
            ]
        )
        """`slot.non_llm_ns` of each."""
        self.end_ns = _column([one.reply_end_ns for one in self.records])
        self._pace = words_per_minute
        self._s_per_character = _column([spoken_pace(one) for one in self.records])
        self._words = [None if one.reply is None else word_ends(one.reply) for one in self.records]
        self._sentences = [None if one.reply is None else sentence_ends(one.reply) for one in self.records]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def deltas(self) -> int:
        """How many deltas all replies have."""
        return len(self._flat)

    @property
    def tokens(self) -> float:
        """How many tokens all replies have."""
        return float(self._flat[:, 2].sum())

    @property
    def first_ns(self) -> Floats:
        """The first delta of each, in ns from the slot's start."""
        return np.asarray(self._flat[self._begins, 0])

    def speech_sources(self) -> dict[str, int]:
        """Where seconds of speech come from, and for how many replies; see `slot.Delivery`."""
        stated = f"{self._pace:g} words a minute"
        return dict(Counter(stated if np.isnan(pace) else BY_SYNTHESIS for pace in self._s_per_character))

    def decode_rate_tok_s(self) -> Floats:
        """`slot.decode_rate_tok_s` of each reply, NaN where it is None."""
        if not len(self):
            return np.empty(0)
        last = self._begins + self._sizes - 1
        span = self._flat[last, 0] - self._flat[self._begins, 0]
        tokens = np.add.reduceat(self._flat[:, 2], self._begins) - self._flat[self._begins, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((self._sizes > 1) & (span > 0), tokens * NS_PER_S / span, np.nan)

    def gaps_ns(self) -> tuple[Floats, Numbers]:
        """`slot.delta_gaps_ns` of all replies one after another, and which reply each gap is of."""
        reply = np.repeat(np.arange(len(self), dtype=np.intp), self._sizes)
        gaps = np.diff(self._flat[:, 0])
        inside = reply[1:] == reply[:-1]
        return gaps[inside], reply[1:][inside]

    def without_gaps(self) -> int:
        """How many replies have fewer than two deltas."""
        return int((self._sizes < 2).sum())

    def by(self, deadlines_ns: Floats) -> Reached:
        """What each reply had delivered by its own deadline, in ns; `slot.Delivery.by`."""
        # Ahead of the slot's start nothing counts as delivered.
        held = np.where(deadlines_ns >= 0, deadlines_ns, -np.inf)
        tokens, characters, whole = np.empty(len(self)), np.empty(len(self)), np.empty(len(self), dtype=bool)
        for block in self._blocks():
            count = (block.at_ns <= held[block.rows, None]).sum(axis=1)
            row = np.arange(count.size)
            tokens[block.rows] = block.tokens[row, count]
            characters[block.rows] = block.characters[row, count]
            whole[block.rows] = (count > 0) & (block.characters[row, count] >= block.characters[:, -1])
        words, sentences = np.full(len(self), np.nan), np.full(len(self), np.nan)
        cuts = zip(characters.tolist(), whole.tolist(), self._words, self._sentences, strict=True)
        for place, (cut, all_of_it, word, sentence) in enumerate(cuts):
            if word is not None and sentence is not None:
                words[place] = len(word) if all_of_it else bisect_right(word, cut)
                sentences[place] = len(sentence) if all_of_it else bisect_right(sentence, cut)
        spoken = self._s_per_character * characters
        speech = np.where(np.isnan(spoken), words * 60 / self._pace, spoken)
        return Reached(tokens, characters, words, sentences, speech)

    def tokens_if_first_at(self, slot_ms: float, first_ms: Sequence[float]) -> Floats:
        """`slot.tokens_if_first_at` of each reply: a row each, a column for each of `first_ms`."""
        found = np.zeros((len(self), len(first_ms)))
        begin = self.first_ns
        for block in self._blocks():
            row = np.arange(block.rows.size)
            since = block.at_ns - begin[block.rows, None]
            for column, first in enumerate(first_ms):
                if first <= slot_ms:
                    count = (since <= round((slot_ms - first) * 1e6)).sum(axis=1)
                    found[block.rows, column] = block.tokens[row, count]
        return found

    def _blocks(self) -> Iterator[_Block]:
        """All replies, those of about one length together."""
        order = np.argsort(-self._sizes, kind="stable")
        begin = 0
        while begin < order.size:
            longest = int(self._sizes[order[begin]])
            rows = order[begin : begin + max(1, CELLS // longest)]
            begin += rows.size
            column = np.arange(longest)
            there = column < self._sizes[rows, None]
            cells = self._flat[np.where(there, self._begins[rows, None] + column, 0)]
            at_ns = np.where(there, cells[:, :, 0], np.inf)
            characters, tokens = (np.where(there, cells[:, :, kind], 0.0) for kind in (1, 2))
            if longest > 1 and not (at_ns[:, 1:] >= at_ns[:, :-1]).all():
                arrival = np.argsort(at_ns, axis=1, kind="stable")
                at_ns, characters, tokens = (
                    np.take_along_axis(one, arrival, axis=1) for one in (at_ns, characters, tokens)
                )
            yield _Block(rows, at_ns, _cumulative(tokens), _cumulative(characters))


def _cumulative(values: Floats) -> Floats:
    """The sums along each row, from 0 on."""
    found = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=found[:, 1:])
    return found


def _column(values: Sequence[float | None]) -> Floats:
    """The values, NaN where there is none."""
    return np.array(values, dtype=np.float64)
