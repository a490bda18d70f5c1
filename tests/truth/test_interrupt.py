"""Ctrl-C with several sessions: a partial report in time, and a run that can be gone on with."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import ENERGY, interrupted, scripted_config, tones, voicebench
from voicebench.turns.run_folder import RunFolder


def test_sessions_that_are_interrupted_are_resumed_as_many(tmp_path: Path) -> None:
    """Ctrl-C leaves a partial report within two seconds; resumed, with as many sessions and at the same rate,
    the run holds each turn once."""
    config = scripted_config(tmp_path, f"repeats: 3\n{ENERGY}")
    schedule = ("--sessions", "3", "--rate", "20")
    ended = interrupted(
        "batch", tones(tmp_path, 3), "--config", config, "--out", "run", *schedule, cwd=tmp_path
    )
    run_folder = RunFolder.open(tmp_path / "run")
    before = run_folder.turns()
    assert not run_folder.info().complete
    assert 1 <= len(before.records) < 9
    assert before.problems == ()
    assert ended.status == 130
    partial = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert partial["run"]["complete"] is False
    assert "partial" in (tmp_path / "run" / "report.html").read_text("utf-8").lower()
    assert ended.took_s <= 2.0, "a partial report within two seconds"
    done = voicebench("batch", "--resume", "run", cwd=tmp_path)
    after = run_folder.turns().records
    # On a machine without time left a turn may fail, which is no matter here.
    assert done.returncode == (0 if {one.outcome for one in after} == {"completed"} else 4), done.stderr
    keys = [(one.mode, one.sample, one.repeat) for one in after]
    assert len(keys) == len(set(keys)) == 9
    assert after[: len(before.records)] == before.records
    assert {one.session for one in after} == {0, 1, 2}
    assert all(one.queue_ms is not None for one in after)
