"""pipecat's four services complete a turn against the emulator, as against the vendors."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

with warnings.catch_warnings():
    # pipecat imports modules that Python deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pipecat.frames.frames import (
        EndFrame,
        ErrorFrame,
        Frame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
        MetricsFrame,
    )
    from pipecat.metrics.metrics import LLMUsageMetricsData
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineParams, PipelineWorker
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
    from pipecat.services.anthropic.llm import AnthropicLLMService
    from pipecat.services.llm_service import LLMService
    from pipecat.services.openai.llm import OpenAILLMService
    from pipecat.services.openai.responses.llm import (
        OpenAIResponsesHttpLLMService,
        OpenAIResponsesLLMService,
    )
    from pipecat.workers.runner import WorkerRunner

from tests.emulator.readers import ANSWER, QUESTION
from voicebench.emulator.process import EmulatorProcess
from voicebench.emulator.tokens import count

Service = LLMService[Any]
Factory = Callable[[EmulatorProcess, str], Service]


def _claude(emulator: EmulatorProcess, model: str) -> Service:
    client = anthropic.AsyncAnthropic(api_key="k", base_url=emulator.base_url_anthropic, max_retries=0)
    return AnthropicLLMService(api_key="k", client=client, settings=AnthropicLLMService.Settings(model=model))


def _chat(emulator: EmulatorProcess, model: str) -> Service:
    return OpenAILLMService(
        api_key="k", base_url=emulator.base_url_openai, settings=OpenAILLMService.Settings(model=model)
    )


def _responses(emulator: EmulatorProcess, model: str) -> Service:
    return OpenAIResponsesHttpLLMService(
        api_key="k",
        base_url=emulator.base_url_openai,
        settings=OpenAIResponsesHttpLLMService.Settings(model=model),
    )


def _websocket(emulator: EmulatorProcess, model: str) -> Service:
    return OpenAIResponsesLLMService(
        api_key="k",
        base_url=emulator.base_url_openai,
        ws_url=emulator.websocket_url,
        settings=OpenAIResponsesLLMService.Settings(model=model),
    )


SERVICES = pytest.mark.parametrize("factory", [_claude, _chat, _responses, _websocket])


class _Ear(FrameProcessor):
    """Collects what comes out of the service; asks the next question, or ends, when a reply is over."""

    def __init__(self, questions: list[str]) -> None:
        super().__init__()
        self.questions = questions
        self.replies: list[str] = [""]
        self.errors: list[str] = []
        self.usage: list[int] = []
        self.context = LLMContext([{"role": "user", "content": questions.pop(0)}])
        self.over = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self.replies[-1] += frame.text
        elif isinstance(frame, MetricsFrame):
            self.usage += [
                item.value.completion_tokens for item in frame.data if isinstance(item, LLMUsageMetricsData)
            ]
        elif isinstance(frame, LLMFullResponseEndFrame):
            self.over.set()
        await self.push_frame(frame, direction)


async def _converse(service: Service, questions: list[str]) -> _Ear:
    """Ask one question after the other, and give what was heard."""
    ear = _Ear(list(questions))
    worker = PipelineWorker(
        Pipeline([service, ear]),
        params=PipelineParams(enable_metrics=True, enable_usage_metrics=True),
        enable_rtvi=False,
        idle_timeout_secs=None,
    )

    @worker.event_handler("on_pipeline_error")  # type: ignore[untyped-decorator] # pipecat ships no type for it
    async def _on_error(worker: PipelineWorker, frame: ErrorFrame) -> None:
        ear.errors.append(frame.error)

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)

    async def talk() -> None:
        while True:
            await worker.queue_frame(LLMContextFrame(ear.context))
            await asyncio.wait_for(ear.over.wait(), 20)
            ear.over.clear()
            if not ear.questions:
                break
            ear.context.add_message({"role": "assistant", "content": ear.replies[-1]})
            ear.context.add_message({"role": "user", "content": ear.questions.pop(0)})
            ear.replies.append("")
        await worker.queue_frame(EndFrame())

    await asyncio.gather(runner.run(), talk())
    await service._client.close()  # type: ignore[attr-defined] # pipecat leaves its connections open
    return ear


@SERVICES
async def test_two_turns(emulator: EmulatorProcess, factory: Factory) -> None:
    """The service speaks both answers, and its token counts are the emulator's."""
    ear = await _converse(factory(emulator, "quick"), [QUESTION, "How many legs does a spider have?"])
    assert ear.errors == []
    assert ear.replies == [ANSWER, "A spider has eight legs."]
    assert ear.usage == [count(reply) for reply in ear.replies]


@SERVICES
async def test_an_error_is_reported(emulator: EmulatorProcess, factory: Factory) -> None:
    """A refused request reaches the pipeline as an error, and the turn ends without text."""
    ear = await _converse(factory(emulator, "quick!529"), [QUESTION])
    assert ear.replies == [""]
    assert len(ear.errors) >= 1


async def test_the_websocket_sends_only_what_is_new(emulator: EmulatorProcess) -> None:
    """Over the WebSocket the second turn continues the first by its id, and the input still counts both."""
    before = len(emulator.requests())
    await _converse(_websocket(emulator, "quick"), [QUESTION, "How many legs does a spider have?"])
    first, second = (emulator.record(request) for request in emulator.requests()[before:])
    assert second["usage"]["input"] > first["usage"]["input"] + first["usage"]["text"]
