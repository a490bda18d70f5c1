"""The trend over several runs: one point a run and mode, in the order of time."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from tests.analysis.made_pairs import turns
from tests.analysis.made_run import run_info
from tests.cli.made_runs import folder
from tests.turns.made import made
from voicebench.analysis.history import history_of
from voicebench.analysis.report import Report, build_report
from voicebench.cli.report import report
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunFolder

app = typer.Typer()
app.command()(report)


def run_of(records: list[TurnRecord], run: str, day: int, **fields: object) -> Report:
    """The report of a run on a day of a month."""
    info = run_info(records, id=run, started_at=f"2026-03-{day:02d}T10:00:00Z", **fields)
    return build_report(info, records)


def test_points_stand_in_the_order_of_time() -> None:
    """Runs named in any order, one of them twice, give one point each from the oldest on."""
    old, new = run_of(turns([700.0] * 8), "old", 1), run_of(turns([650.0] * 9), "new", 2)
    (trend,) = history_of([new, old, new]).trends
    assert [(point.run, point.voice_to_voice.n, point.voice_to_voice.p50) for point in trend.points] == [
        ("old", 8, 700.0),
        ("new", 9, 650.0),
    ]


def test_modes_and_anchors_have_trends_of_their_own() -> None:
    """A mode that one run lacks has fewer points; another source of the end of speech is another trend."""
    first = run_of([*turns([700.0] * 6), *turns([900.0] * 6, mode="x/other")], "one", 1)
    second = run_of([*turns([700.0] * 6), made(99, anchor="waveform")], "two", 2)
    found = {(trend.mode, trend.anchor): len(trend.points) for trend in history_of([first, second]).trends}
    assert found == {
        ("local/made", "annotated"): 2,
        ("x/other", "annotated"): 1,
        ("local/made", "waveform"): 1,
    }


def test_a_point_tells_interval_share_n_date_and_budget() -> None:
    """The plain form has the median with its interval, the share of each run's own budget, n and the date."""
    records = [*turns([700.0] * 9), made(9, outcome="timed_out")]
    told = history_of([run_of(records, "one", 1, budget_ms=650)]).to_dict()
    (trend,) = told["history"]
    (point,) = trend["points"]
    assert (point["run"], point["started_at"], point["complete"]) == ("one", "2026-03-01T10:00:00Z", True)
    assert point["voice_to_voice_ms"]["ci95_p50"] == [700.0, 700.0]
    assert (point["budget_ms"], point["budget"]["hit"], point["budget"]["n"]) == (650, 0, 10)


def test_a_mode_whose_turns_all_failed_has_an_empty_point() -> None:
    """No latency is an empty figure, not 0 and not a missing run."""
    (trend,) = history_of([run_of([made(n, outcome="failed") for n in range(3)], "one", 1)]).trends
    assert trend.points[0].voice_to_voice.p50 is None
    assert trend.points[0].budget.n == 3


def test_the_report_of_several_runs_ends_with_the_trend(tmp_path: Path) -> None:
    """Two runs give a row each in the trend; with --json one object holds the trend and both reports."""
    runs = [folder(tmp_path / name, turns([value] * 8)) for name, value in (("a", 700.0), ("b", 650.0))]
    told = CliRunner().invoke(app, list(map(str, runs)), catch_exceptions=False, env={"COLUMNS": "160"})
    trend = told.stdout[told.stdout.index("Trend of V2V") :]
    assert all(RunFolder.open(run).id in trend for run in runs)
    assert "700 (700–700)" in trend
    result = CliRunner().invoke(app, [*map(str, runs), "--json"], catch_exceptions=False)
    whole = json.loads(result.stdout)
    assert [point["voice_to_voice_ms"]["p50"] for point in whole["history"][0]["points"]] in (
        [700, 650],
        [650, 700],
    )
    assert len(whole["runs"]) == 2
    assert "Trend of V2V" in result.stderr
