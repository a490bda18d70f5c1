"""One turn as text: a line while a run goes on, and its stages as a waterfall against the budget."""

from __future__ import annotations

from voicebench.clock import NS_PER_MS
from voicebench.export.texts import one_line, shortened
from voicebench.turns.records import EXCLUDING_FLAGS, Outcome, TurnRecord
from voicebench.turns.slot import timeline_of
from voicebench.turns.timeline import LLM_STAGES, Stage

TEXT_WIDTH = 60
_LABEL = 24
"""Columns for a stage's name and its milliseconds."""


def mode_name(mode: str, kind: str | None) -> str:
    """The mode's id, marked where its figures are emulated and the id does not say so."""
    name = one_line(mode)
    return f"{name} (emulated)" if kind == "emulated" and not name.startswith("emulated/") else name


def turn_line(record: TurnRecord) -> str:
    """The turn on one line: number, mode, sample, V2V with the model's part, flags, and what was said.

    A turn that did not complete shows its outcome and the reason instead. Nothing in it can steer a terminal.
    """
    head = f"{record.turn + 1:4d}  {mode_name(record.mode, record.mode_kind)}  {one_line(record.sample)}"
    flags = "".join(
        f"  [{flag.value}{', not counted' if flag in EXCLUDING_FLAGS else ''}]" for flag in record.flags
    )
    said = f"  “{shortened(record.reply, TEXT_WIDTH)}”" if record.reply else ""
    if record.outcome is not Outcome.COMPLETED:
        reason = f": {shortened(record.reason, 120)}" if record.reason else ""
        return f"{head}  {record.outcome.value}{reason}{flags}{said}"
    if record.voice_to_voice_ms is None:
        return f"{head}  no voice-to-voice latency{flags}{said}"
    model = [record.stages_ms.get(stage.value) for stage in LLM_STAGES] if record.stages_ms else []
    known = [part for part in model if part is not None]
    part = f" (LLM {sum(known):.0f})" if known else ""
    return f"{head}  {record.voice_to_voice_ms:.0f} ms{part}{flags}{said}"


def waterfall(record: TurnRecord, budget_ms: float, width: int = 80, *, ascii_only: bool = False) -> str:
    """The turn's stages as bars on one time scale, with a line at the budget: one row per stage.

    `width` is the number of columns, at least 40. A stage without its mark shows a dash: its time is in the
    next one. A turn without stages is told in one row.
    """
    timeline = timeline_of(record)
    stages, total_ns = timeline.stages_ns(), timeline.voice_to_voice_ns
    if stages is None or total_ns is None:
        return f"{'no stages':<{_LABEL}} {_why_no_stages(record, total_ns)}"
    block, sliver, line, dash = ("#", "|", ":", "-") if ascii_only else ("█", "▏", "┊", "–")
    columns = max(40, width) - _LABEL - 1
    total = total_ns / NS_PER_MS
    scale = (columns - 1) / max(total, budget_ms, 1.0)
    mark = round(budget_ms * scale)
    rows = []
    begin = 0.0
    for stage in Stage:
        part_ns = stages[stage]
        if part_ns is None:
            rows.append(_row(stage.value, dash, " " * mark + line))
            continue
        part = part_ns / NS_PER_MS
        first, last = round(begin * scale), round((begin + part) * scale)
        bar = block * (last - first) if last > first else (sliver if part > 0 else "")
        cells = list((" " * first + bar).ljust(mark + 1))
        if cells[mark] == " ":
            cells[mark] = line
        rows.append(_row(stage.value, f"{part:.0f} ms", "".join(cells).rstrip()))
        begin += part
    left = budget_ms - total
    verdict = f"{left:.0f} ms within" if left >= 0 else f"{-left:.0f} ms beyond"
    note = f"{verdict} the budget of {budget_ms:g} ms"
    rows.append(_row("voice-to-voice", f"{total:.0f} ms", note))
    return "\n".join(rows)


def _row(name: str, figure: str, rest: str) -> str:
    return f"{name:<{_LABEL - 9}}{figure:>9} {rest}".rstrip()


def _why_no_stages(record: TurnRecord, total_ns: int | None) -> str:
    if total_ns is not None:
        return "the agent sounded before the person had ended"
    if record.outcome is not Outcome.COMPLETED:
        return record.outcome.value
    return "the end of speech or the first sound has no mark"
