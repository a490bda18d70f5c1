"""Streams as a provider's SDK hands them out, made up event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from openai.types.chat import ChatCompletionChunk

from voicebench.stages.llm import Tap, TappedStream
from voicebench.stages.llm_openai import asked_options, read_chat, watch_done
from voicebench.turns.stream import StreamLog


def chunk(
    content: str | None = None,
    *,
    finish: str | None = None,
    role: str | None = None,
    usage: dict[str, Any] | None = None,
    choices: bool = True,
    **delta: Any,
) -> ChatCompletionChunk:
    """A chunk as the SDK makes it of what came over the wire: unknown fields are kept, none is checked."""
    given = {"content": content, "role": role, **delta}
    inner = {name: value for name, value in given.items() if value is not None}
    raw: dict[str, Any] = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "made-1",
        "choices": [{"index": 0, "delta": inner, "finish_reason": finish}] if choices else [],
    }
    if usage is not None:
        raw["usage"] = usage
    return ChatCompletionChunk.construct(**raw)


def usage_chunk(output: int, **more: Any) -> ChatCompletionChunk:
    """The last chunk, which holds no choice and all the counts."""
    counts = {"prompt_tokens": 20, "completion_tokens": output, "total_tokens": 20 + output}
    return chunk(choices=False, usage={**counts, **more})


class MadeStream:
    """An SDK stream that gives these events; an exception among them is raised, a number awaited in ms."""

    def __init__(self, *events: Any) -> None:
        self._made = events
        self.closed = False
        self.given = 0

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._run()

    async def _run(self) -> AsyncIterator[Any]:
        for event in self._made:
            if isinstance(event, BaseException):
                raise event
            if isinstance(event, int | float):
                await asyncio.sleep(event / 1000)
                continue
            self.given += 1
            yield event

    async def close(self) -> None:
        """Release the connection."""
        self.closed = True


async def opened(*events: Any, tap: Tap | None = None, **request: Any) -> tuple[TappedStream, StreamLog]:
    """A tapped stream of these events, and its log."""
    tap = tap or Tap()

    async def create(**_: Any) -> MadeStream:
        return MadeStream(*events)

    call = tap.wrap(create, read_chat, asked_options, watch_done)
    stream = await call(stream=True, model="made-1", **request)
    return stream, tap.streams[-1]


async def drained(*events: Any) -> StreamLog:
    """The log of a stream of these events that was read to its end, whatever the end was."""
    stream, log = await opened(*events)
    try:
        async for _ in stream:
            pass
    except Exception:
        assert not log.running
    return log


def texts(log: StreamLog) -> Sequence[str]:
    """The text of each delta."""
    return [text for _, text in log.deltas]
