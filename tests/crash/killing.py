"""Kill runs at random instants: `python -m tests.crash.killing FOLDER KILLS TURNS SESSIONS SEED`.

Everything is imported once; each run is a fork, ended by SIGKILL. What is left is opened and resumed, some
of the resumed runs are killed too, and in the end the run is held against one that nobody killed. Prints one
JSON object.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.crash.quick_runs import quick_plan, run_quickly
from voicebench.bench import RunPlan
from voicebench.export.run_report import report_of
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RUN_FILE, RunFolder


def forked(
    plan: RunPlan, out: Path, sessions: int, kill_after_s: float | None = None, *, from_turns: bool = False
) -> tuple[int, set[int]]:
    """Run in a fork, and kill it so long after its begin, or after its first turn.

    Gives how it ended, and the turns that it said were on disk.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)

            def told(record: TurnRecord) -> None:
                os.write(writing, f"{record.turn}\n".encode())

            resume = (out / RUN_FILE).exists()
            run_quickly(plan, out, resume=resume, sessions=sessions, told=told)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    if kill_after_s is not None:
        if from_turns:
            select.select([reading], [], [])
        time.sleep(kill_after_s)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().split(b"\n")[:-1]
    _, status = os.waitpid(pid, 0)
    return status, {int(line) for line in lines}


def but_for_run(record: TurnRecord) -> dict[str, Any]:
    """The record without the run's id and the session, which depends on who was free."""
    return record.model_dump(exclude={"run", "session"})


def look(out: Path, told: set[int], before: int, turns: int, sessions: int) -> int:
    """What a killed run left: every turn that was told, at most one more a session. Gives how many."""
    if not (out / RUN_FILE).exists():
        assert not told, "turns were told of a run that does not open"
        return 0
    folder = RunFolder.open(out)
    read = folder.turns()
    assert read.problems == (), read.problems
    assert read.torn_lines <= 1, read.torn_lines
    there = [record.turn for record in read.records]
    assert len(there) == len(set(there)), "a turn was written twice"
    assert told <= set(there), f"lost: {told - set(there)}"
    assert len(there) - before - len(told) <= sessions, "more than those in flight were not told"
    report = report_of(folder).report
    assert report.complete == (len(there) == turns and folder.info().complete)
    assert not folder.info().complete or len(there) == turns, "marked complete without its turns"
    counts = [entry.ledger.to_dict() for entry in report.modes]
    assert sum(count["planned"] for count in counts) == turns
    for count in counts:
        assert count.pop("planned") == sum(count.values())
    return len(there)


def main(folder: Path, kills: int, turns: int, sessions: int, seed: int) -> dict[str, Any]:
    """Kill so many runs. Raises AssertionError for the first that lost something."""
    draw = random.Random(seed)
    plan = quick_plan(folder, turns)
    forked(plan, folder / "warm", sessions)
    begin = time.monotonic()
    status, told = forked(plan, folder / "whole", sessions)
    lasts_s = time.monotonic() - begin
    assert (status, len(told)) == (0, turns)
    whole = {record.turn: but_for_run(record) for record in RunFolder.open(folder / "whole").turns().records}
    found: dict[str, Any] = {"kills": 0, "before_the_first": 0, "in_the_middle": 0, "after_the_last": 0}
    number = 0
    while found["kills"] < kills:
        out = folder / f"run-{number}"
        number += 1
        kept = 0
        while found["kills"] < kills:
            # The turns are the last part of a run: most kills are to fall there.
            from_turns = draw.random() < 0.75
            after_s = draw.uniform(0, lasts_s * (0.5 if from_turns else 1.1))
            _, told = forked(plan, out, sessions, after_s, from_turns=from_turns)
            found["kills"] += 1
            kept = look(out, told, kept, turns, sessions)
            place = "before_the_first" if not kept else "after_the_last" if kept == turns else "in_the_middle"
            found[place] += 1
            if kept == turns or draw.random() < 0.5:
                break
        status, _ = forked(plan, out, sessions)
        assert status == 0, "a killed run could not be resumed"
        opened = RunFolder.open(out)
        read = opened.turns()
        assert opened.info().complete
        assert (read.torn_lines, read.problems) == (0, ())
        assert len(read.records) == turns
        assert {record.turn: but_for_run(record) for record in read.records} == whole
    return {**found, "runs": number, "a_run_lasts_s": round(lasts_s, 3)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), *map(int, sys.argv[2:6]))) + "\n")
