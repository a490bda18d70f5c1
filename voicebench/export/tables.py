"""The report's figures as tables of text: one source for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voicebench.analysis.ledger import Share
from voicebench.analysis.mode_report import ModeReport
from voicebench.analysis.report import Report
from voicebench.analysis.slot_figures import RESIDUAL, RESIDUAL_STACK, SlotFigures
from voicebench.analysis.statistics import Summary
from voicebench.export.sibling_table import COLUMNS, NOTE, sibling_rows
from voicebench.export.turn_text import mode_name
from voicebench.turns.run_folder import RunInfo
from voicebench.turns.timeline import Anchor, Stage

EMPTY = "–"
"""Stands where a figure does not exist; the JSON says why."""


@dataclass(frozen=True)
class Table:
    """One table. The first `labels` columns are text, the others figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    labels: int = 1
    optional: tuple[str, ...] = ()
    """Columns that a narrow screen may leave out."""


def number(value: float | None, digits: int = 0) -> str:
    """A figure with so many decimals; EMPTY where there is none."""
    return EMPTY if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """A share in per cent; EMPTY where there is none. Only all is told as 100 % and only none as 0 %."""
    if share is None:
        return EMPTY
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    told = f"{100 * share:.1f}"
    return {"100.0": "> 99.9 %", "0.0": "< 0.1 %"}.get(told, f"{told} %")


def share_cell(share: Share) -> str:
    """A share with its interval and its turns: `83.3 % (71.1–91.0), 50 of 60`."""
    interval = share.ci95
    if interval is None:
        return EMPTY
    return (
        f"{percent(share.share)} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f}), {share.hit} of {share.n}"
    )


def high_cell(summary: Summary) -> str:
    """p95, or where n is too small for it the maximum, named as such."""
    if summary.p95 is not None:
        return number(summary.p95)
    return EMPTY if summary.max is None else f"max {number(summary.max)}"


def median_cell(summary: Summary, digits: int = 0) -> str:
    """The median with its interval where there is one: `612 (598–631)`."""
    interval = summary.ci95_p50
    around = f" ({number(interval[0], digits)}–{number(interval[1], digits)})" if interval else ""
    return f"{number(summary.p50, digits)}{around}"


def others_cell(entry: ModeReport) -> str:
    """How the turns that were not completed ended."""
    ended = {**entry.ledger.outcomes, "not run": entry.ledger.not_run}
    found = [f"{count} {outcome}" for outcome, count in ended.items() if count and outcome != "completed"]
    return ", ".join(found) or EMPTY


def tables_of(report: Report) -> tuple[Table, ...]:
    """All tables of the report, in the order in which they are read."""
    from voicebench.export.load_table import load_tables

    if report.run.command == "slot":
        from voicebench.export.slot_tables import slot_run_tables

        return (*slot_run_tables(report), *load_tables(report))
    return (
        latency_table(report),
        ledger_table(report),
        stage_table(report),
        slot_table(report),
        worth_table(report),
        *load_tables(report),
        *sibling_tables(report),
    )


def several_anchors(report: Report) -> bool:
    """Do figures of different sources of the end of speech stand side by side?"""
    return len({entry.anchor for entry in report.modes if entry.anchor is not None}) > 1


def _named(report: Report) -> tuple[str, ...]:
    """The first columns' heads: the mode and, where there are several, the source of the end of speech."""
    return ("mode", "speech end") if several_anchors(report) else ("mode",)


def _name(report: Report, entry: ModeReport) -> tuple[str, ...]:
    name = mode_name(entry.mode, entry.kind)
    if not several_anchors(report):
        return (name,)
    return (name, EMPTY if entry.anchor is None else entry.anchor.value)


def latency_table(report: Report) -> Table:
    """V2V and the share within the budget."""
    first = _named(report)
    return Table(
        title="Voice-to-voice latency (ms)",
        columns=(*first, "n", "p50 (95 %)", "p95", f"within {report.budget_ms:g} ms (95 %)"),
        rows=tuple(
            (
                *_name(report, entry),
                str(entry.voice_to_voice.n),
                median_cell(entry.voice_to_voice),
                high_cell(entry.voice_to_voice),
                share_cell(entry.budget),
            )
            for entry in report.modes
        ),
        note="Where n is below 20 the maximum stands in place of p95. Turns that failed are misses.",
        labels=len(first),
    )


def ledger_table(report: Report) -> Table:
    """How every planned turn ended."""
    first = _named(report)
    return Table(
        title="Turns",
        columns=(*first, "planned", "completed", "excluded", "missing", "cutoffs", "not completed"),
        rows=tuple(
            (
                *_name(report, entry),
                str(entry.ledger.planned),
                str(entry.ledger.outcomes["completed"]),
                str(entry.voice_to_voice.excluded),
                str(entry.voice_to_voice.missing),
                f"{entry.cutoffs.hit} of {entry.cutoffs.n}",
                others_cell(entry),
            )
            for entry in report.modes
        ),
        note="n is completed less excluded (kept out by a flag) and missing (without a latency).",
        labels=len(first),
    )


def stage_table(report: Report) -> Table:
    """The stages near p50 and p95, which add up to the V2V in the last row."""
    shown = [entry for entry in report.modes if entry.near_p50 is not None]
    both = any(entry.near_p95 is not None for entry in shown)
    rows = [(stage.value, *(_near(entry, stage, both) for entry in shown)) for stage in Stage]
    rows.append(("sum", *(_near(entry, None, both) for entry in shown)))
    return Table(
        title="Stages near p50 / p95 (ms)" if both else "Stages near p50 (ms)",
        columns=("stage", *(", ".join(_name(report, entry)) for entry in shown)),
        rows=tuple(rows) if shown else (),
        note="Means over the turns within 5 percentile ranks of that percentile of V2V, so that they add up.",
    )


def _near(entry: ModeReport, stage: Stage | None, both: bool) -> str:
    """One stage near p50, and for `both` near p95; for no stage what all of them add up to."""
    return " / ".join(
        number(None if means is None else means.total if stage is None else means.stages[stage.value], 1)
        for means in ((entry.near_p50, entry.near_p95) if both else (entry.near_p50,))
    )


def slot_table(report: Report) -> Table:
    """What each mode gets out in each slot, beside the headline figure."""
    first = (*_named(report), "slot (ms)")
    return Table(
        title="In the LLM slot (medians)",
        columns=(
            *first,
            "headline tokens",
            "tokens",
            "words",
            "sentences",
            "speech (s)",
            "clause ready",
            "reply ended",
            "n",
        ),
        rows=tuple(
            (*_name(report, entry), *_slot_cells(entry, slot))
            for entry in report.modes
            for slot in entry.slots
        ),
        note="Headline tokens are decode rate times slot, measured / published, without the wait for the "
        "first token. The residual slot is what the other stages leave of the budget: to each turn its own, "
        "or by the median of the stack, the same for every mode.",
        labels=len(first),
        optional=("sentences",),
    )


def _slot_cells(entry: ModeReport, slot: SlotFigures) -> tuple[str, ...]:
    name = slot.slot
    if slot.slot == RESIDUAL:
        own = None if slot.turn_slot_ms is None else slot.turn_slot_ms.p50
        name = f"residual, own ({number(own)})"
    elif slot.slot == RESIDUAL_STACK:
        name = f"residual, stack ({number(slot.slot_ms)})"
    headline = entry.headlines.get(slot.slot)
    quoted = EMPTY
    if headline is not None:
        assumed = " assumed" if headline.assumed and headline.published is not None else ""
        quoted = f"{number(headline.measured)} / {number(headline.published)}{assumed}"
    return (
        name,
        quoted,
        number(slot.delivered["tokens"].p50, 1),
        number(slot.delivered["words"].p50, 1),
        number(slot.delivered["sentences"].p50, 1),
        number(slot.delivered["speech_s"].p50, 2),
        percent(slot.clause_ready.share),
        percent(slot.ended_before_deadline.share),
        str(slot.clause_ready.n),
    )


def worth_table(report: Report) -> Table:
    """First token, pace, recognition, answers and price."""
    first = _named(report)
    return Table(
        title="Model and worth (medians)",
        columns=(
            *first,
            "first token (ms)",
            "first text (ms)",
            "decode (tok/s)",
            "delta gap p50 / max (ms)",
            "word errors",
            "answers right",
            "USD a turn",
        ),
        rows=tuple((*_name(report, entry), *_worth_cells(entry)) for entry in report.modes),
        note=" ".join(["Word errors are pooled: all errors over all reference words.", *_ahead(report)]),
        labels=len(first),
        optional=("first token (ms)",),
    )


def _ahead(report: Report) -> list[str]:
    """What was asked of the models ahead of the turn's end, a sentence a mode."""
    return [f"{entry.mode}: {told}." for entry in report.modes if (told := entry.speculation.words)]


def _worth_cells(entry: ModeReport) -> tuple[str, ...]:
    answers = entry.answers.right
    if answers is not None:
        right = f"{answers.hit} of {answers.n}"
    else:
        right = "scripted" if entry.answers.reason == "scripted" else EMPTY
    words = f"{percent(entry.wer.rate)} of {entry.wer.words}" if entry.wer.rate is not None else EMPTY
    return (
        number(entry.ttft.p50),
        number(entry.ttfat.p50),
        number(entry.decode_rate.p50, 1),
        f"{number(entry.gaps.p50, 1)} / {number(entry.gaps.max, 1)}",
        words,
        right,
        number(entry.usd_per_turn.p50, 5),
    )


def sibling_tables(report: Report) -> tuple[Table, ...]:
    """Each mode against its standard sibling; no table where none was run beside its own."""
    rows = sibling_rows(report.worth)
    return (Table("Against the standard mode", COLUMNS, rows, NOTE, labels=2),) if rows else ()


def caveat_lines(report: Report) -> tuple[str, ...]:
    """The caveats as lines; what is said of several modes in the same words stands once."""
    by_text: dict[str, list[str]] = {}
    for caveat in report.caveats:
        where = caveat.mode or ""
        if caveat.mode and caveat.anchor and several_anchors(report):
            where = f"{caveat.mode}, {caveat.anchor}"
        by_text.setdefault(caveat.text, []).append(where)
    return tuple(
        f"{text} ({'; '.join(dict.fromkeys(modes))})" if any(modes) else text
        for text, modes in by_text.items()
    )


def _statistic(run: RunInfo) -> str:
    """Which statistic the noise floor is, and over how many calibration turns."""
    calibration = run.calibration or {}
    turns = calibration.get("n")
    return f"{calibration.get('statistic', 'p99')}{f' of {turns} turns' if turns else ''}"


def headline_lines(report: Report) -> Sequence[str]:
    """What run this is: id, time, whether it is whole, and the noise floor."""
    from voicebench.export.load_table import load_line

    run = report.run
    floor = run.noise_floor_ms
    noise = (
        f"{floor:.1f} ms ({_statistic(run)} of what the harness adds)"
        if floor is not None
        else f"not known: {run.noise_floor_reason or 'no reason is given'}"
    )
    lines = [f"run {run.id}, {run.started_at}"]
    anchors = {entry.anchor.value for entry in report.modes if entry.anchor is not None}
    if run.command != "slot":
        lines.append(f"noise floor {noise}")
    if (load := load_line(report)) is not None:
        lines.append(load)
    if len(anchors) == 1 and anchors != {Anchor.NONE.value}:
        lines.append(f"end of speech {anchors.pop()}")
    if not report.complete:
        lines.insert(0, "PARTIAL: the run was not finished; every figure is of the turns that were.")
    return lines
