"""The sections below the verdict, in reading order, each with its notes beside it."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.ledger import counts
from voicebench.analysis.report import Entry, Report
from voicebench.analysis.verdict import Verdict, configured_wait_ms
from voicebench.export.html import notes
from voicebench.export.html.courses import MOST_REPLIES, Curve, curves_of
from voicebench.export.html.load_section import load_list
from voicebench.export.html.look import Look
from voicebench.export.html.machine import machine_section
from voicebench.export.html.markup import Safe, join, tag, tight, user_text
from voicebench.export.html.modes_table import ledger_table, modes_table, stage_table
from voicebench.export.html.price_chart import price_chart
from voicebench.export.html.slot_chart import slot_chart, until_ms
from voicebench.export.html.spread_chart import MOST_TICKS, spread_chart
from voicebench.export.html.stage_chart import stage_chart
from voicebench.export.html.waterfalls import Addressed, stage_key, turns_section
from voicebench.export.load_table import load_line
from voicebench.turns.records import TurnRecord


def sections(
    report: Report,
    looks: Sequence[Look],
    verdict: Verdict,
    groups: dict[Entry, list[TurnRecord]],
    address_of: Addressed,
) -> list[Safe]:
    """The sections in reading order. A chart without any figure is left out."""
    latencies = {
        entry: [one.voice_to_voice_ms for one in found if counts(one) and one.voice_to_voice_ms is not None]
        for entry, found in groups.items()
    }
    curves = {
        entry: curves_of(found, until_ms(report), report.words_per_minute) for entry, found in groups.items()
    }
    stages = stage_chart(report, looks)
    slot = slot_chart(report, looks, curves)
    spread = spread_chart(report, looks, latencies)
    price = price_chart(report, looks, verdict.faster)
    turns = [(look, found) for look in looks if (found := groups.get((look.entry.mode, look.entry.anchor)))]
    present = [
        name
        for name, there in (
            (notes.STAGES, stages),
            (notes.SLOT, slot),
            (notes.SPREAD, spread),
            (notes.TURNS, turns),
            (notes.MACHINE, True),
        )
        if there
    ]

    def caveats(section: str) -> Safe:
        return join(*notes.caveats_of(report, section, present))

    made = [_modes(report, looks, caveats(notes.MODES))]
    if stages is not None:
        made.append(_stages(report, looks, stages, caveats(notes.STAGES)))
    if slot is not None:
        made.append(_slot(report, looks, slot, curves, caveats(notes.SLOT)))
    if spread is not None:
        made.append(_spread(report, spread, latencies, caveats(notes.SPREAD)))
    load = load_list(looks)
    if load is not None:
        made.append(_load(report, load))
    made.append(_price(report, price, verdict))
    if turns:
        shown = turns_section(report, turns, address_of)
        made.append(
            _section(
                "turns",
                "The turns",
                "Open one for its waterfall, what was heard and what was said.",
                shown,
                notes.beside(
                    notes.note(
                        "How to read",
                        "Each line has the turn's stages, and the budget as a line across. "
                        "The first clause, the first words that could be spoken, is marked in the reply.",
                    ),
                    caveats(notes.TURNS),
                ),
            )
        )
    made.append(
        _section(
            "machine",
            "Machine, versions, config, noise floor",
            None,
            machine_section(report),
            notes.beside(caveats(notes.MACHINE)),
        )
    )
    return made


def _section(name: str, head: str, lead: str | Safe | None, content: Safe, aside: Safe | None) -> Safe:
    return tag(
        "section",
        tag("h2", head, id=name),
        tag("p", lead, class_="lead") if lead else None,
        tag("div", tag("div", content, class_="main"), aside, class_="with-notes"),
        aria_labelledby=name,
    )


def _modes(report: Report, looks: Sequence[Look], caveats: Safe) -> Safe:
    count = len(looks)
    words = {1: "One mode", 2: "Two modes", 3: "Three modes", 4: "Four modes", 5: "Five modes"}
    return tag(
        "section",
        tag("h2", words.get(count, f"{count} modes"), id="modes"),
        modes_table(report, looks),
        tag(
            "div",
            notes.note(
                "V2V, voice to voice",
                "From the last sound of the person's speech to the first sound of the agent, when it is "
                "played. Medians and shares with 95 % intervals; ≤ is the 95 % bound of p95.",
            ),
            notes.note(
                "Said",
                "Medians of what the model had delivered by then, from the slot's start. The residual slot "
                "is what the other stages leave each turn of the budget. ≥: most replies had ended by then.",
            ),
            notes.note(
                "Headline",
                "Decode rate times slot, as measured and as told in public. It ignores the wait for the "
                "first token.",
            ),
            tag("div", tag("b", "How the planned turns ended."), ledger_table(looks), class_="ended"),
            caveats,
            class_="columns",
        ),
        aria_labelledby="modes",
    )


def _stages(report: Report, looks: Sequence[Look], chart: Safe, caveats: Safe) -> Safe:
    wait = configured_wait_ms(report)
    return _section(
        "stages",
        "Where the time goes",
        join("In every turn ", stage_key(), "."),
        join(chart, stage_table(looks)),
        notes.beside(
            notes.note(
                "How to read",
                "Each part is the mean over the turns within 5 percentile ranks of the median, so that the "
                "parts add up. The whisker ends at p95, or at the maximum where turns are too few.",
            ),
            notes.note(
                "Chosen wait", f"Of endpointing, {wait:g} ms are the silence that the config asks for."
            )
            if wait is not None
            else None,
            notes.note("Hatched", "An emulated mode: its total holds replayed model times.")
            if any(look.emulated for look in looks)
            else None,
            caveats,
        ),
    )


def _slot(
    report: Report,
    looks: Sequence[Look],
    chart: Safe,
    curves: dict[Entry, dict[str, Curve]],
    caveats: Safe,
) -> Safe:
    sampled = any(curve.of > curve.n for found in curves.values() for curve in found.values())
    several = len({next(iter(look.entry.token_counts), "") for look in looks}) > 1
    return _section(
        "slot",
        "What a mode has said by then",
        _promise(report, looks),
        chart,
        notes.beside(
            notes.note(
                "How to read",
                "Line: the median of all turns. Band: p10 to p90. The scale is logarithmic with a true "
                "zero: equal steps are equal factors. Hollow points and hatched bands are emulated.",
            ),
            notes.note(
                "Residual slot", "Here the budget less the median of all other stages, one for every mode."
            ),
            notes.note("Not comparable", "Tokens were counted in different ways; rank by words or seconds.")
            if several
            else None,
            notes.note(
                "Drawn from a sample", f"Of at most {MOST_REPLIES} replies a mode; figures are from all."
            )
            if sampled
            else None,
            caveats,
        ),
    )


def _promise(report: Report, looks: Sequence[Look]) -> Safe | None:
    """The headline figure of one mode beside what arrived, where the gap is widest.

    A mode whose replies had mostly ended by then is no case of it.
    """
    if not report.slots_ms:
        return None
    slot = f"{report.slots_ms[-1]:g}"
    gaps = []
    for look in looks:
        headline = look.entry.headlines.get(slot)
        found = next((one for one in look.entry.slots if one.slot == slot), None)
        arrived = None if found is None else found.delivered["tokens"].p50
        quoted = None if headline is None else headline.published or headline.measured
        over = found is not None and (found.ended_before_deadline.share or 0) > 0.5
        if arrived is not None and quoted and not over:
            gaps.append((arrived / quoted, look, quoted, arrived))
    if not gaps:
        return None
    _, look, quoted, arrived = min(gaps, key=lambda gap: gap[0])
    return join(
        f"By its rate alone {slot} ms hold {quoted:.0f} tokens of ",
        user_text(look.full, 80),
        f"; {arrived:.0f} arrive, after the wait for the first.",
    )


def _spread(report: Report, chart: Safe, latencies: dict[Entry, list[float]], caveats: Safe) -> Safe:
    thinned = any(len(found) > MOST_TICKS for found in latencies.values())
    return _section(
        "spread",
        "How often, and how far off",
        "Voice-to-voice latency of every turn that counts; right of the line, people notice a pause.",
        chart,
        notes.beside(
            notes.note(
                "How to read", "One tick a turn; the hill above shows where they crowd, from 10 turns on."
            ),
            notes.note("Thinned", f"Of more than {MOST_TICKS} turns, ticks stand at as many even ranks.")
            if thinned
            else None,
            notes.note("In time", "Of all turns with speech: one that failed is a miss."),
            caveats,
        ),
    )


def _load(report: Report, content: Safe) -> Safe:
    return _section(
        "load",
        "From the schedule",
        load_line(report),
        content,
        notes.beside(
            notes.note(
                "How to read",
                "Service is a turn's own latency. From the schedule holds the wait for a free session as "
                "well: what a caller meets who cannot choose when to call.",
            ),
        ),
    )


def _price(report: Report, chart: Safe | None, verdict: Verdict) -> Safe:
    if chart is None:
        words = (
            "No mode has a known price, so nothing is drawn: local models have none, and any other needs a "
            "list price and the provider's usage."
        )
        return _section("price", "What the milliseconds cost", words, join(), None)
    return _section(
        "price",
        "What the milliseconds cost",
        tight(verdict.faster_words[0]) if verdict.faster_words else None,
        chart,
        notes.beside(
            notes.note(
                "How to read",
                "Price from usage at list prices, the mean over turns. Bars: 95 % interval of the share. "
                "Lines lead from a standard mode to its fast sibling.",
            ),
            notes.note("No price known", "Such a mode stands in a lane of its own: its price is not zero."),
        ),
    )
