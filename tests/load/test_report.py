"""What a report and a comparison say of the load that a run was under."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.comparison import compare
from voicebench.analysis.comparison_pairs import Side
from voicebench.analysis.report import build_report
from voicebench.export.load_table import load_line, load_rows
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunInfo

LOAD = {"sessions": 4, "rate_per_s": 2.0, "achieved_per_s": 1.5}


def scheduled(turn: int, queue_ms: float, **fields: Any) -> TurnRecord:
    """A turn of 700 ms that waited so long for a session."""
    timed = {"queue_ms": queue_ms, "service_ms": 700.0, "from_schedule_ms": queue_ms + 700.0}
    return made(turn, **{**timed, **fields})


def codes(records: list[TurnRecord], load: dict[str, Any] | None, **facts: Any) -> set[str]:
    """The caveats of a run under that load."""
    return {found.code for found in build_report(run_info(records, load=load, **facts), records).caveats}


def test_a_run_without_a_schedule_has_no_figure_of_one() -> None:
    """No wait was measured: null in JSON and no table, never 0; a plain run names no load."""
    records = [made(turn) for turn in range(3)]
    report = build_report(run_info(records), records)
    assert report.to_dict()["modes"][0]["load"] is None
    assert report.to_dict()["run"]["load"] is None
    assert load_rows(report) == ()
    assert load_line(report) is None


def test_those_that_waited_are_counted_beside_the_figures() -> None:
    """The latency from the schedule is over the turns that count; a turn that failed has waited, too."""
    records = [scheduled(0, 0.4), scheduled(1, 250.0)]
    records.append(scheduled(2, 500.0, outcome="failed", reason="x", service_ms=None, from_schedule_ms=None))
    report = build_report(run_info(records, load=LOAD), records)
    load = report.to_dict()["modes"][0]["load"]
    assert load["waited"] == 2
    assert (load["queue_ms"]["n"], load["queue_ms"]["mean"]) == (2, pytest.approx(125.2))
    assert load["from_schedule_ms"]["max"] == 950.0
    [queued] = [found for found in report.caveats if found.code == "queued"]
    assert queued.count == 2
    assert "500 ms" in queued.text
    assert load_line(report) == "4 sessions at once, 2 turns a second on a schedule, 1.5 a second run"


def test_a_machine_that_was_the_bottleneck_is_named() -> None:
    """Busy processors, a tenth of the turns lost to them, and models that sessions share are each told, and
    none of it of a run whose turns followed one another."""
    calm = [scheduled(turn, 0.0, cpu_busy=0.3) for turn in range(10)]
    assert not codes(calm, LOAD) & {"queued", "harness_limited", "processors_busy", "shared_models"}
    busy = [scheduled(turn, 0.0, cpu_busy=0.95) for turn in range(10)]
    assert "processors_busy" in codes(busy, LOAD)
    assert "processors_busy" not in codes(busy, None)
    limited = [scheduled(turn, 0.0, flags=["client_limited"] if turn < 2 else []) for turn in range(10)]
    assert "harness_limited" in codes(limited, LOAD)
    assert "harness_limited" not in codes(limited, None)
    assert "shared_models" in codes(calm, LOAD, models={"tiny.en": {}})
    assert "shared_models" not in codes(calm, {**LOAD, "sessions": 1}, models={"tiny.en": {}})


def test_runs_under_different_loads_are_compared_with_a_word_on_it() -> None:
    """What more sessions cost is a fair question; that the load differs stands beside the answer."""
    records = [made(turn) for turn in range(12)]
    one = Side.of(RunInfo.model_validate(run_info(records)), records)
    four = Side.of(RunInfo.model_validate({**run_info(records, load=LOAD), "id": "run-b"}), records)
    told = {found.code: found.text for found in compare(one, four).caveats}
    assert "sessions" in told["different_loads"]
    same = {found.code for found in compare(one, one).caveats}
    assert "different_loads" not in same
