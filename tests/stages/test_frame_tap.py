"""The tap for services whose SDK is unknown: their frames move the marks, and end the log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    FunctionCallFromLLM,
    FunctionCallsStartedFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    LLMThoughtTextFrame,
    TextFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection

from voicebench.stages.frame_tap import CAVEAT, tapped
from voicebench.stages.llm import Tap
from voicebench.turns.stream import StreamLog

Script = Callable[[Any], Awaitable[None]]


class Service:
    """What the tap needs of a pipecat service: it takes frames and pushes frames."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.pushed: list[Frame] = []
        self.other: list[Frame] = []

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Act out the script for a conversation."""
        if isinstance(frame, LLMContextFrame):
            await self.script(self)
        else:
            self.other.append(frame)

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        """Keep what is pushed."""
        self.pushed.append(frame)


async def told(script: Script) -> StreamLog:
    """The log of a service that acts out that script."""
    tap = Tap()
    service = tapped(Service, tap, "model-1")(script)
    with contextlib.suppress(RuntimeError):
        await service.process_frame(LLMContextFrame(LLMContext()), FrameDirection.DOWNSTREAM)
    [log] = tap.streams
    assert not log.running
    return log


def pushes(*frames: Frame) -> Script:
    """A script that pushes these frames."""

    async def script(service: Any) -> None:
        for frame in frames:
            await service.push_frame(frame)

    return script


async def test_a_reply_is_logged_by_its_frames() -> None:
    """Request, first text, each delta and the end are there, with the caveat that they come from frames."""
    log = await told(
        pushes(
            LLMFullResponseStartFrame(),
            LLMTextFrame("\n"),
            LLMTextFrame("Paris"),
            LLMTextFrame("."),
            LLMFullResponseEndFrame(),
        )
    )
    assert (log.status, log.text, log.model) == ("ok", "\nParis.", "model-1")
    assert log.first_token_ns == log.deltas[0][0]
    assert log.first_text_ns == log.deltas[1][0]
    assert log.end_ns is not None
    assert log.request_ns <= log.deltas[0][0] <= log.end_ns
    assert log.caveats == [CAVEAT]
    assert log.usage is None


async def test_thoughts_and_tool_calls_are_tokens_but_no_text() -> None:
    """Thinking and a call set the first token; the calls count once, though their frame goes both ways."""
    thought = await told(pushes(LLMThoughtTextFrame("hm"), LLMFullResponseEndFrame()))
    assert thought.first_token_ns is not None
    assert thought.first_text_ns is None
    calls = [FunctionCallFromLLM(function_name="f", tool_call_id="1", arguments={}, context=LLMContext())] * 2
    frame = FunctionCallsStartedFrame(function_calls=calls)
    called = await told(pushes(frame, frame, LLMFullResponseEndFrame()))
    assert called.tool_calls == 2
    assert called.first_token_ns is not None
    assert called.first_text_ns is None


async def test_only_the_services_own_error_ends_its_stream() -> None:
    """An error of a later stage passes through on its way up and is not the language model's."""
    tap = Tap()

    async def script(service: Any) -> None:
        await service.push_frame(LLMTextFrame("Paris"))
        await service.push_frame(ErrorFrame("the voice broke", processor=object()), FrameDirection.UPSTREAM)  # type: ignore[arg-type]
        await service.push_frame(LLMTextFrame("."))
        await service.push_frame(LLMFullResponseEndFrame())

    service = tapped(Service, tap, "m")(script)
    await service.process_frame(LLMContextFrame(LLMContext()), FrameDirection.DOWNSTREAM)
    assert (tap.streams[0].status, tap.streams[0].text) == ("ok", "Paris.")

    async def breaks(service: Any) -> None:
        await service.push_frame(ErrorFrame("no\nkey", processor=service), FrameDirection.UPSTREAM)
        await service.push_frame(LLMFullResponseEndFrame())

    log = await told(breaks)
    assert (log.status, log.detail) == ("failed", "no key")


@pytest.mark.parametrize(
    ("exception", "status"),
    [
        (None, "failed"),
        (TimeoutError("slow"), "timed_out"),
        (RuntimeError("server overloaded"), "overloaded"),
        (RuntimeError("rate limit reached"), "rate_limited"),
    ],
)
async def test_an_error_frame_is_typed_by_its_exception(exception: Exception | None, status: str) -> None:
    """What the service raised says what the error means for the turn."""
    log = await told(pushes(ErrorFrame("it did not go well", exception=exception)))
    assert (log.status, log.detail) == (status, "it did not go well")


async def test_a_service_that_raises_has_failed() -> None:
    """An exception that leaves the service ends the log, and goes on."""

    async def script(service: Any) -> None:
        await service.push_frame(LLMTextFrame("The"))
        raise RuntimeError("gone")

    log = await told(script)
    assert (log.status, log.text) == ("failed", "The")


async def test_a_service_that_does_not_end_its_reply_left_it_truncated() -> None:
    """A reply without an end frame is not complete."""
    log = await told(pushes(LLMTextFrame("The capital")))
    assert log.status == "truncated"


async def test_an_interrupted_reply_is_cancelled_though_the_service_ends_it() -> None:
    """Services push their end frame on the way out of a cancelled reply as well: that is no completion."""
    tap = Tap()
    begun = asyncio.Event()

    async def script(service: Any) -> None:
        try:
            await service.push_frame(LLMTextFrame("The"))
            begun.set()
            await asyncio.Event().wait()
        finally:
            await service.push_frame(LLMFullResponseEndFrame())

    service = tapped(Service, tap, "m")(script)
    task = asyncio.create_task(
        service.process_frame(LLMContextFrame(LLMContext()), FrameDirection.DOWNSTREAM)
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tap.streams[0].status == "cancelled"


async def test_everything_is_passed_on() -> None:
    """Frames that start no reply go to the service untouched, and what it pushes is pushed."""
    tap = Tap()
    service = tapped(Service, tap, "m")(pushes(LLMFullResponseStartFrame(), LLMFullResponseEndFrame()))
    other = TextFrame("hello")
    await service.process_frame(other, FrameDirection.DOWNSTREAM)
    assert service.other == [other]
    assert tap.streams == []
    await service.process_frame(LLMContextFrame(LLMContext()), FrameDirection.DOWNSTREAM)
    assert len(service.pushed) == 2
    assert type(service).__name__ == "Service"


async def test_whoever_waits_is_told_of_request_text_and_end() -> None:
    """The session is woken at the request, the first visible text and the end."""
    tap = Tap()
    seen: list[str] = []
    tap.on_change = lambda: seen.append(f"{len(tap.streams[-1].deltas)} {tap.streams[-1].status}")
    service = tapped(Service, tap, "m")(
        pushes(LLMTextFrame(" "), LLMTextFrame("a"), LLMTextFrame("b"), LLMFullResponseEndFrame())
    )
    await service.process_frame(LLMContextFrame(LLMContext()), FrameDirection.DOWNSTREAM)
    assert seen[:3] == ["0 running", "2 running", "3 ok"]
