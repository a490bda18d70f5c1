"""A run of many turns does not grow: the short form; `make soak` runs a thousand."""

from __future__ import annotations

from pathlib import Path

from tests.load.long_run import long_run
from voicebench.turns.records import Outcome

TURNS, SESSIONS = 36, 6


async def test_turns_leave_nothing_behind(tmp_path: Path) -> None:
    """After thirty-six turns in six sessions no task, process, thread or descriptor is left; in the last two
    thirds descriptors and tasks stay as many, and memory grows by at most a tenth."""
    folder, watched, left = await long_run(tmp_path, TURNS, SESSIONS)
    records = folder.turns().records
    assert [one.outcome for one in records] == [Outcome.COMPLETED] * TURNS
    assert (left.tasks, left.processes, left.threads) == ((), 0, ())
    assert left.descriptors <= 2
    settled = TURNS // 3
    # A session that reads its next recording has one open for a moment.
    assert min(watched.open_files[settled:]) <= min(watched.open_files[:settled])
    assert max(watched.open_files[settled:]) <= max(watched.open_files[:settled]) + SESSIONS
    assert max(watched.tasks[settled:]) <= max(watched.tasks[:settled]) + SESSIONS
    assert max(watched.memory_kb[settled:]) <= 1.1 * watched.memory_kb[settled]
