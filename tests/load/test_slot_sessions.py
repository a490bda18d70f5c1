"""Requests at the same time: each session has its own connections, and no reply is another's."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tests.slot.slot_runs import Told, quick, ran, slot_plan
from voicebench.errors import RunProblem
from voicebench.export.run_report import report_of
from voicebench.load import LoadPlan
from voicebench.slot_run import SlotOptions, run_slot
from voicebench.turns.durable import cannot_write
from voicebench.turns.journal import JournalWriter
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder


async def test_requests_at_the_same_time_have_their_own_connections_and_replies(tmp_path: Path) -> None:
    """Four sessions in a closed loop: every request is answered with its own reply over its own connection,
    and the run says that no schedule was kept."""
    modes = [quick("a"), quick("b", api="anthropic")]
    plan = slot_plan(*modes, requests=8, max_tokens=60)
    told = await ran(plan, tmp_path / "run", load=LoadPlan(4))
    assert len(told.records) == 16
    assert {one.outcome for one in told.records} == {Outcome.COMPLETED}
    assert {one.session for one in told.records} == {0, 1, 2, 3}
    assert not any(one.new_connection for one in told.records)

    planned = {turn.index: (turn.mode, turn.sample, turn.repeat) for turn in plan.turns}
    assert {one.turn: (one.mode, one.sample, one.repeat) for one in told.records} == planned
    asked = {(one.sample, one.usage.input_tokens) for one in told.records if one.usage is not None}
    assert len(asked) == len({one.sample for one in told.records}) > 1  # each has put its own question
    assert told.folder is not None
    info = json.loads((told.folder.path / "run.json").read_text("utf-8"))
    assert info["load"]["rate_per_s"] is None
    assert 2 <= info["load"]["most_at_once"] <= 4
    plain = report_of(told.folder).report.to_dict()
    assert [mode["load"] for mode in plain["modes"]] == [None, None]


@pytest.mark.parametrize("load", [LoadPlan(2), LoadPlan(2, 50.0)], ids=["closed loop", "on a schedule"])
async def test_a_disk_that_refuses_a_line_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: LoadPlan
) -> None:
    """With several sessions, too, a request that cannot be written down ends the run in words: not complete,
    and what was told is on disk."""
    real, lines = JournalWriter.append, 0

    def append(self: JournalWriter, record: TurnRecord) -> None:
        nonlocal lines
        lines += self.path.name == "turns.jsonl"
        if lines == 3:
            raise cannot_write(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        real(self, record)

    monkeypatch.setattr(JournalWriter, "append", append)
    told = Told()
    options = SlotOptions(out=tmp_path / "run", load=load)
    with pytest.raises(RunProblem, match="No space left"):
        await run_slot(slot_plan(quick("a"), requests=12), options, told)
    folder = RunFolder.open(tmp_path / "run")
    assert not folder.info().complete
    kept = {one.turn for one in folder.turns().records}
    assert {one.turn for one in told.records} <= kept
    assert len(kept) < 12
