"""What surrounds a run moves none of its figures: time zone, locale, a cold first call, a second time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.made_run import run_info
from tests.crash.quick_runs import Quiet, made_turn, no_pipelines, quick_plan
from tests.pipeline.driven import scripted
from tests.slot.slot_runs import quick, ran, slot_plan
from tests.test_runner import spoken
from tests.turns.made import made
from voicebench.analysis.history import history_of
from voicebench.analysis.report import build_report
from voicebench.export.run_report import report_of
from voicebench.load import Offered
from voicebench.plan.plan import PlannedTurn
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder

ZONES = ("Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Lets a test change the time zone; afterwards it is as it was."""
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system's zone cannot be changed for one process")
async def test_a_change_of_the_time_zone_moves_no_duration(tmp_path: Path, zone: pytest.MonkeyPatch) -> None:
    """The zone changes by many hours after each turn, as a daylight saving change would by one: durations are
    as long as they were, instants are in UTC."""
    changes = iter((*ZONES, *ZONES))

    def told(_: TurnRecord) -> None:
        zone.setenv("TZ", next(changes))
        time.tzset()

    plan = make_plan(scripted(repeats=3, turn_timeout_s=10), [spoken(tmp_path, "a")])
    folder = await run(plan, RunOptions(out=tmp_path / "run"), Quiet(told))
    for record in folder.turns().records:
        assert record.outcome is Outcome.COMPLETED
        assert record.voice_to_voice_ms is not None
        assert 0 < record.voice_to_voice_ms < 10_000
        assert all((part or 0.0) >= 0 for part in (record.stages_ms or {}).values())
        assert all(0 <= part < 10_000 for part in record.work_ms.values())
    info = folder.info()
    assert info.ended_at is not None
    assert info.started_at.endswith("Z")
    assert info.started_at <= info.ended_at < info.started_at[:11] + "99"


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system's zone cannot be changed for one process")
def test_runs_around_a_change_of_the_clocks_stay_in_order(zone: pytest.MonkeyPatch) -> None:
    """Two runs of the night on which Berlin's clocks go back are told in their order in time, though the
    later one has the earlier local time."""
    zone.setenv("TZ", "Europe/Berlin")
    time.tzset()
    night = ("2026-10-25T00:30:00Z", "2026-10-25T01:15:00Z")  # 02:30 summer time, 02:15 winter time
    reports = [
        build_report(
            {**run_info([made(run=f"at-{started_at}")]), "id": f"at-{started_at}", "started_at": started_at},
            [made(run=f"at-{started_at}")],
        )
        for started_at in reversed(night)
    ]
    [trend] = history_of(reports).trends
    assert [point.started_at for point in trend.points] == list(night)


def test_a_locale_without_utf_8_loses_nothing(tmp_path: Path) -> None:
    """Under the C locale with an ASCII terminal a run with any script in its texts is written and told
    whole: files are UTF-8, and nothing ends in a traceback."""
    quick_plan(tmp_path, 1)
    program = (
        "import sys; from pathlib import Path; from tests.crash.quick_runs import no_pipelines\n"
        "from tests.cli.running import scripted_config; from voicebench.__main__ import main\n"
        "here = Path(sys.argv[1]); config = scripted_config(here, 'repeats: 6\\n')\n"
        "with no_pipelines():\n"
        "    sys.exit(main(['batch', str(here / 'spoken.wav'), '--config', str(config),\n"
        "                   '--out', sys.argv[2], '--verbose']))\n"
    )
    root = Path(__file__).parents[2]
    surroundings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(tmp_path / "run ☃")],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **surroundings},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in (0, 4), done.stderr[-2000:]
    [folder] = [path for path in tmp_path.iterdir() if path.name.startswith("run")]
    replies = [one.reply or "" for one in RunFolder.open(folder).turns().records]
    assert len(replies) == 6
    assert any("Ünd ☃" in reply for reply in replies)
    assert json.loads((folder / "report.json").read_text("utf-8"))["run"]["complete"] is True


def test_a_slow_first_call_moves_no_percentile(tmp_path: Path) -> None:
    """A first call that takes 5 s longer, as a cold model's does, leaves p50 and p95 exactly as they are."""

    def figures(name: str, cold_ms: float) -> dict[str, Any]:
        calls = 0

        async def turn(bench: Any, offered: Offered[PlannedTurn], *, keep_audio: bool = False) -> TurnRecord:
            nonlocal calls
            await asyncio.sleep(0)
            calls += 1
            record = made_turn(offered.turn, bench._folder.id)
            late = (record.voice_to_voice_ms or 0.0) + (cold_ms if calls == 1 else 0.0)
            return record.model_copy(update={"voice_to_voice_ms": late})

        with no_pipelines(turn):
            asyncio.run(
                run(quick_plan(tmp_path, 60), RunOptions(out=tmp_path / name, environment={}), Quiet())
            )
        report = report_of(RunFolder.open(tmp_path / name)).report.to_dict()
        found: dict[str, Any] = report["modes"][0]
        return found

    warm, cold = figures("warm", 0.0), figures("cold", 5_000.0)
    assert warm["voice_to_voice_ms"]["n"] >= 20
    assert warm["voice_to_voice_ms"]["p95"] is not None
    assert cold["voice_to_voice_ms"] == warm["voice_to_voice_ms"]
    assert cold["warmup_voice_to_voice_ms"][0] == warm["warmup_voice_to_voice_ms"][0] + 5_000.0


async def test_the_same_seed_gives_the_same_replies_and_outcomes(tmp_path: Path) -> None:
    """Two runs over the emulator, one mode with a fault, agree turn by turn in order, reply, count and
    outcome."""
    modes = [quick("a"), quick("b", emulation={"fault": "529"})]
    told = [
        await ran(slot_plan(*modes, requests=3, seed=11), tmp_path / f"run-{number}") for number in range(2)
    ]
    first, again = (
        [
            (one.turn, one.mode, one.sample, one.repeat, one.outcome, one.reply, one.usage)
            for one in run_told.records
        ]
        for run_told in told
    )
    assert first == again
    assert {row[4] for row in first} == {Outcome.COMPLETED, Outcome.OVERLOADED}
