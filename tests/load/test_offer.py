"""Turns are offered in their order, to as many sessions as there are, when they are due."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.turns.made import made
from voicebench.clock import NS_PER_MS, now_ns
from voicebench.load import LoadPlan, Offered, offer, put_on_disk
from voicebench.turns.journal import JournalWriter, read_journal


async def test_no_more_turns_than_sessions_run_at_once() -> None:
    """Twenty turns over three sessions: at most three at once, each once, begun in their order."""
    begun: list[tuple[int, int]] = []

    async def run(offered: Offered[int]) -> None:
        begun.append((offered.turn, offered.session))
        assert offered.due_ns is None
        for _ in range(offered.turn % 4 + 1):
            await asyncio.sleep(0)

    served = await offer(range(20), LoadPlan(3), run)
    assert [turn for turn, _ in begun] == list(range(20))
    assert {session for _, session in begun} == {0, 1, 2}
    assert (served.turns, served.most_at_once) == (20, 3)


async def test_turns_are_due_at_the_rate_whatever_became_of_the_others() -> None:
    """The instants are the begin plus k / rate, though the only session is slow, and nothing begins early."""
    due: list[int] = []

    async def run(offered: Offered[int]) -> None:
        await offered.until_due()
        assert offered.due_ns is not None
        assert now_ns() >= offered.due_ns
        due.append(offered.due_ns)
        if offered.turn == 0:
            await asyncio.sleep(0.05)

    await offer(range(4), LoadPlan(1, 100.0), run)
    assert [later - due[0] for later in due] == [0, 10 * NS_PER_MS, 20 * NS_PER_MS, 30 * NS_PER_MS]


def test_the_wait_and_the_latency_add_up() -> None:
    """From the schedule is the wait plus the turn's own latency; without one there is neither, never 0."""
    offered = Offered("t", 1, 1_000 * NS_PER_MS)
    fields = offered.fields(LoadPlan(2, 5.0), 1_250 * NS_PER_MS, 500.0)
    assert fields == {"session": 1, "queue_ms": 250.0, "service_ms": 500.0, "from_schedule_ms": 750.0}
    failed = offered.fields(LoadPlan(2, 5.0), 1_250 * NS_PER_MS, None)
    assert (failed["queue_ms"], failed["service_ms"], failed["from_schedule_ms"]) == (250.0, None, None)
    assert Offered("t", 1, None).fields(LoadPlan(2), 5, 500.0) == {"session": 1}
    assert Offered("t", 0, None).fields(LoadPlan(1), 5, 500.0) == {}


@pytest.mark.parametrize("ending", ["problem", "cancelled"])
async def test_the_end_of_one_is_the_end_of_all(ending: str) -> None:
    """A problem in one session, or a cancellation, ends the others before it is raised."""
    running: set[int] = set()
    all_begun = asyncio.Event()

    async def run(offered: Offered[int]) -> None:
        running.add(offered.session)
        try:
            if len(running) == 3:
                all_begun.set()
                if ending == "problem":
                    raise OSError("the disk is full")
            await asyncio.Event().wait()
        finally:
            running.discard(offered.session)

    task = asyncio.create_task(offer(range(9), LoadPlan(3), run))
    await all_begun.wait()
    if ending == "cancelled":
        task.cancel()
    with pytest.raises(OSError if ending == "problem" else asyncio.CancelledError):
        await task
    assert running == set()
    assert {one.get_name() for one in asyncio.all_tasks()} == {asyncio.current_task().get_name()}  # type: ignore[union-attr]


async def test_lines_of_simultaneous_sessions_never_mix(tmp_path: Path) -> None:
    """Forty long turns written by eight sessions at once are forty whole lines."""
    reply = "word " * 4_000
    with JournalWriter(tmp_path / "turns.jsonl") as journal:

        async def run(offered: Offered[int]) -> None:
            await put_on_disk(journal, made(offered.turn, reply=f"{offered.turn} {reply}", deltas=()))

        await offer(range(40), LoadPlan(8), run)
    reading = read_journal(tmp_path / "turns.jsonl")
    assert (reading.torn_lines, reading.problems) == (0, ())
    assert sorted(one.turn for one in reading.records) == list(range(40))
    assert all((one.reply or "").startswith(f"{one.turn} ") for one in reading.records)


async def test_a_turn_that_is_over_is_written_though_the_run_is_being_ended(tmp_path: Path) -> None:
    """Cancelled while it waits for the disk, a session ends with the line there; later ones are refused."""
    journal = JournalWriter(tmp_path / "turns.jsonl")
    writing = asyncio.create_task(put_on_disk(journal, made(0)))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    journal.close()
    assert len(read_journal(tmp_path / "turns.jsonl").records) == 1
    with pytest.raises(ValueError, match="closed"):
        journal.append(made(1))
