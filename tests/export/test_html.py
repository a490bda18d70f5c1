"""The HTML report: one safe file, in order, with the figures of all other formats."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

from tests.analysis.made_run import made_run, run_info
from tests.export.html_page import Page, at, page_of, part
from tests.export.made_modes import five_modes
from tests.export.test_formats import as_json, as_rows, as_tables
from tests.turns.made import made, made_deltas, made_marks
from voicebench.analysis.report import Report, build_report
from voicebench.export.html.page import export
from voicebench.export.registry import exporter


def test_all_four_formats_tell_the_same_figures() -> None:
    """HTML, JSON, CSV and Markdown agree on medians, shares, stages, tokens and counts at every mode."""
    info, records = made_run(turns=200)
    report = build_report(info, records)
    page, told = Page(export(report, records)), as_json(report, records)
    rows, tables = as_rows(report, records), as_tables(report, records)
    assert page.block("report-json") == told
    figures = {found["data-pointer"]: found["value"] for tag, found in page.tags if tag == "data"}
    assert len(figures) > 60
    for tag, found in page.tags:
        if tag == "data":
            pointer = found["data-pointer"] or ""
            assert json.loads(found["value"] or "") == at(told, pointer), pointer
    for place, entry in enumerate(told["modes"]):
        counted = [row for row in rows if row["mode"] == entry["mode"] and row["counted"] == "true"]
        median = float(np.median([float(row["voice_to_voice_ms"]) for row in counted]))
        assert float(figures[f"/modes/{place}/voice_to_voice_ms/p50"] or "") == pytest.approx(median)
        latency = tables["Voice-to-voice latency (ms)"][place]
        assert latency["p50 (95 %)"].split(" ")[0] == f"{median:.0f}"
        for stage in entry["stages_at_p50_ms"]:
            assert f"/modes/{place}/stages_at_p50_ms/{stage}" in figures
        residual = next(n for n, slot in enumerate(entry["slots"]) if slot["slot"] == "residual")
        assert f"/modes/{place}/slots/{residual}/tokens/p50" in figures


def test_what_is_shown_is_the_rounded_figure() -> None:
    """The visible median is the unrounded one in whole ms."""
    info, records = made_run(turns=60)
    page = page_of(records, info)
    found = re.findall(
        r"<data value=([\d.]+) data-pointer=/modes/\d/voice_to_voice_ms/p50>([^<]*)</data>", page.source
    )
    assert len(found) == 2
    assert [shown for _, shown in found] == [f"{float(value):.0f}" for value, _ in found]


def test_the_sections_stand_in_reading_order() -> None:
    """Verdict, modes, stages, slot, distribution, price, turns, machine."""
    info, records = five_modes(12)
    ids = [found["id"] for tag, found in page_of(records, info).tags if tag in ("h1", "h2") and "id" in found]
    assert ids == [
        *("verdict", "predicted", "modes", "stages", "slot", "spread", "price", "turns", "machine"),
    ]


def test_predictions_are_labelled_and_stand_beside_the_verdict() -> None:
    """The margin says that its figures are predicted, before it gives any."""
    info, records = five_modes(20)
    text = " ".join(page_of(records, info).texts)
    label = text.index("Predicted, not measured: share")
    assert label < text.index("infinitely fast ASR")


def test_each_caveat_stands_once() -> None:
    """Every code of the report has one note, in its words, and no other note is there."""
    info, records = made_run(turns=30)
    report = build_report(info, records)
    page = Page(export(report, records))
    codes = page.attributes("data-caveat")
    assert sorted(codes) == sorted({caveat.code for caveat in report.caveats})
    notes = dict(re.findall(r"<p class=caveat data-caveat=(\w+)>(.*?)</p>", page.source, re.S))
    for caveat in report.caveats:
        shown = html.unescape(re.sub(r"<[^>]+>", "", notes[caveat.code]))
        assert set(re.findall(r"[A-Za-z]{4,}", caveat.text)) <= set(re.findall(r"[A-Za-z]{4,}", shown))
        assert set(re.findall(r"\d+", caveat.text)) <= set(re.findall(r"\d+", shown))


@pytest.mark.parametrize("what", ["no turn completed", "no turn at all"])
def test_a_run_without_figures_is_told_without_charts_of_nothing(what: str) -> None:
    """Nothing measured: no chart, no zero in place of a figure, and no caveat lost."""
    records = [made(n, outcome="timed_out", reason="x", reply=None, deltas=()) for n in range(4)]
    if what == "no turn at all":
        records = []
    report = build_report(run_info(records), records)
    page = Page(export(report, records))
    assert not [found for tag, found in page.tags if tag == "svg" and "chart" in (found.get("class") or "")]
    medians = [found for tag, found in page.tags if (found.get("data-pointer") or "").endswith("ms/p50")]
    assert [found["value"] for found in medians] == ["null"] * len(medians)
    assert sorted(page.attributes("data-caveat")) == sorted({caveat.code for caveat in report.caveats})


def test_a_caveat_of_a_chart_that_is_left_out_stands_under_the_table() -> None:
    """Every turn was cut off: there is no distribution, and its caveat is told all the same."""
    records = [made(n, v2v_ms=-100.0, flags=["cutoff"], cutoffs=1) for n in range(12)]
    page = page_of(records)
    assert "labelledby=spread" not in page.source
    assert "data-caveat=cutoff" in part(page, "modes", "price")


def test_one_turn_makes_a_report() -> None:
    """A single turn is drawn, and its share is not claimed."""
    page = page_of([made(0)])
    assert page.names["details"] >= 1
    assert "too few to tell" in page.source


def test_a_partial_run_says_so_first() -> None:
    """The warning stands before the verdict."""
    planned = [made(n) for n in range(12)]
    source = page_of(planned[:11], run_info(planned)).source
    assert source.index("PARTIAL") < source.index("<h1")


def test_emulated_modes_are_named_and_hatched_wherever_they_show() -> None:
    """Rows, curves, hills, points and turns of an emulated mode carry the class that hatches them."""
    records = [
        *(
            made(n, mode="own/replay", mode_kind="emulated", usd=0.01, marks=made_marks(vad_stop=200 + n))
            for n in range(12)
        ),
        *(made(20 + n, usd=0.01) for n in range(12)),
    ]
    page = page_of(records)
    drawn = [
        (found.get("class") or "").split()
        for tag, found in page.tags
        if tag in ("g", "tr", "circle", "section", "svg", "use")
        and re.search(r"\bm\d[ab]\b", found.get("class") or "")
    ]
    hatched = {name for found in drawn if "emu" in found for name in found if re.fullmatch(r"m\d[ab]", name)}
    assert len(hatched) == 1
    (colour,) = hatched
    assert all(("emu" in found) == (colour in found) for found in drawn)
    shown = re.sub(r"\s+", " ", " ".join(page.texts))
    assert "own/replay (emulated)" in shown
    assert "own, emulated" in shown


def test_a_mode_without_a_price_is_in_its_own_lane_and_never_at_zero() -> None:
    """An unknown price has words, no place on the dollar axis and an empty figure."""
    records = [
        *(made(n, mode="a/priced", usd=0.02) for n in range(12)),
        *(made(20 + n, mode="b/unknown") for n in range(12)),
    ]
    page = page_of(records)
    assert "no price known" in page.source
    figures = {found["data-pointer"]: found["value"] for tag, found in page.tags if tag == "data"}
    assert figures["/modes/1/usd_per_turn/mean"] == "null"
    section = part(page, "price", "turns")
    wide = section[section.index('class="chart wide"') : section.index("</svg>")]
    xs = [float(x) for x in re.findall(r"<circle cx=([\d.]+)", wide)]
    lane = float(re.findall(r"<rect x=([\d.]+)", wide)[0])
    assert len(xs) == 2
    assert xs[0] < lane < xs[1]


def test_the_price_chart_is_left_out_with_a_word_where_nothing_has_a_price() -> None:
    """No price at all: a sentence, no chart."""
    page = page_of([made(n) for n in range(12)])
    section = part(page, "price", "turns")
    assert "<svg" not in section
    assert "No mode has a known price" in section


def test_turns_come_slowest_first_and_one_is_open() -> None:
    """Turns are ordered by latency, those without one last, and only the slowest is unfolded."""
    records = [made(n, v2v_ms=600 + 10 * (n * 7 % 11), sample=f"s{n}") for n in range(11)]
    records.append(made(20, outcome="failed", reason="broken", sample="bad"))
    page = page_of(records)
    shown = [int(one) for one in re.findall(r"<b(?: class=over)?>(\d+)", page.source)]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == 11
    assert len([1 for tag, found in page.tags if tag == "details" and "open" in found]) == 1
    assert page.source.index("broken") > page.source.index("s0")


def test_the_stages_of_a_waterfall_tile_the_turn() -> None:
    """Each bar begins where the one before it ends, at its share of the scale."""
    page = page_of([made(0)])
    (drawn,) = re.findall(r'<svg viewBox="0 0 1000 12"[^>]*>(.*?)</svg>', page.source)
    bars = [(int(a), int(b)) for a, b in re.findall(r"M(\d+) 6H(\d+)", drawn)]
    assert len(bars) == 8
    assert [begin for begin, _ in bars[1:]] == [end for _, end in bars[:-1]]
    assert bars[-1][1] == round(1000 * 700 / 880)


def test_200_turns_of_five_modes_stay_small() -> None:
    """Under 330 KB, with a waterfall for each turn."""
    info, records = five_modes(40)
    content = export(build_report(info, records), records)
    assert len(content) < 330_000
    assert content.count(b"<details name=turn") == 200


def test_many_turns_are_sampled_and_it_is_said() -> None:
    """Of more turns 200 are shown, fairly over the modes, the slowest and the quickest among them."""
    info, records = five_modes(300)
    report = build_report(info, records)
    content = export(report, records)
    assert len(content) < 2_000_000
    assert content.count(b"<details name=turn") == 200
    assert content.count(b"A sample of 40 of 300 turns") == 5
    for entry in report.modes:
        for edge in (entry.voice_to_voice.min, entry.voice_to_voice.max):
            assert f">{edge:.0f}</b>".encode() in content


def test_text_that_was_left_out_is_said_to_be() -> None:
    """A run without texts shows none, and no empty quotation."""
    page = page_of([made(n, transcript=None, reply=None, first_clause=None) for n in range(12)])
    assert "the text was not kept" in page.source
    assert "“”" not in page.source


def test_a_long_reply_is_cut() -> None:
    """A reply of a megabyte does not make the page one."""
    assert len(page_of([made(0, reply="word " * 200_000)]).source) < 200_000


def test_the_export_is_the_same_each_time() -> None:
    """No clock, no chance: the same run gives the same bytes, by name in the registry."""
    info, records = made_run(turns=30)
    report: Report = build_report(info, records)
    function, suffix = exporter("html")
    assert suffix == "html"
    assert function(report, records) == export(report, records)


def test_a_run_without_nominal_slots_is_told() -> None:
    """With no slot asked for, the residual one alone is drawn and told."""
    records = [made(n) for n in range(12)]
    report = build_report(run_info(records), records, slots_ms=[])
    page = Page(export(report, records))
    assert page.names["fieldset"] == 1
    assert "residual slot" in page.source


def test_odd_replies_are_drawn() -> None:
    """One delta, none, all at once, or before the slot: every chart stands."""
    deltas = [made_deltas(1), (), made_deltas(5, 0, 0), made_deltas(3, 5000, 10)]
    records = [made(n, deltas=deltas[n % 4]) for n in range(16)]
    assert page_of(records).names["fieldset"] == 1


def test_candidates_requests_and_tools_are_told_in_their_turn() -> None:
    """Each candidate with its times, outcome and price, the one that was taken marked; each tool call with
    its time and what it raised; of many only the first, with how many more."""
    ms = 1_000_000
    candidate = {
        "mode": "x/one",
        "request_ns": 310 * ms,
        "first_text_ns": 400 * ms,
        "status": "ok",
        "usd": 0.001,
    }
    other = {**candidate, "mode": "x/two", "status": "cancelled", "first_text_ns": None}
    tool = {"name": "opening_hours", "start_ns": 500 * ms, "end_ns": 560 * ms, "arguments": "{}"}
    failed = {"name": "broken", "start_ns": 0, "error": "no such <place>"}
    records = [
        made(0, candidates=[{**candidate, "chosen": True}, *[other] * 19]),
        made(1, requests=[candidate, candidate], tools=[tool, failed], work_ms={"tool": 60.0}),
    ]
    text = re.sub(r"\s+", " ", " ".join(page_of(records).texts))
    assert re.search(r"x/one taken : first text 90 ms · \$0.00100", text)
    assert "x/two : cancelled · $0.00100" in text
    assert "and 8 more" in text
    assert re.search(r"opening_hours \{\} : 60 ms", text)
    assert re.search(r"broken : not ended · no such <place>", text)


def test_work_beside_the_stages_is_told_by_mode() -> None:
    """The table of stages has a row for each kind of work, a tool's time among them, never in the sum."""
    records = [made(n, work_ms={"tool": 60.0 + n, "asr": 40.0}) for n in range(12)]
    page = page_of(records)
    figures = {found["data-pointer"]: found["value"] for tag, found in page.tags if tag == "data"}
    assert figures["/modes/0/work_ms/tool/p50"] == "65.5"
    assert figures["/modes/0/work_ms/asr/p50"] == "40.0"
