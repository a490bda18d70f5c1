"""The top of the page: the verdict in words, and in the margin what is predicted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voicebench.analysis.counterfactual import Prediction
from voicebench.analysis.report import Report
from voicebench.analysis.verdict import Verdict, whole_percent
from voicebench.export.html.look import Look
from voicebench.export.html.markup import Safe, join, tag, tight, user_text
from voicebench.export.tables import headline_lines

MOST_COLUMNS = 3
"""So many modes stand in the margin: those that miss the budget most often. The list below has all."""

_ASIDE = re.compile(r"(\((?:emulated|local|annotated|waveform|vad_backdated|, )+\))")


def opening(report: Report, looks: Sequence[Look], verdict: Verdict) -> Safe:
    """The head of the report."""
    anchors = {look.entry.anchor.value for look in looks if look.entry.anchor is not None}
    facts = [f"run {report.run.id}", report.run.started_at, f"budget {report.budget_ms:g} ms"]
    facts += [f"speech end {', '.join(sorted(anchors))}"] if anchors else []
    facts += [f"{sum(look.entry.ledger.planned for look in looks)} turns planned"]
    partial = None
    if not report.complete:
        partial = tag("p", user_text(headline_lines(report)[0]), class_="partial")
    return tag(
        "header",
        tag(
            "p",
            tag("b", "voicebench"),
            " report · ",
            user_text(" · ".join(facts)),
            tag("button", "Light or dark", type="button", id="theme", hidden=True),
            class_="runline",
        ),
        partial,
        tag(
            "div",
            tag("div", _words(verdict), class_="verdict"),
            _predicted(report, looks, verdict),
            class_="with-notes opening",
        ),
    )


def _words(verdict: Verdict) -> Safe:
    return join(
        tag("h1", _softened(verdict.headline), id="verdict"),
        tag("p", tight(f"{verdict.left} {verdict.bottleneck}"), class_="lead"),
        tag("p", tight(verdict.advice), class_="lead predicted") if verdict.advice else None,
        *(tag("p", tight(words), class_="faster") for words in verdict.faster_words),
    )


def _softened(sentence: str) -> Safe:
    """The sentence with `(emulated)` and the like in a softer tone."""
    parts = _ASIDE.split(sentence)
    return join(
        *(
            tag("span", part, class_="mute") if place % 2 else tight(part)
            for place, part in enumerate(parts)
            if part
        )
    )


def _predicted(report: Report, looks: Sequence[Look], verdict: Verdict) -> Safe:
    """The margin: for the modes that miss most, what would change it. Labelled as predicted."""
    by_mode: dict[tuple[str, object], list[Prediction]] = {}
    for one in verdict.predictions:
        by_mode.setdefault((one.mode, one.anchor), []).append(one)
    shown = [look for look in looks if (look.entry.mode, look.entry.anchor) in by_mode]
    shown = sorted(shown, key=lambda look: look.entry.budget.share or 0.0)[:MOST_COLUMNS]
    shown = sorted(shown, key=lambda look: look.place)
    head = join(
        tag("h2", "What would change it", id="predicted"),
        tag("p", f"Predicted, not measured: share within {report.budget_ms:g} ms", class_="mute"),
    )
    if not shown:
        return tag("aside", head, tag("p", "Cannot tell: no turn has stages."), class_="notes predictions")
    columns = [by_mode[look.entry.mode, look.entry.anchor] for look in shown]
    codes = dict.fromkeys(one.code for column in columns for one in column)
    rows = [tag("tr", tag("th", "as measured", scope="row"), *(_measured(look) for look in shown))]
    for code in codes:
        found = [next((one for one in column if one.code == code), None) for column in columns]
        words = next(one.words for one in found if one is not None)
        if len({one.words for one in found if one is not None}) > 1:
            words = "LLM of the fastest mode"
        rows.append(
            tag("tr", tag("th", user_text(words, 60), scope="row"), *(tag("td", _cell(one)) for one in found))
        )
    heads = tag(
        "tr",
        tag("td"),
        *(
            tag("th", look.swatch(), tag("b", user_text(look.name, 40), class_=look.colour), scope="col")
            for look in shown
        ),
    )
    return tag(
        "aside",
        head,
        tag("table", tag("thead", heads), tag("tbody", *rows)),
        _full_table(looks, verdict),
        class_="notes predictions",
        aria_labelledby="predicted",
    )


def _measured(look: Look) -> Safe:
    share = look.entry.budget.share
    return tag("td", "–" if share is None else f"{whole_percent(share)} %", class_="mute")


def _cell(one: Prediction | None) -> str:
    if one is None:
        return "–"
    return "cannot tell" if one.share is None else f"{whole_percent(one.share)} %"


def _full_table(looks: Sequence[Look], verdict: Verdict) -> Safe:
    """Every prediction with its median, interval and what it takes for granted."""
    names = {(look.entry.mode, look.entry.anchor): look for look in looks}
    items = []
    for one in verdict.predictions:
        look = names[one.mode, one.anchor]
        told = one.reason or _told(one)
        items.append(
            tag(
                "li",
                tag("b", user_text(look.name, 60), class_=look.colour),
                ", ",
                user_text(one.words),
                ": ",
                user_text(told),
            )
        )
    notes = dict.fromkeys((one.words, one.note) for one in verdict.predictions)
    return tag(
        "details",
        tag("summary", "All predictions, and what they take for granted"),
        tag("ul", *items),
        *(tag("p", tag("b", user_text(words)), ": ", user_text(words_note)) for words, words_note in notes),
    )


def _told(one: Prediction) -> str:
    interval = one.ci95
    around = f" [{100 * interval[0]:.0f}–{100 * interval[1]:.0f}]" if interval else ""
    median = "" if one.p50_ms is None else f", p50 {one.p50_ms:.0f} ms"
    return f"{whole_percent(one.share or 0)} %{around}{median} (n = {one.n})"
