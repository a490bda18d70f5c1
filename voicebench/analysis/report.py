"""The report: everything that is told of a run, as one value from which every format is made. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.analysis.caveats import Caveat, CaveatList
from voicebench.analysis.find_caveats import find_mode_caveats
from voicebench.analysis.ledger import anchor_of, counts, latest_records, missing_turns, usual_anchors
from voicebench.analysis.load_figures import find_load_caveats
from voicebench.analysis.mode_report import ModeReport, build_mode
from voicebench.analysis.plain import plain_mode
from voicebench.analysis.siblings import Faster, worth_of
from voicebench.turns.durable import plain_values
from voicebench.turns.journal import JournalReading
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import ModeFacts, RunInfo
from voicebench.turns.slot import WORDS_PER_MINUTE, stack_residual_ms
from voicebench.turns.timeline import Anchor

SCHEMA = 1
BUDGET_MS = 800.0
SLOTS_MS = (400.0, 500.0)

Entry = tuple[str, Anchor | None]
"""A mode and an anchor: what one entry of a report is about."""


@dataclass(frozen=True)
class Report:
    """A run told. `to_dict` gives `report.json`; the fields are for exporters that draw."""

    run: RunInfo
    complete: bool
    """Was the run finished, and has every planned turn a record?"""
    budget_ms: float
    slots_ms: tuple[float, ...]
    residual_slot_ms: Mapping[Anchor, float]
    """What the stack leaves any mode of the budget, for each anchor that has turns which tell."""
    words_per_minute: float
    modes: tuple[ModeReport, ...]
    caveats: tuple[Caveat, ...]
    worth: tuple[Faster, ...] = ()
    """Each mode whose standard sibling was run too, held against it: time, share of the budget, dollars."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values of `report.json`, schema 1."""
        kept = ("id", "started_at", "ended_at", "command", "config", "environment", "versions", "models")
        info = plain_values(self.run.model_dump(include=set(kept)))
        return {
            "schema": SCHEMA,
            "run": {
                **{name: info[name] for name in kept},
                "noise_floor_ms": self.run.noise_floor_ms,
                "noise_floor_reason": self.run.noise_floor_reason,
                "calibration": self.run.calibration,
                "load": self.run.load,
                "complete": self.complete,
            },
            "budget_ms": self.budget_ms,
            "slots_ms": list(self.slots_ms),
            "residual_slot_ms": {anchor.value: slot for anchor, slot in self.residual_slot_ms.items()},
            "words_per_minute": self.words_per_minute,
            "modes": [plain_mode(entry) for entry in self.modes],
            "worth": [faster.to_dict() for faster in self.worth],
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def build_report(
    run_info: RunInfo | Mapping[str, Any],
    records: Sequence[TurnRecord],
    *,
    warmup: Sequence[TurnRecord] = (),
    reading: JournalReading | None = None,
    budget_ms: float | None = None,
    slots_ms: Sequence[float] | None = None,
    words_per_minute: float = WORDS_PER_MINUTE,
) -> Report:
    """The report over a run's records.

    `run_info` is what `run.json` says. `records` may hold a turn twice (the last counts) and lack turns (they
    are counted as not run). `reading` tells what else the journal held. `budget_ms` and `slots_ms` are by
    default the run's own. Raises pydantic's ValidationError where `run_info` is no run's.
    """
    info = run_info if isinstance(run_info, RunInfo) else RunInfo.model_validate(run_info)
    turns, repeated = latest_records(records)
    budget = _first(budget_ms, info.budget_ms, info.config.get("budget_ms"), BUDGET_MS)
    slots = tuple(_first(slots_ms, info.slots_ms, info.config.get("slots_ms"), SLOTS_MS))
    groups, not_run = _groups(info, turns)
    residual = _residuals(turns, budget)
    found = CaveatList()
    modes = []
    for (mode, anchor), group in groups.items():
        entry = build_mode(
            mode,
            anchor,
            group,
            facts=info.modes.get(mode, ModeFacts()),
            warmup=[record for record in warmup if record.mode == mode and record.anchor == anchor],
            not_run=not_run.get((mode, anchor), 0),
            budget_ms=budget,
            slots_ms=slots,
            stack_ms=None if anchor is None else residual.get(anchor),
            words_per_minute=words_per_minute,
        )
        modes.append(entry)
    lost = sum(not_run.values())
    _run_caveats(found, info, turns, lost, repeated, reading)
    for entry, group in zip(modes, groups.values(), strict=True):
        find_mode_caveats(found, entry, group)
    return Report(
        run=info,
        complete=info.complete and lost == 0,
        budget_ms=budget,
        slots_ms=slots,
        residual_slot_ms=residual,
        words_per_minute=words_per_minute,
        modes=tuple(modes),
        caveats=tuple(found.found),
        worth=worth_of(
            info,
            groups,
            {(entry.mode, entry.anchor): entry.usd_per_turn.mean for entry in modes},
            budget,
        ),
    )


def _first(*candidates: Any) -> Any:
    """The first that is there."""
    return next(candidate for candidate in candidates if candidate is not None)


def _groups(
    info: RunInfo, turns: Sequence[TurnRecord]
) -> tuple[dict[Entry, list[TurnRecord]], dict[Entry, int]]:
    """The turns by mode and anchor, modes in the plan's order; and how many planned turns each lacks."""
    groups: dict[Entry, list[TurnRecord]] = {}
    for record in turns:
        groups.setdefault((record.mode, record.anchor), []).append(record)
    not_run: dict[Entry, int] = {}
    missing = missing_turns(info.planned, turns)
    usual = usual_anchors(turns) if missing else {}
    for planned in missing:
        key = (planned.mode, anchor_of(planned, usual))
        not_run[key] = not_run.get(key, 0) + 1
        groups.setdefault(key, [])
    order = {mode: place for place, mode in enumerate(dict.fromkeys(_modes_in_order(info, turns)))}
    ranked = sorted(groups, key=lambda entry: order[entry[0]])
    return {entry: groups[entry] for entry in ranked}, not_run


def _modes_in_order(info: RunInfo, turns: Iterable[TurnRecord]) -> Iterable[str]:
    configured = info.config.get("modes")
    if isinstance(configured, list | tuple):
        yield from (mode for mode in configured if isinstance(mode, str))
    yield from (planned.mode for planned in info.planned)
    yield from (record.mode for record in turns)


def _residuals(turns: Sequence[TurnRecord], budget_ms: float) -> dict[Anchor, float]:
    found = {}
    for anchor in dict.fromkeys(record.anchor for record in turns):
        slot = stack_residual_ms((record for record in turns if record.anchor is anchor), budget_ms)
        if slot is not None:
            found[anchor] = slot
    return found


def _run_caveats(
    found: CaveatList,
    info: RunInfo,
    turns: Sequence[TurnRecord],
    not_run: int,
    repeated: int,
    reading: JournalReading | None,
) -> None:
    if not_run:
        found.add("partial_run", not_run)
    elif not info.complete:
        found.add("unfinished_run")
    anchors = {record.anchor for record in turns if counts(record)}
    if len(anchors) > 1:
        found.add("mixed_anchors", len(anchors))
    if reading is not None and reading.torn_lines:
        found.add("torn_journal", reading.torn_lines)
    if reading is not None and reading.problems:
        found.add("unreadable_lines", len(reading.problems), detail=reading.problems[0])
    if reading is not None and reading.unknown_fields:
        names = ", ".join(reading.unknown_fields)
        found.add("newer_fields", len(reading.unknown_fields), detail=names)
    if repeated:
        found.add("repeated_records", repeated)
    if info.noise_floor_ms is None and info.command != "slot":
        found.add("no_noise_floor", detail=info.noise_floor_reason or "no reason is given")
    if info.config.get("pace") == "tail":
        found.add("tail_pace")
    find_load_caveats(found, info, turns)
    if info.synthetic_samples:
        found.add("synthetic_samples", info.synthetic_samples)
