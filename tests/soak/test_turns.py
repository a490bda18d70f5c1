"""The long forms of what a run survives: a thousand turns, hundreds of kills, the same run twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import pytest

from tests.crash.test_kill import killed
from tests.load.long_run import long_run
from tests.pipeline.driven import clip, scripted
from tests.recorded import write_wav
from tests.test_runner import Listener
from voicebench.audio.manifest import Sample
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome

pytestmark = pytest.mark.soak

TURNS, SESSIONS, SETTLED = 1_000, 8, 100
KILLS = 220


def test_a_thousand_turns_leave_nothing_behind(tmp_path: Path) -> None:
    """After the first hundred, memory grows by at most a tenth over nine hundred turns, descriptors stay as
    many, and in the end no task, process or thread is left."""
    folder, watched, left = asyncio.run(long_run(tmp_path, TURNS, SESSIONS))
    records = folder.turns().records
    before, after = watched.memory_kb[SETTLED], watched.memory_kb[-1]
    growth = after / before - 1
    print(f"memory {before} kB after {SETTLED} turns, {after} kB after {TURNS}: {growth:+.1%}")
    print("objects", watched.objects[SETTLED // 10], watched.objects[-1], "left", left)
    print("descriptors", min(watched.open_files[SETTLED:]), max(watched.open_files[SETTLED:]))
    assert len(records) == TURNS
    # On a busy machine a turn may fail.
    assert sum(one.outcome is Outcome.COMPLETED for one in records) >= 0.95 * TURNS
    assert growth <= 0.1
    assert min(watched.open_files[-SETTLED:]) <= min(watched.open_files[:SETTLED])
    assert max(watched.open_files[SETTLED:]) <= max(watched.open_files[:SETTLED]) + SESSIONS
    assert max(watched.tasks[SETTLED:]) <= max(watched.tasks[:SETTLED]) + SESSIONS
    assert (left.tasks, left.processes, left.threads) == ((), 0, ())
    assert left.descriptors <= 2


@pytest.mark.parametrize("sessions", [1, 4])
def test_hundreds_of_kills_lose_no_finished_turn(tmp_path: Path, sessions: int) -> None:
    """So many runs killed at random instants: all re-open, none lost a turn, and resumed each is whole."""
    found = killed(tmp_path, KILLS, 60, sessions, 7 + sessions)
    print(found)
    assert found["kills"] == KILLS


def test_the_same_run_twice_has_the_same_medians(tmp_path: Path) -> None:
    """Scripted stages without jitter: the medians of V2V of two runs of 40 turns are within 2 ms."""

    def once(name: str) -> float:
        wav = write_wav(tmp_path / "spoken.wav", clip(0.3))
        sample = Sample(id="s", path=wav, transcript="x", segments=((0.0, 0.3),))
        plan = make_plan(scripted(repeats=40, warmup_turns=2, turn_timeout_s=10), [sample])
        folder = asyncio.run(run(plan, RunOptions(out=tmp_path / name), Listener()))
        return median(one.voice_to_voice_ms or 0.0 for one in folder.turns().records)

    first, second = once("a"), once("b")
    print("medians", first, second)
    assert abs(first - second) <= 2.0
