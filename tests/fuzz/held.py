"""What holds of every stream, whatever its bytes were, and events that hold what does not belong there."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.stages.asked import QUESTION, a_mode, stage_of
from voicebench.pipeline.contamination import Load
from voicebench.plan.config import Conversation
from voicebench.plan.plan import PlannedTurn
from voicebench.slot_record import Conditions, slot_record
from voicebench.stages.llm import Tap
from voicebench.stages.shared import Shared
from voicebench.turns.journal import journal_line
from voicebench.turns.records import TurnRecord
from voicebench.turns.stream import StreamLog

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    (None, True, -1, 1 << 70, 1e308, "", "x", "\ud800", "x" * 500, [], [None], {}, {"type": "x"}, {"id": {}})
)
"""What stands in an event in place of what belongs there."""


def check_ended(api: str, log: StreamLog) -> None:
    """The stream has ended as something that has a name, its texts are texts, and its record is one that the
    journal keeps."""
    assert not log.running
    assert log.status in ("ok", "failed", "truncated", "overloaded", "rate_limited", "timed_out")
    assert log.detail or log.status == "ok"
    assert all(isinstance(text, str) for _, text in log.deltas)
    record = slot_record(
        "r", PlannedTurn(0, "x/y", "s", 0), a_mode(api), log, Conditions(0, Load(None, None, None))
    )
    assert TurnRecord.model_validate_json(journal_line(record)).outcome is record.outcome


def cut(raw: bytes, at: list[int]) -> list[bytes]:
    """`raw` cut at these places, each taken modulo its length."""
    places = sorted({place % (len(raw) + 1) for place in at} | {0, len(raw)})
    return [raw[first:last] for first, last in itertools.pairwise(places)]


def changed(data: bytes, place: int, value: Any) -> bytes:
    """An event's JSON with `value` in place of one of its values, the `place`-th modulo their number."""
    event = json.loads(data)
    paths = list(_paths(event))
    path = paths[place % len(paths)]
    inner = event
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return json.dumps(event).encode()


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*before, step)
        yield from _paths(one, (*before, step))


EVERYWHERE = list(range(10_000))
"""Cuts that leave single bytes."""


async def asked(api: str, port: int) -> StreamLog:
    """What an endpoint of this protocol on this machine made of a question, asked without a pipeline."""
    plugin, settings = stage_of(api, port)
    assert plugin.ask is not None
    asker = plugin.ask(a_mode(api), settings, Conversation(), Shared(), Tap())
    try:
        async with asyncio.timeout(10):
            log: StreamLog = await asker.ask(QUESTION)
            return log
    finally:
        await asker.close()
