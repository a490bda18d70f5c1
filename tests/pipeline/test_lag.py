"""The lag meter: each delay of the loop belongs to the turn in which it was."""

from __future__ import annotations

import asyncio

import pytest

from voicebench.clock import NS_PER_MS
from voicebench.pipeline import lag
from voicebench.pipeline.lag import PERIOD_NS, LagMeter


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000 * NS_PER_MS
        monkeypatch.setattr(lag, "now_ns", lambda: self.now)

    def move(self, ms: float) -> None:
        """Let so many ms pass."""
        self.now += round(ms * NS_PER_MS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The meter's clock."""
    return Clock(monkeypatch)


async def wake(meter: LagMeter) -> None:
    """Let the meter's task run until it has woken once more."""
    due = meter._due_ns
    async with asyncio.timeout(5):
        while meter._due_ns == due:  # noqa: ASYNC110 - the meter tells nobody that it woke
            await asyncio.sleep(0.001)


async def test_a_stall_is_measured(clock: Clock) -> None:
    """A loop that is 200 ms late for its wake-up has a lag of 200 ms, once."""
    meter = LagMeter()
    meter.start()
    await asyncio.sleep(0)
    clock.move(210)
    await wake(meter)
    assert meter.take() == 200 * NS_PER_MS
    assert meter.take() == 0
    await meter.stop()


async def test_a_stall_that_still_lasts_counts(clock: Clock) -> None:
    """A lag is known before the loop wakes up again."""
    meter = LagMeter()
    meter.start()
    await asyncio.sleep(0)
    clock.move(60)
    assert meter.take() == 50 * NS_PER_MS
    await meter.stop()


async def test_a_stall_before_the_turn_is_not_the_turns(clock: Clock) -> None:
    """What a delay took before a turn began is not counted again when the loop wakes inside the turn."""
    meter = LagMeter()
    meter.start()
    await asyncio.sleep(0)
    clock.move(500)
    assert meter.take() == 500 * NS_PER_MS - PERIOD_NS
    clock.move(7)
    await wake(meter)
    assert meter.take() == 7 * NS_PER_MS
    await meter.stop()


async def test_a_loop_in_time_has_no_lag(clock: Clock) -> None:
    """Waking in time, or not having to wake yet, is no lag and never a negative one."""
    meter = LagMeter()
    meter.start()
    await asyncio.sleep(0)
    assert meter.take() == 0
    clock.move(10)
    await wake(meter)
    assert meter.take() == 0
    await meter.stop()
    await meter.stop()
