"""What a fast mode is worth against its standard sibling: milliseconds, points of the budget, dollars."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.report import Report, build_report
from voicebench.export.tables import tables_of
from voicebench.turns.records import TurnRecord

SAMPLES = 8


def turns(mode: str, v2v_ms: float, usd: float | None) -> list[TurnRecord]:
    """A turn for each sample, a little apart from each other."""
    return [
        made(number, mode=mode, sample=f"s{number}", repeat=0, v2v_ms=v2v_ms + number, usd=usd)
        for number in range(SAMPLES)
    ]


def report_of(fast: str, slow_ms: float, fast_ms: float, usd: float | None, **config: Any) -> Report:
    """A run of the standard mode at $0.002 a turn and a faster one."""
    records = [*turns("emulated/opus-4.6", slow_ms, 0.002), *turns(fast, fast_ms, usd)]
    return build_report(run_info(records, config=config), records)


def test_dollars_for_each_millisecond_and_each_point() -> None:
    """$10 more for 1000 turns that save 200 ms and win 100 points: 5 cents a millisecond, 10 a point."""
    told = report_of("emulated/opus-4.6-fast", 900, 700, 0.012).to_dict()
    [worth] = told["worth"]
    assert (worth["mode"], worth["sibling"]) == ("emulated/opus-4.6-fast", "emulated/opus-4.6")
    assert worth["saved_ms"] == pytest.approx(200)
    assert worth["points"] == pytest.approx(100)
    assert worth["extra_usd_per_1000"] == pytest.approx(10)
    assert worth["usd_per_1000_per_ms"] == pytest.approx(0.05)
    assert worth["usd_per_1000_per_point"] == pytest.approx(0.10)
    prices = {entry["mode"]: entry["usd_per_1000_turns"] for entry in told["modes"]}
    assert prices == pytest.approx({"emulated/opus-4.6": 2.0, "emulated/opus-4.6-fast": 12.0})


def test_without_a_gain_there_is_no_price_of_it() -> None:
    """Time that saves no turn's budget has a price a millisecond and none a point."""
    [worth] = report_of("emulated/opus-4.6-fast", 700, 600, 0.012).to_dict()["worth"]
    assert worth["usd_per_1000_per_ms"] == pytest.approx(0.1)
    assert (worth["points"], worth["usd_per_1000_per_point"]) == (0.0, None)


@pytest.mark.parametrize("key", ["sets", "routes"])
def test_a_set_or_a_route_is_held_against_what_it_names(key: str) -> None:
    """Its price is its own; one that is not known leaves dollars empty and the rest told."""
    config = {key: [{"id": "set/x3", "sibling": "emulated/opus-4.6"}]}
    [worth] = report_of("set/x3", 900, 700, None, **config).to_dict()["worth"]
    assert (worth["mode"], worth["saved_ms"]) == ("set/x3", pytest.approx(200))
    assert (worth["extra_usd_per_1000"], worth["usd_per_1000_per_ms"]) == (None, None)


def test_a_mode_without_its_sibling_in_the_run_is_held_against_none() -> None:
    """Nothing is told of a pair of which one half was not run."""
    records = turns("emulated/opus-4.6-fast", 700, 0.01)
    report = build_report(run_info(records), records)
    assert report.to_dict()["worth"] == []
    assert "Against the standard mode" not in [table.title for table in tables_of(report)]


def test_the_table_tells_the_same() -> None:
    """The figures of report.json, one row a pair."""
    report = report_of("emulated/opus-4.6-fast", 900, 700, 0.012)
    [table] = [table for table in tables_of(report) if table.title == "Against the standard mode"]
    [row] = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["saved (ms)"].startswith("200 (")
    assert (cells["USD more per 1000 turns"], cells["USD per ms"], cells["USD per point"]) == (
        "10.00",
        "0.0500",
        "0.100",
    )
