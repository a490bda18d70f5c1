"""Which turns of two runs belong together: the same sample and repeat, at the same anchor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.analysis.ledger import counts, latest_records, missing_turns
from voicebench.analysis.report import BUDGET_MS
from voicebench.errors import BadRequest
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunInfo
from voicebench.turns.timeline import Anchor

Key = tuple[str, int, int]
"""Sample, repeat, and how many turns of this sample and repeat came before."""


@dataclass(frozen=True)
class Side:
    """One of the two runs that are compared."""

    info: RunInfo
    records: tuple[TurnRecord, ...]
    """One a turn."""
    budget_ms: float
    not_run: int
    """Planned turns without a record."""

    @classmethod
    def of(cls, info: RunInfo, records: Sequence[TurnRecord]) -> Side:
        """The run that `run.json` and the journal tell. Of a turn recorded twice the last record counts."""
        turns = tuple(latest_records(records)[0])
        budgets = (info.budget_ms, info.config.get("budget_ms"), BUDGET_MS)
        budget = next(float(one) for one in budgets if one is not None)
        return cls(info, turns, budget, len(missing_turns(info.planned, turns)))

    @property
    def pace(self) -> str:
        """Was the run made in real time (`real`), or were its recordings sped up (`tail`)?"""
        return str(self.info.config.get("pace") or "real")

    @property
    def modes(self) -> list[str]:
        """The modes that have a turn, in order of appearance."""
        return list(dict.fromkeys(record.mode for record in self.records))

    def to_dict(self) -> dict[str, Any]:
        """What names the run in the comparison's JSON."""
        return {
            "id": self.info.id,
            "started_at": self.info.started_at,
            "complete": self.info.complete and not self.not_run,
        }


@dataclass(frozen=True)
class Pairing:
    """The turns of one mode of A and one of B, at one anchor."""

    mode_a: str
    mode_b: str
    anchor: Anchor
    pairs: tuple[tuple[TurnRecord, TurnRecord], ...]
    """At least one."""
    only_a: int
    only_b: int

    def counted(self) -> list[tuple[TurnRecord, TurnRecord]]:
        """The pairs of which both turns are in the latency statistics."""
        return [(one, other) for one, other in self.pairs if counts(one) and counts(other)]


@dataclass(frozen=True)
class Pairings:
    """What can be compared, and what was left out."""

    pairings: tuple[Pairing, ...]
    modes_only_a: tuple[str, ...]
    modes_only_b: tuple[str, ...]
    left_out: tuple[str, ...]
    """Reasons, one for each mode or anchor of both runs that cannot be compared."""


def pairings(a: Side, b: Side, modes: Sequence[str], against: str | None) -> Pairings:
    """The comparable modes and anchors; see `comparison.compare`. Raises BadRequest where there is none."""
    wanted = _wanted(a, b, modes, against)
    found: list[Pairing] = []
    left_out: list[str] = []
    for mode_a, mode_b in wanted:
        first = _by_anchor(record for record in a.records if record.mode == mode_a)
        second = _by_anchor(record for record in b.records if record.mode == mode_b)
        name = mode_a if mode_a == mode_b else f"{mode_a} and {mode_b}"
        shared = [anchor for anchor in first if anchor in second]
        if not shared:
            told = f"{_anchors(first)} in A and {_anchors(second)} in B"
            left_out.append(f"{name}: the end of speech comes from another source ({told})")
        elif first.keys() != second.keys():
            lost = sorted(anchor.value for anchor in first.keys() ^ second.keys())
            left_out.append(f"{name}: turns whose end of speech is {', '.join(lost)}, on one side alone")
        for anchor in shared:
            pairing = _pair(mode_a, mode_b, anchor, first[anchor], second[anchor])
            if pairing.pairs:
                found.append(pairing)
            else:
                left_out.append(f"{name}: no sample and repeat is in both ({anchor.value})")
    if not found:
        raise BadRequest(
            f"Nothing in A ({a.info.id}) and B ({b.info.id}) is comparable. {'; '.join(left_out)}.",
            "Compare runs of the same samples whose end of speech comes from the same source.",
        )
    both = {mode for pair in wanted for mode in pair}
    open_choice = not modes and against is None
    return Pairings(
        tuple(found),
        tuple(mode for mode in a.modes if open_choice and mode not in both),
        tuple(mode for mode in b.modes if open_choice and mode not in both),
        tuple(left_out),
    )


def _wanted(a: Side, b: Side, modes: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    """The modes to compare, as A and as B call them."""
    if against is not None:
        if len(modes) != 1:
            raise BadRequest("--against compares one mode with one other.", "Name one --mode beside it.")
        if modes[0] == against and a.info.id == b.info.id:
            raise BadRequest(f"--against names the same mode of the same run: {against}.", "Name another.")
        _there(a, "A", modes[0])
        _there(b, "B", against)
        return [(modes[0], against)]
    for mode in modes:
        _there(a, "A", mode)
        _there(b, "B", mode)
    shared = [mode for mode in dict.fromkeys(modes or a.modes) if mode in b.modes]
    if not shared:
        raise BadRequest(
            f"No mode is in both runs: A ({a.info.id}) has {_list(a.modes)}, B ({b.info.id}) has "
            f"{_list(b.modes)}.",
            "Name one of each: --mode MODE_OF_A --against MODE_OF_B.",
        )
    return [(mode, mode) for mode in shared]


def _there(side: Side, name: str, mode: str) -> None:
    if mode not in side.modes:
        raise BadRequest(
            f"Run {name} ({side.info.id}) has no turns of the mode {mode!r}.", f"It has: {_list(side.modes)}."
        )


def _list(modes: Sequence[str]) -> str:
    return ", ".join(modes) or "no turns"


def _anchors(groups: dict[Anchor, list[TurnRecord]]) -> str:
    return ", ".join(anchor.value for anchor in groups)


def _by_anchor(records: Iterable[TurnRecord]) -> dict[Anchor, list[TurnRecord]]:
    groups: dict[Anchor, list[TurnRecord]] = {}
    for record in records:
        groups.setdefault(record.anchor, []).append(record)
    return groups


def _keyed(records: Iterable[TurnRecord]) -> dict[Key, TurnRecord]:
    seen: Counter[tuple[str, int]] = Counter()
    keyed: dict[Key, TurnRecord] = {}
    for record in records:
        place = (record.sample, record.repeat)
        keyed[(*place, seen[place])] = record
        seen[place] += 1
    return keyed


def _pair(
    mode_a: str, mode_b: str, anchor: Anchor, a: Sequence[TurnRecord], b: Sequence[TurnRecord]
) -> Pairing:
    first, second = _keyed(a), _keyed(b)
    # In the order of their names, so that the order in which turns were run changes no interval.
    keys = sorted(key for key in first if key in second)
    pairs = tuple((first[key], second[key]) for key in keys)
    return Pairing(mode_a, mode_b, anchor, pairs, len(first) - len(keys), len(second) - len(keys))
