"""Tools that a model calls in a turn: scripted ones of a stated duration, or functions of the user's own.

Each call is kept with both times. What a function raises is told to the model as its result, and kept.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns
from voicebench.plan.tools import Tool
from voicebench.stages.dotted import function_named


@dataclass
class ToolCallLog:
    """One call. Instants are ns of the monotonic clock; `end_ns` None: it runs, or was cancelled."""

    name: str
    start_ns: int
    arguments: str = "{}"
    end_ns: int | None = None
    error: str | None = None
    cancelled: bool = False

    @property
    def running(self) -> bool:
        """Is the tool still at work?"""
        return self.end_ns is None and not self.cancelled


def check_tools(tools: Sequence[Tool], where: str) -> None:
    """Refuses a tool whose function cannot be found. Raises BadRequest."""
    for tool in tools:
        if tool.call is not None:
            function_named(tool.call, f"{where}, tool {tool.name}")


class Toolbox:
    """The tools of one mode's pipeline, and the calls of the current turn."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self.tools = tuple(tools)
        self.calls: list[ToolCallLog] = []

    @property
    def running(self) -> bool:
        """Is any call still at work?"""
        return any(call.running for call in self.calls)

    def take(self) -> list[ToolCallLog]:
        """All calls since the last time."""
        taken, self.calls = self.calls, []
        return taken

    def schema(self) -> Any:
        """The tools as pipecat's conversation takes them."""
        from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
        from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema

        return ToolsSchema(
            standard_tools=[
                FunctionSchema(
                    name=tool.name,
                    description=tool.description,
                    properties=dict(tool.parameters),
                    required=list(tool.required),
                )
                for tool in self.tools
            ]
        )

    def register(self, llm: Any) -> None:
        """Let this service call the tools. Without any, a call leads nowhere, and to no further request."""
        if not self.tools:
            llm.register_function(None, _unanswered)
        for tool in self.tools:
            llm.register_function(tool.name, self._handler(tool))

    def _handler(self, tool: Tool) -> Any:
        function = None if tool.call is None else function_named(tool.call, f"tool {tool.name}")

        async def handle(params: Any) -> None:
            arguments = dict(params.arguments or {})
            call = ToolCallLog(tool.name, now_ns(), json.dumps(arguments, ensure_ascii=False, default=str))
            self.calls.append(call)
            try:
                result = await _run(tool, function, arguments)
            except asyncio.CancelledError:
                call.cancelled = True
                raise
            except Exception as error:
                # The function is the user's own, which may raise anything.
                call.error = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                result = {"error": call.error}
            call.end_ns = now_ns()
            await params.result_callback(result)

        return handle


async def _unanswered(params: Any) -> None:
    """A call of a tool that the model was not given: it waits until the turn's end cancels it."""
    await asyncio.Event().wait()


async def _run(tool: Tool, function: Any, arguments: dict[str, Any]) -> Any:
    """The tool's result. A plain function runs in a thread, so that it cannot hold up the audio."""
    if function is None:
        due = now_ns() + round((tool.takes_ms or 0.0) * NS_PER_MS)
        await asyncio.sleep(max(0.0, (due - now_ns()) / NS_PER_S))
        return tool.result
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    return await asyncio.to_thread(function, **arguments)
