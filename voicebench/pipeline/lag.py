"""How late the event loop runs: the harness's own contamination of what it measures."""

from __future__ import annotations

import asyncio

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns

PERIOD_NS = 10 * NS_PER_MS


class LagMeter:
    """A task that should wake every 10 ms and notes by how much it is late."""

    def __init__(self) -> None:
        self._worst_ns = 0
        self._due_ns = 0
        self._since_ns = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch the running loop."""
        self._due_ns = now_ns() + PERIOD_NS
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="lag-meter")

    async def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def take(self) -> int:
        """The longest delay since the last call, in ns, one that still lasts included.

        Of a delay that lasts, what went before a call belongs to that call alone.
        """
        now = now_ns()
        worst = max(self._worst_ns, self._late_by(now))
        self._worst_ns = 0
        self._since_ns = now
        return worst

    def _late_by(self, now: int) -> int:
        return max(0, now - max(self._due_ns, self._since_ns))

    async def _watch(self) -> None:
        while True:
            self._due_ns = now_ns() + PERIOD_NS
            await asyncio.sleep(PERIOD_NS / NS_PER_S)
            self._worst_ns = max(self._worst_ns, self._late_by(now_ns()))
