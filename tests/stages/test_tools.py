"""Tools that a model calls: scripted, of one's own, failing; each call with its times."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from voicebench.clock import NS_PER_MS, now_ns
from voicebench.errors import BadRequest
from voicebench.pipeline.tool_fields import covered_ns, tool_work_ms
from voicebench.plan.config import Config
from voicebench.plan.tools import Tool
from voicebench.stages.tools import Toolbox, ToolCallLog, check_tools


@dataclass
class Params:
    """What pipecat hands to a tool's handler."""

    arguments: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)

    async def result_callback(self, result: Any) -> None:
        """Take the result."""
        self.results.append(result)


class Service:
    """A service that keeps what is registered."""

    def __init__(self) -> None:
        self.functions: dict[str | None, Any] = {}

    def register_function(self, name: str | None, handler: Any) -> None:
        """Keep a handler."""
        self.functions[name] = handler


def tool(**fields: Any) -> Tool:
    """A tool called t."""
    return Tool.model_validate({"name": "t", "description": "d", **fields})


async def called(made: Tool, **arguments: Any) -> tuple[Params, ToolCallLog]:
    """One call of a tool: what its result was, and what is kept of it."""
    box, service, params = Toolbox([made]), Service(), Params(arguments)
    box.register(service)
    await service.functions["t"](params)
    [call] = box.take()
    return params, call


def where_it_ran(city: str) -> str:
    """A plain function of one's own."""
    return f"{city} in {threading.current_thread() is threading.main_thread()}"


async def async_tool(city: str) -> dict[str, str]:
    """An async one."""
    return {"city": city}


def broken(**_: Any) -> None:
    """One that raises."""
    raise LookupError("no such city")


async def test_a_scripted_tool_takes_its_time() -> None:
    """It gives its result when its duration is over, and the call has both instants."""
    before = now_ns()
    params, call = await called(tool(takes_ms=40, result={"t": 20}), city="Paris")
    assert params.results == [{"t": 20}]
    assert call.end_ns is not None
    assert before <= call.start_ns
    assert call.end_ns - call.start_ns >= 40 * NS_PER_MS
    assert (call.arguments, call.error, call.running) == ('{"city": "Paris"}', None, False)


async def test_a_function_of_ones_own_is_called() -> None:
    """A plain one in a thread, where it holds nothing up; an async one as it is."""
    params, _ = await called(tool(call=f"{__name__}:where_it_ran"), city="Rome")
    assert params.results == ["Rome in False"]
    params, _ = await called(tool(call=f"{__name__}:async_tool"), city="Rome")
    assert params.results == [{"city": "Rome"}]


async def test_what_a_tool_raises_is_told_to_the_model() -> None:
    """The error is the call's result, and is kept."""
    params, call = await called(tool(call=f"{__name__}:broken"))
    assert params.results == [{"error": "LookupError: no such city"}]
    assert call.error == "LookupError: no such city"
    assert call.end_ns is not None


async def test_a_call_that_is_cancelled_has_no_end() -> None:
    """It does not run any more, and nothing is told to the model."""
    box, service, params = Toolbox([tool(takes_ms=10_000)]), Service(), Params()
    box.register(service)
    task = asyncio.create_task(service.functions["t"](params))
    await asyncio.sleep(0)
    assert box.running
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [call] = box.take()
    assert (call.end_ns, call.running, params.results) == (None, False, [])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "exactly one"),
        ({"takes_ms": 1, "call": "a:b"}, "exactly one"),
        ({"call": "a:b", "result": 1}, "result"),
        ({"takes_ms": 1, "required": ["x"]}, "not among the parameters"),
        ({"takes_ms": 1, "name": "no spaces"}, "name"),
    ],
)
def test_a_tool_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    """The refusal names what does not fit."""
    with pytest.raises(ValueError, match=said):
        tool(**fields)


def test_a_function_that_is_not_there_is_refused_before_the_run() -> None:
    """The refusal names the mode, the tool and the function."""
    with pytest.raises(BadRequest, match=r"mode m, tool t: 'nowhere:f' cannot be imported"):
        check_tools([tool(call="nowhere:f")], "mode m")


def test_tools_go_to_the_modes_that_are_named() -> None:
    """Without names to every mode of the run; a set of candidates takes none."""
    given: dict[str, Any] = {
        "modes": ["emulated/opus-4.6", "emulated/gpt-5.3-codex"],
        "tools": [
            {"name": "a", "description": "d", "takes_ms": 1},
            {"name": "b", "description": "d", "takes_ms": 1, "modes": ["emulated/opus-4.6"]},
        ],
    }
    own = Config.model_validate(given).own
    assert [one.name for one in own["emulated/opus-4.6"].tools] == ["a", "b"]
    assert [one.name for one in own["emulated/gpt-5.3-codex"].tools] == ["a"]
    given["sets"] = [{"id": "set/a", "candidates": ["emulated/opus-4.6"], "times": 2, "take": "first_clause"}]
    given["modes"].append("set/a")
    with pytest.raises(BadRequest, match="set/a asks several at once"):
        _ = Config.model_validate(given).own


def test_overlapping_tools_count_once() -> None:
    """Two at once take as long as both together, and only what is before the first text is a part of it."""
    spans = [(0, 10), (5, 20), (30, 40), (31, 32)]
    assert covered_ns(spans) == 30
    calls = [ToolCallLog("t", start * NS_PER_MS, end_ns=end * NS_PER_MS) for start, end in spans]
    assert tool_work_ms(calls, 35 * NS_PER_MS) == {"tool": 30.0, "tool_before_text": 25.0}
    assert tool_work_ms(calls, None) == {"tool": 30.0}
    assert tool_work_ms([ToolCallLog("t", 5)], 10) == {}
