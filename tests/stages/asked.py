"""One emulator for the language model stages' tests, asked directly and through pipecat's services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from voicebench.emulator.process import EmulatorProcess
from voicebench.emulator.timing import TimingScript
from voicebench.plan import registry
from voicebench.plan.config import Conversation
from voicebench.plan.modes import Mode
from voicebench.stages.llm import Tap
from voicebench.stages.shared import Shared
from voicebench.turns.stream import StreamLog

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris, on the river Seine."
APIS = ("anthropic", "openai-chat", "openai-responses", "openai-responses-ws")
PATHS = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1", "openai-responses-ws": "/v1"}

SCRIPTS = (
    TimingScript("quick", headers_ms=1.0, preamble_ms=1.0, first_text_ms=2.0, rate_tok_s=5000.0),
    TimingScript("steady", headers_ms=20.0, preamble_ms=40.0, first_text_ms=150.0, rate_tok_s=1000.0),
    TimingScript(
        "thinker",
        headers_ms=1.0,
        preamble_ms=1.0,
        first_text_ms=60.0,
        reasoning_tokens=12,
        reasoning_gap_ms=50.0,
        rate_tok_s=5000.0,
    ),
    TimingScript(
        "cached", rate_tok_s=5000.0, cache_read_tokens=40, cache_write_tokens=7, served_speed="standard"
    ),
    TimingScript("sprinter", rate_tok_s=5000.0, served_speed="fast"),
    TimingScript("slow", first_text_ms=5.0, rate_tok_s=20.0),
)


def a_mode(api: str, model: str = "quick", **fields: Any) -> Mode:
    """A mode over this API whose model the emulator knows."""
    return Mode(
        **{"id": f"test/{model}", "kind": "live", "provider": "x", "api": api, "model": model, **fields}
    )


def stage_of(api: str, port: int, **settings: Any) -> tuple[registry.Plugin, Any]:
    """The plug-in for this API and settings that lead to the emulator."""
    plugin = registry.find("llm", api)
    return plugin, plugin.settings(base_url=f"http://127.0.0.1:{port}{PATHS[api]}", **settings)


async def asked(
    emulator: EmulatorProcess,
    api: str,
    model: str = "quick",
    *,
    prompts: tuple[str, ...] = (QUESTION,),
    max_tokens: int = 400,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> list[StreamLog]:
    """Ask directly, one prompt after the other over one asker; the log of each."""
    plugin, given = stage_of(api, emulator.port, **settings)
    assert plugin.ask is not None
    tap = Tap()
    mode = a_mode(api, model, options=options or {})
    conversation = Conversation(max_tokens=max_tokens)
    asker = await asyncio.to_thread(plugin.ask, mode, given, conversation, Shared(), tap)
    try:
        return [await asker.ask(prompt) for prompt in prompts]
    finally:
        await asker.close()


@dataclass
class Spoken:
    """What came out of a pipecat service: text, errors, and the tap's logs."""

    replies: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    streams: list[StreamLog] = field(default_factory=list)


async def through_pipecat(
    emulator: EmulatorProcess,
    api: str,
    model: str = "quick",
    *,
    prompts: tuple[str, ...] = (QUESTION,),
    max_tokens: int = 400,
    options: dict[str, Any] | None = None,
    interrupt_at: int | None = None,
    conversations: tuple[list[dict[str, str]], ...] = (),
    before_each: Callable[[Any], None] = lambda service: None,
) -> Spoken:
    """Put the prompts to the pipecat service of this API, each in a conversation of its own.

    `conversations` are put in place of the prompts. With `interrupt_at` the person barges in at that text
    frame. `before_each` may change the service before each request.
    """
    from pipecat.frames.frames import (
        EndFrame,
        ErrorFrame,
        Frame,
        InterruptionFrame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
    )
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineWorker
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
    from pipecat.workers.runner import WorkerRunner

    plugin, given = stage_of(api, emulator.port)
    shared, tap, spoken = Shared(), Tap(), Spoken()
    mode = a_mode(api, model, options=options or {})
    service = await asyncio.to_thread(
        plugin.build, mode, given, Conversation(max_tokens=max_tokens), shared, tap
    )

    class Ear(FrameProcessor):
        over = asyncio.Event()
        texts = 0

        async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
            await super().process_frame(frame, direction)
            if isinstance(frame, LLMTextFrame):
                spoken.replies[-1] += frame.text
                self.texts += 1
                if self.texts == interrupt_at:
                    await worker.queue_frame(InterruptionFrame())
            elif isinstance(frame, LLMFullResponseEndFrame | InterruptionFrame):
                self.over.set()
            await self.push_frame(frame, direction)

    ear = Ear()
    worker = PipelineWorker(Pipeline([service, ear]), enable_rtvi=False, idle_timeout_secs=None)

    @worker.event_handler("on_pipeline_error")  # type: ignore[untyped-decorator] # pipecat ships no type for it
    async def _on_error(worker: PipelineWorker, frame: ErrorFrame) -> None:
        spoken.errors.append(frame.error)

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)

    async def talk() -> None:
        given = conversations or tuple([{"role": "user", "content": prompt}] for prompt in prompts)
        for messages in given:
            before_each(service)
            spoken.replies.append("")
            ear.over.clear()
            context = LLMContext([*messages])  # type: ignore[list-item] # plain dictionaries serve
            await worker.queue_frame(LLMContextFrame(context))
            async with asyncio.timeout(20):
                await ear.over.wait()
        await worker.queue_frame(EndFrame())

    await asyncio.gather(runner.run(), talk())
    spoken.streams = tap.take()
    for made in shared._made.values():
        await made.close()
    closing: Callable[[], Awaitable[Any]] | None = getattr(service._client, "close", None)
    if closing is not None:
        await closing()
    return spoken
