"""A pipecat processor that holds the LLM services of several modes in the place of one.

Each member is the very service that its mode has alone, with a stream tap of its own. What comes out of it
ends here, and the group decides what goes on. Members are not seen by the pipeline's observers.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from voicebench.clock import now_ns
from voicebench.plan import registry
from voicebench.plan.config import Conversation, validated
from voicebench.plan.modes import Mode
from voicebench.stages.llm import Tap
from voicebench.stages.llm_keys import redact
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.retries import Retry
from voicebench.stages.shared import Shared
from voicebench.turns.stream import StreamLog


@dataclass
class Member:
    """One mode of the group: its service, its tap, and what came out of the service since it was asked."""

    mode: Mode
    service: Any
    tap: Tap
    inside: Any = None
    """The pipeline around the service."""
    frames: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    ended: bool = False
    """Has the service ended its response?"""

    asked_ns: int = 0

    @property
    def stream(self) -> StreamLog:
        """The stream since it was asked; one without anything where the service has made no request yet."""
        if not self.tap.streams:
            none_yet = StreamLog(self.asked_ns, model=self.mode.model)
            if not (self.ended or self.errors):
                return none_yet
            told = "; ".join(str(error.error) for error in self.errors) or "the service made no request"
            none_yet.end(now_ns(), "failed", redact(told)[:300])
            self.tap.streams.append(none_yet)
        return self.tap.streams[-1]

    def begin(self) -> None:
        """Forget what came of earlier requests."""
        self.tap.take()
        self.asked_ns = now_ns()
        self.frames, self.errors, self.ended = [], [], False


def build_members(mode: Mode, conversation: Conversation, shared: Shared, tap: Tap) -> list[Member]:
    """The services of a mode's members, each built as for the mode alone."""
    members = []
    for one in mode.members:
        plugin = registry.find("llm", one.api, f"mode {one.id}")
        settings = validated(plugin.settings, one.settings, f"mode {one.id}, llm ({one.api})")
        own = Tap()
        own.retry = Retry(one.attempts, tap.retry.longest_wait_s)
        members.append(Member(one, plugin.build(one, settings, conversation, shared, own), own))
    return members


def last_words(context: Any) -> str:
    """What the person said last in a conversation."""
    for message in reversed(context.get_messages()):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            return " ".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))
    return ""


def group_class() -> type[Any]:
    """The processor's class. Its subclasses say in `answer` who is asked and what goes on."""
    hush_pipecat()
    from pipecat.frames.frames import (
        AudioRawFrame,
        ErrorFrame,
        Frame,
        FunctionCallCancelFrame,
        FunctionCallInProgressFrame,
        FunctionCallResultFrame,
        FunctionCallsStartedFrame,
        InterruptionFrame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMFullResponseStartFrame,
        LLMTextFrame,
        LLMThoughtEndFrame,
        LLMThoughtStartFrame,
        LLMThoughtTextFrame,
    )
    from pipecat.pipeline.base_pipeline import BasePipeline
    from pipecat.pipeline.pipeline import Pipeline, PipelineSink, PipelineSource
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessorSetup

    replies = (
        LLMFullResponseStartFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
        LLMThoughtStartFrame,
        LLMThoughtTextFrame,
        LLMThoughtEndFrame,
    )
    calls = (
        FunctionCallsStartedFrame,
        FunctionCallInProgressFrame,
        FunctionCallResultFrame,
        FunctionCallCancelFrame,
    )

    class MemberGroup(BasePipeline):
        """Hands conversations to members and takes their frames."""

        passes_calls = True
        """Do a member's tool calls go on to the rest of the pipeline?"""

        def __init__(self, members: Sequence[Member]) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.members = list(members)
            self.changed = asyncio.Event()
            for member in self.members:
                source = PipelineSource(partial(self._up, member), name=f"{self}::Source {member.mode.id}")
                sink = PipelineSink(partial(self._down, member), name=f"{self}::Sink {member.mode.id}")
                member.inside = Pipeline([member.service], source=source, sink=sink)

        @property
        def processors(self) -> list[Any]:
            """The members' pipelines."""
            return [member.inside for member in self.members]

        @property
        def entry_processors(self) -> list[Any]:
            """Likewise."""
            return self.processors

        def processors_with_metrics(self) -> list[Any]:
            """None: a member's metrics are not those of the turn."""
            return []

        async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]
            await super().setup(setup)
            self._setup_finished()  # type: ignore[no-untyped-call]
            await self._setup_processors(self.processors, dataclasses.replace(setup, observer=None))

        async def cleanup(self) -> None:
            await super().cleanup()  # type: ignore[no-untyped-call]
            await self._cleanup_processors(self.processors)

        async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
            await super().process_frame(frame, direction)
            if isinstance(frame, LLMContextFrame):
                await self.answer(frame)
                return
            if direction is FrameDirection.DOWNSTREAM and not isinstance(frame, AudioRawFrame):
                for member in self.members:
                    await member.inside.queue_frame(frame, direction)
            await self.push_frame(frame, direction)

        async def answer(self, frame: Any) -> None:
            """Answer the conversation in `frame`. An interruption cancels it."""
            raise NotImplementedError

        def register_function(self, name: str | None, handler: Callable[..., Any], **more: Any) -> None:
            """Let each member call this function."""
            for member in self.members:
                member.service.register_function(name, handler, **more)

        async def ask(self, member: Member, frame: Any) -> None:
            """Put the conversation to a member. `changed` is set when something comes of it."""
            member.begin()
            asked = LLMContextFrame(context=frame.context)
            asked.speculation = frame.speculation
            await member.inside.queue_frame(asked, FrameDirection.DOWNSTREAM)

        async def give_up(self, member: Member) -> None:
            """Cancel what a member still says."""
            await member.inside.queue_frame(InterruptionFrame(), FrameDirection.DOWNSTREAM)

        async def text(self, text: str) -> None:
            """Let text go on to speech synthesis."""
            await self.push_frame(LLMTextFrame(text))

        async def begin_reply(self) -> None:
            """Tell those behind that a reply begins."""
            await self.push_frame(LLMFullResponseStartFrame())

        async def end_reply(self) -> None:
            """Tell those behind that the reply has ended."""
            await self.push_frame(LLMFullResponseEndFrame())

        async def heard(self, member: Member, frame: Any) -> None:
            """A frame of a member's reply came. By default it is kept until the group looks at it."""
            member.frames.append(frame)

        async def _down(self, member: Member, frame: Frame, direction: FrameDirection) -> None:
            if isinstance(frame, replies):
                if isinstance(frame, LLMFullResponseEndFrame):
                    member.ended = True
                await self.heard(member, frame)
                self.changed.set()
            elif self.passes_calls and isinstance(frame, calls):
                await self.push_frame(frame, direction)

        async def _up(self, member: Member, frame: Frame, direction: FrameDirection) -> None:
            if isinstance(frame, ErrorFrame):
                member.errors.append(frame)
                self.changed.set()
            elif self.passes_calls and isinstance(frame, calls):
                await self.push_frame(frame, direction)

        async def report_errors(self, member: Member) -> None:
            """Let a member's errors reach the pipeline."""
            errors, member.errors = member.errors, []
            for error in errors:
                await self.push_frame(error, FrameDirection.UPSTREAM)

    return MemberGroup
