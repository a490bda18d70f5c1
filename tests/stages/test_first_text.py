"""Time to first token on a clock that only the stream moves: what opens a stream is no token of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.stages.made_streams import chunk, usage_chunk
from voicebench.clock import NS_PER_MS
from voicebench.stages import llm
from voicebench.stages.llm import Tap
from voicebench.stages.llm_openai import asked_options, read_chat, watch_done
from voicebench.turns.stream import StreamLog


class TimedStream:
    """An SDK stream whose events arrive so many ms after the request."""

    def __init__(self, clock: list[int], events: list[tuple[int, Any]]) -> None:
        self._clock = clock
        self._events = events

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._run()

    async def _run(self) -> AsyncIterator[Any]:
        for at_ms, event in self._events:
            self._clock[0] = at_ms * NS_PER_MS
            yield event


async def read_at(monkeypatch: pytest.MonkeyPatch, *events: tuple[int, Any]) -> StreamLog:
    """The log of a stream whose request is made at 0 and whose events arrive at these ms."""
    clock = [0]
    monkeypatch.setattr(llm, "now_ns", lambda: clock[0])
    tap = Tap()

    async def create(**_: Any) -> TimedStream:
        return TimedStream(clock, list(events))

    async for _ in await tap.wrap(create, read_chat, asked_options, watch_done)(stream=True, model="m"):
        pass
    return tap.streams[0]


@pytest.mark.parametrize(
    "preamble",
    [
        [chunk(role="assistant")],
        [chunk(role="assistant", content="")],
        [chunk()],
        [usage_chunk(0)],
        [chunk(role="assistant"), chunk(), usage_chunk(0)],
    ],
    ids=["role", "role and no text", "nothing", "usage", "all of them"],
)
async def test_a_preamble_at_50_ms_and_text_at_600_is_600(
    preamble: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the opening nor a chunk of role or usage alone is a first token: that is the text's instant."""
    opening = [(50 + number, event) for number, event in enumerate(preamble)]
    log = await read_at(
        monkeypatch, *opening, (600, chunk("Paris.")), (640, chunk(finish="stop")), (650, usage_chunk(2))
    )
    assert log.request_ns == 0
    assert log.first_token_ns == log.first_text_ns == 600 * NS_PER_MS
    assert log.end_ns == 650 * NS_PER_MS


async def test_shown_reasoning_at_50_ms_and_text_at_600_are_two_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first token of any kind is the thought at 50 ms, the first text the answer's at 600."""
    thought: dict[str, Any] = {"reasoning_content": "Hm."}
    log = await read_at(
        monkeypatch,
        (20, chunk(role="assistant")),
        (50, chunk(**thought)),
        (600, chunk("Paris.")),
        (640, chunk(finish="stop")),
    )
    assert (log.first_token_ns, log.first_text_ns) == (50 * NS_PER_MS, 600 * NS_PER_MS)
