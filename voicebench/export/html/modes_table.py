"""The table of modes: latency, share, what was said in each slot, price. A card a row on a narrow screen."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.report import Report
from voicebench.analysis.slot_figures import RESIDUAL, RESIDUAL_STACK, SlotFigures
from voicebench.analysis.statistics import Summary
from voicebench.analysis.verdict import whole_percent
from voicebench.export.html.look import Look, figure, line
from voicebench.export.html.markup import Safe, join, tag, user_text
from voicebench.export.html.price_chart import usd_per_1000
from voicebench.export.tables import EMPTY, number, others_cell
from voicebench.turns.timeline import Stage

SAID = (("tokens", "tokens", 0), ("words", "words", 0), ("speech_s", "s", 1))
"""What is told of a slot: name, head, decimals."""


def modes_table(report: Report, looks: Sequence[Look]) -> Safe:
    """The whole table."""
    slots = _slots(report)
    groups = [
        tag("th", "", scope="col"),
        tag("th", "voice to voice, ms", scope="colgroup", colspan=3),
        tag("th", f"within {report.budget_ms:g} ms", scope="colgroup", colspan=2),
        *(tag("th", head, scope="colgroup", colspan=len(SAID), class_=class_) for _, head, class_ in slots),
        tag("th", "headline tok", scope="col"),
        tag("th", "$ per", scope="col"),
    ]
    last = f"by {report.slots_ms[-1]:g} ms" if report.slots_ms else ""
    heads = [
        tag("th", "mode", scope="col"),
        *(tag("th", head, scope="col") for head in ("p50", "p95", "n", "share")),
        tag("th", tag("span", "0"), tag("span", "100"), scope="col", class_="axis"),
        *(tag("th", head, scope="col", class_=class_) for _, _, class_ in slots for _, head, _ in SAID),
        tag("th", last, scope="col"),
        tag("th", "1000 turns", scope="col"),
    ]
    rows = [_row(report, look, slots) for look in looks]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", "Every mode over the same samples: medians with 95 % intervals", class_="unseen"),
            tag("thead", tag("tr", *groups, class_="groups"), tag("tr", *heads)),
            tag("tbody", *rows),
            class_="modes",
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label="Table of modes",
    )


def _slots(report: Report) -> list[tuple[str, str, str]]:
    """Slot, head and class of the column groups: the nominal slots and the turns' residual slots."""
    nominal = [(f"{slot:g}", f"said by {slot:g} ms", "") for slot in report.slots_ms]
    return [*nominal, (RESIDUAL, "said in the residual slot", "tinted")]


def _row(report: Report, look: Look, slots: Sequence[tuple[str, str, str]]) -> Safe:
    entry, base = look.entry, f"/modes/{look.place}"
    v2v, _budget = entry.voice_to_voice, entry.budget
    others = others_cell(entry)
    high, high_name = (v2v.p95, "p95") if v2v.p95 is not None else (v2v.max, "max")
    cells = [
        tag("th", look.chip(), tag("small", "no turn" if not v2v.n else None), scope="row"),
        _cell("V2V p50, ms", _median(f"{base}/voice_to_voice_ms", v2v), "strong"),
        _cell(
            f"V2V {high_name}, ms",
            join(
                figure(f"{base}/voice_to_voice_ms/{high_name}", high, number(high)),
                tag("small", _high_note(look, high_name)),
            ),
        ),
        _cell(
            "turns that count",
            join(
                figure(f"{base}/voice_to_voice_ms/n", v2v.n, str(v2v.n)),
                tag(
                    "small",
                    "of ",
                    figure(f"{base}/turns/planned", entry.ledger.planned, str(entry.ledger.planned)),
                    title=others,
                ),
            ),
        ),
        _cell(f"turns within {report.budget_ms:g} ms", _share(look, base), "strong share"),
        tag("td", _dot(look), tag("small", f"{entry.budget.hit} of {entry.budget.n} turns"), class_="axis"),
    ]
    for slot, _, class_ in slots:
        place, found = next(((at, one) for at, one in enumerate(entry.slots) if one.slot == slot), (0, None))
        for name, unit, digits in SAID:
            told = "speech, s" if unit == "s" else unit
            label = f"{told}, residual slot" if slot == RESIDUAL else f"{told} by {slot} ms"
            cells.append(_cell(label, _said(f"{base}/slots/{place}", found, name, digits, slot), class_))
    last = next((slot for slot in reversed(list(entry.headlines))), None)
    cells.append(_cell("headline tokens", _headline(look, base, last)))
    usd = usd_per_1000(look)
    shown = tag("span", "not known", class_="mute") if usd is None else tag("span", f"{usd:.2f}")
    mean = entry.usd_per_turn.mean
    cells.append(
        _cell(
            "$ per 1000 turns",
            tag(
                "data",
                shown,
                value="null" if mean is None else repr(mean),
                data_pointer=f"{base}/usd_per_turn/mean",
            ),
        )
    )
    return tag("tr", *cells, class_=look.classes, data_mode=entry.mode)


def _cell(label: str, content: Safe, class_: str = "") -> Safe:
    return tag("td", content, data_label=label, class_=class_ or None)


def _median(path: str, summary: Summary) -> Safe:
    interval = summary.ci95_p50
    around = f"{interval[0]:.0f}–{interval[1]:.0f}" if interval else None
    return join(
        figure(f"{path}/p50", summary.p50, number(summary.p50)), tag("small", around) if around else None
    )


def _high_note(look: Look, name: str) -> str | None:
    if look.entry.voice_to_voice.n == 0:
        return None
    if look.entry.p95_at_most is not None:
        return f"≤ {look.entry.p95_at_most:.0f}"
    return "not proven" if name == "p95" else "maximum"


def _share(look: Look, base: str) -> Safe:
    budget, interval = look.entry.budget, look.entry.budget.ci95
    shown = EMPTY if budget.share is None else f"{whole_percent(budget.share)} %"
    around = None if interval is None else f"{100 * interval[0]:.0f}–{100 * interval[1]:.0f}"
    return join(
        figure(f"{base}/budget/share", budget.share, shown),
        tag("small", around) if around else None,
    )


def _dot(look: Look) -> Safe:
    """The share and its interval on an axis from 0 to 100 %."""
    budget = look.entry.budget
    interval = budget.ci95
    if budget.share is None or interval is None:
        return tag("span", EMPTY)
    return tag(
        "svg",
        line(4, 8, 76, 8, "grid"),
        line(4 + 72 * interval[0], 8, 4 + 72 * interval[1], 8, f"interval {look.colour}"),
        tag("circle", cx=4 + 72 * budget.share, cy=8, r=4, class_=f"dot {look.classes}"),
        viewBox="0 0 80 16",
        class_="mini",
        aria_hidden="true",
    )


def _said(path: str, found: SlotFigures | None, name: str, digits: int, slot: str) -> Safe:
    if found is None:
        return tag("span", EMPTY)
    value = found.delivered[name].p50
    ended = found.ended_before_deadline
    floor = "≥ " if value is not None and ended.share is not None and ended.share > 0.5 else ""
    inside = None
    if (
        slot == RESIDUAL
        and name == "tokens"
        and found.turn_slot_ms is not None
        and found.turn_slot_ms.p50 is not None
    ):
        inside = tag("small", f"in {found.turn_slot_ms.p50:.0f} ms")
    told = (
        number(value, digits) if digits or value is None or value >= 10 else f"{value:.1f}".removesuffix(".0")
    )
    return join(figure(f"{path}/{name}/p50", value, floor + told), inside)


def _headline(look: Look, base: str, slot: str | None) -> Safe:
    if slot is None:
        return tag("span", EMPTY)
    found = look.entry.headlines[slot]
    path = f"{base}/headline_tokens/{slot}"
    assumed = " assumed" if found.assumed and found.published is not None else ""
    return join(
        figure(f"{path}/measured", found.measured, number(found.measured)),
        tag(
            "small",
            "told ",
            figure(f"{path}/published", found.published, number(found.published)),
            assumed,
        ),
    )


def stack_slot(look: Look) -> SlotFigures | None:
    """The figures in what the stack leaves any mode."""
    return next((one for one in look.entry.slots if one.slot == RESIDUAL_STACK), None)


def stage_table(looks: Sequence[Look]) -> Safe:
    """The means near p50 and p95 as a table, folded away."""
    shown = [look for look in looks if look.entry.near_p50 is not None]
    rows = []
    for stage in Stage:
        cells = []
        for look in shown:
            near, far = look.entry.near_p50, look.entry.near_p95
            low = None if near is None else near.stages[stage.value]
            high = None if far is None else far.stages[stage.value]
            base = f"/modes/{look.place}"
            cells.append(
                tag(
                    "td",
                    figure(f"{base}/stages_at_p50_ms/{stage.value}", low, number(low, 1)),
                    " / ",
                    figure(f"{base}/stages_at_p95_ms/{stage.value}", high, number(high, 1)),
                )
            )
        rows.append(tag("tr", tag("th", stage.value, scope="row"), *cells))
    heads = tag(
        "tr", tag("th", "stage", scope="col"), *(tag("th", look.chip(), scope="col") for look in shown)
    )
    work = dict.fromkeys(name for look in shown for name in look.entry.work)
    beside = [tag("tr", tag("th", user_text(name, 40), scope="row"), *_work(shown, name)) for name in work]
    if beside:
        words = "Beside the stages, within their time: medians over all turns"
        beside.insert(0, tag("tr", tag("td", words, colspan=len(shown) + 1, class_="mute")))
    table = tag("table", tag("thead", heads), tag("tbody", *rows, *beside), class_="plain")
    return tag(
        "details",
        tag("summary", "The same figures as a table: ms near p50 / near p95, and work beside the stages"),
        tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Stages as a table"),
    )


def _work(looks: Sequence[Look], name: str) -> list[Safe]:
    """The median of one kind of work in each mode: recognition, the detector, the whole reply, tools."""
    cells = []
    pointed = name.replace("~", "~0").replace("/", "~1")
    for look in looks:
        found = look.entry.work.get(name)
        shown = EMPTY if found is None else number(found.p50, 1)
        path = f"/modes/{look.place}/work_ms/{pointed}/p50"
        cells.append(tag("td", EMPTY if found is None else figure(path, found.p50, shown)))
    return cells


def ledger_table(looks: Sequence[Look]) -> Safe:
    """How every planned turn ended."""
    rows = []
    for look in looks:
        base = f"/modes/{look.place}/turns"
        counts = look.entry.ledger.to_dict()
        told = [
            join(" · " if place else "", figure(f"{base}/{name}", count, f"{count} {name.replace('_', ' ')}"))
            for place, (name, count) in enumerate((name, count) for name, count in counts.items() if count)
        ]
        excluded = look.entry.voice_to_voice.excluded
        kept = f" · {excluded} kept out of the medians by a flag" if excluded else None
        rows.append(tag("li", look.chip(), ": ", *told, kept))
    return tag("ul", *rows, class_="ledger")
