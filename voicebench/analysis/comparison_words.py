"""What a reader must know beside a comparison: what was left out, and what else differs between the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voicebench.analysis.caveats import Caveat
from voicebench.analysis.comparison_bootstrap import LEAST_SAMPLES
from voicebench.analysis.comparison_pairs import Pairing, Pairings, Side

if TYPE_CHECKING:
    from voicebench.analysis.comparison import ModeComparison

MOST_TOLD = 6
"""So many differences of a kind are told by name; the others are counted."""
_WIDTH = 40
"""Characters of a value that are told."""

WORDS: Mapping[str, str] = {
    "different_loads": "The runs offered their turns differently ({detail}): a difference may be the load's.",
    "same_run": "A and B are the same run.",
    "partial_run_a": "Run A was not finished. Planned turns without a record: {count}.",
    "partial_run_b": "Run B was not finished. Planned turns without a record: {count}.",
    "live_turns": "Live turns are paired by their numbers: what was said differs between them.",
    "different_machines": "The machines differ: {detail}.",
    "different_versions": "The versions differ: {detail}.",
    "different_model_files": "The model files differ: {detail}.",
    "different_configs": "The configurations differ: {detail}.",
    "modes_only_a": "Modes that only A has, left out: {detail}.",
    "modes_only_b": "Modes that only B has, left out: {detail}.",
    "not_comparable": "Left out: {detail}.",
    "unpaired_a": "Turns of A without a partner in B, left out: {count}.",
    "unpaired_b": "Turns of B without a partner in A, left out: {count}.",
    "not_counted": "Pairs that are in no V2V figure, as one of the two turns was not completed, is kept "
    "out by a flag or has no latency: {count}. The share within the budget counts failures as misses.",
    "different_models": "Different models answered: {detail}.",
    "emulated": "Emulated figures: a published speed replayed by a server on the machine of the run.",
    "few_samples_drawn": "Samples behind the pairs: {count}. Below 6 the intervals speak of these samples "
    "alone.",
    "too_few_pairs": "Pairs with a latency: {count}. Too few for any interval: nothing can be told.",
}
"""The words of each code. `{count}` and `{detail}` are filled in."""


def _told(code: str, count: int | None = None, detail: str = "", entry: Pairing | None = None) -> Caveat:
    text = WORDS[code].replace("{count}", str(count)).replace("{detail}", detail)
    if entry is None:
        return Caveat(code, text, None, count)
    mode = entry.mode_a if entry.mode_a == entry.mode_b else f"{entry.mode_a} | {entry.mode_b}"
    return Caveat(code, text, mode, count, entry.anchor.value)


def find_comparison_caveats(
    a: Side, b: Side, found: Pairings, compared: Sequence[ModeComparison]
) -> Iterator[Caveat]:
    """The caveats of a comparison: first those of the runs, then those of each mode."""
    if a.info.id == b.info.id and any(entry.mode_a == entry.mode_b for entry in compared):
        yield _told("same_run")
    if a.not_run:
        yield _told("partial_run_a", a.not_run)
    if b.not_run and a.info.id != b.info.id:
        yield _told("partial_run_b", b.not_run)
    if "live" in (a.info.command, b.info.command):
        yield _told("live_turns")
    for code, first, second in (
        ("different_machines", a.info.environment, b.info.environment),
        ("different_versions", a.info.versions, b.info.versions),
        ("different_model_files", a.info.models, b.info.models),
        ("different_configs", a.info.config, b.info.config),
        ("different_loads", _load(a), _load(b)),
    ):
        differing = list(differences(first, second))
        if differing:
            more = len(differing) - MOST_TOLD
            detail = "; ".join(differing[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
            yield _told(code, len(differing), detail)
    if found.modes_only_a:
        yield _told("modes_only_a", len(found.modes_only_a), ", ".join(found.modes_only_a))
    if found.modes_only_b:
        yield _told("modes_only_b", len(found.modes_only_b), ", ".join(found.modes_only_b))
    for reason in found.left_out:
        yield _told("not_comparable", None, reason)
    for pairing, entry in zip(found.pairings, compared, strict=True):
        yield from _of_mode(pairing, entry)


def _load(side: Side) -> dict[str, object]:
    """How many turns at once, and on which schedule."""
    load = side.info.load or {}
    return {"sessions": load.get("sessions", 1), "rate_per_s": load.get("rate_per_s")}


def _of_mode(pairing: Pairing, entry: ModeComparison) -> Iterator[Caveat]:
    if pairing.only_a:
        yield _told("unpaired_a", pairing.only_a, entry=pairing)
    if pairing.only_b:
        yield _told("unpaired_b", pairing.only_b, entry=pairing)
    if entry.not_counted:
        yield _told("not_counted", entry.not_counted, entry=pairing)
    models = [list(dict.fromkeys(pair[side].model for pair in pairing.pairs)) for side in (0, 1)]
    if pairing.mode_a == pairing.mode_b and set(models[0]) != set(models[1]):
        detail = f"{', '.join(models[0])} in A, {', '.join(models[1])} in B"
        yield _told("different_models", None, detail, pairing)
    if "emulated" in (entry.kind_a, entry.kind_b):
        yield _told("emulated", None, entry=pairing)
    if entry.voice_to_voice.paired.interval is None:
        yield _told("too_few_pairs", entry.voice_to_voice.paired.n, entry=pairing)
    elif entry.samples < LEAST_SAMPLES:
        yield _told("few_samples_drawn", entry.samples, entry=pairing)


def differences(a: Any, b: Any, place: str = "") -> Iterator[str]:
    """Each value in which two plain structures differ, as `key 1 -> 2` in the order of the keys."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key), b.get(key), f"{place}.{key}" if place else str(key))
    elif a != b:
        yield f"{place or 'value'} {_short(a)} → {_short(b)}"


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
