"""How turns are offered: to one session or to several at once, each as soon as one is free or on a schedule.

Closed loop (no rate): a session takes the next turn when it has ended its last one. Nothing queues, and a
slow system is asked less often, which hides how slow it is.

Open loop (a rate): turn `k` is *due* at the begin + `k` / rate, whatever became of the turns before it. Where
all sessions are busy it waits, and the wait is told beside its latency: `queue_ms` from the instant at which
it was due to the one at which it was begun, `service_ms` its own latency (V2V; in a slot run from the request
to the reply's end), and their sum, the latency *from the schedule*.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from voicebench.clock import NS_PER_S, ms, now_ns
from voicebench.prompt_loop import prompt_loop
from voicebench.stages.llm_keys import without_keys
from voicebench.threads import GrowingThreads
from voicebench.turns.journal import JournalWriter
from voicebench.turns.records import TurnRecord

LEAD_NS = NS_PER_S // 4
"""The schedule begins so long after the sessions do, so that the first turn is ready when it is due."""

Turn = TypeVar("Turn")


@dataclass(frozen=True)
class LoadPlan:
    """At most so many turns at once, and how many a second are due; None: each when a session is free."""

    sessions: int = 1
    rate_per_s: float | None = None

    @property
    def plain(self) -> bool:
        """One turn after the other?"""
        return self.sessions == 1 and self.rate_per_s is None

    def facts(self) -> dict[str, Any]:
        """The plain values."""
        return {"sessions": self.sessions, "rate_per_s": self.rate_per_s}

    def told(self, served: Served | None = None) -> dict[str, Any] | None:
        """What `run.json` says of it, `served` once the turns were run; None for one turn after the other."""
        if self.plain:
            return None
        return self.facts() if served is None else {**self.facts(), **served.facts()}


@dataclass(frozen=True)
class Offered(Generic[Turn]):
    """A turn on its way to a session."""

    turn: Turn
    session: int
    """From 0."""
    due_ns: int | None
    """When the schedule wants it begun, ns of the monotonic clock; None: at once."""

    @property
    def late(self) -> bool:
        """Has the instant at which it was due passed?"""
        return self.due_ns is not None and now_ns() >= self.due_ns

    async def until_due(self, ahead_ns: int = 0) -> None:
        """Wait until so long before it is due; not at all where that has passed."""
        wait = 0 if self.due_ns is None else self.due_ns - ahead_ns - now_ns()
        if wait > 0:
            await asyncio.sleep(wait / NS_PER_S)

    def fields(self, plan: LoadPlan, begun_ns: int, service_ms: float | None) -> dict[str, Any]:
        """What a turn that was begun at `begun_ns` tells of the load, as fields of its record.

        `service_ms` is its own latency, None where it has none; it then has none from the schedule either.
        """
        told: dict[str, Any] = {} if plan.sessions == 1 else {"session": self.session}
        if self.due_ns is None:
            return told
        queue_ms = ms(max(0, begun_ns - self.due_ns))
        total = None if service_ms is None else queue_ms + service_ms
        return {**told, "queue_ms": queue_ms, "service_ms": service_ms, "from_schedule_ms": total}


@dataclass
class Served:
    """What became of a load: turns that were run, within how many seconds, and how many at most at once."""

    turns: int = 0
    elapsed_s: float = 0.0
    most_at_once: int = 0

    def facts(self) -> dict[str, Any]:
        """The plain values, for `run.json`; the rate is None where no time has passed."""
        achieved = self.turns / self.elapsed_s if self.elapsed_s > 0 else None
        return {
            "turns": self.turns,
            "elapsed_s": self.elapsed_s,
            "achieved_per_s": achieved,
            "most_at_once": self.most_at_once,
        }


def make_room() -> None:
    """Give the running loop threads enough that no session waits for another one's, and none for one that
    hangs.

    Without it asyncio has few more threads than the machine has processors, and recognition in many sessions
    would queue for a thread: a wait that belongs to no system under test. The loop's own thread is to run as
    soon as it wakes.
    """
    prompt_loop()
    asyncio.get_running_loop().set_default_executor(GrowingThreads())


async def offer(
    turns: Sequence[Turn], plan: LoadPlan, run: Callable[[Offered[Turn]], Awaitable[None]]
) -> Served:
    """Let `run` run every turn, in their order, as `plan` says; returns when all have ended.

    What `run` raises first ends the others and is raised here; so does a cancellation. Each turn's task has
    then ended.
    """
    begin_ns = now_ns() + LEAD_NS
    waiting = iter(enumerate(turns))
    served, at_once = Served(), 0
    start_ns = now_ns()

    async def session(number: int) -> None:
        nonlocal at_once
        for place, turn in waiting:
            due = None if plan.rate_per_s is None else begin_ns + round(place * NS_PER_S / plan.rate_per_s)
            offered = Offered(turn, number, due)
            await offered.until_due(LEAD_NS)
            at_once += 1
            served.most_at_once = max(served.most_at_once, at_once)
            try:
                await run(offered)
            finally:
                at_once -= 1
            served.turns += 1

    tasks = [
        asyncio.create_task(session(number), name=f"load-session-{number}")
        for number in range(min(plan.sessions, len(turns)))
    ]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        problem = next((e for task in tasks if task.done() and (e := task.exception()) is not None), None)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if problem is not None:
        raise problem
    served.elapsed_s = (now_ns() - start_ns) / NS_PER_S
    return served


async def put_on_disk(journal: JournalWriter, record: TurnRecord) -> TurnRecord:
    """Put a turn on disk in a thread: waiting for the disk here would hold up the turns of other sessions.
    Returns the record as it was written, without any part of a key.

    A turn that is over is written also where the run is just being ended. Raises RunProblem where the disk
    refuses.
    """
    writing = asyncio.ensure_future(asyncio.to_thread(_write, journal, record))
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait({writing})
        writing.exception()  # the end of the run is what is told
        raise


def _write(journal: JournalWriter, record: TurnRecord) -> TurnRecord:
    clean = without_keys(record)
    journal.append(clean)
    return clean
