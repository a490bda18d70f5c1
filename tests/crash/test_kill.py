"""`kill -9` at random instants: the run opens, loses nothing that was finished, and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KILLS, TURNS = 25, 40


def killed(folder: Path, kills: int, turns: int, sessions: int, seed: int) -> dict[str, Any]:
    """What became of so many kills; what was lost fails the test with its reason."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.killing", folder, *map(str, (kills, turns, sessions, seed))],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
def test_a_run_that_is_killed_at_any_instant_loses_no_finished_turn(tmp_path: Path) -> None:
    """Twenty-five kills of runs with three sessions: every turn that was told is on disk, at most one a
    session beyond, the ledger adds up, and the resumed run equals one that nobody killed."""
    found = killed(tmp_path, KILLS, TURNS, 3, 1)
    assert found["kills"] == KILLS
    assert found["in_the_middle"] > 0
