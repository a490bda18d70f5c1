"""Every fault over every protocol, asked directly: a typed end in time, and the next request is healthy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stages.asked import ANSWER, APIS, QUESTION, SCRIPTS, a_mode, asked, stage_of
from voicebench.clock import NS_PER_S
from voicebench.emulator.faults import FAULTS
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.plan.config import Conversation
from voicebench.stages import llm
from voicebench.stages.llm import Tap
from voicebench.stages.retries import Retry
from voicebench.stages.shared import Shared
from voicebench.turns.stream import StreamLog

TIMEOUT_S = 0.5
LIMIT_S = TIMEOUT_S + 1.0
STATUS = {
    **dict.fromkeys(
        ("401", "403", "404", "500", "redirect", "error-in-stream", "failed-in-stream"), "failed"
    ),
    **dict.fromkeys(("429", "429-once"), "rate_limited"),
    **dict.fromkeys(("503", "529", "overloaded-in-stream"), "overloaded"),
    **dict.fromkeys(("no-terminal", "drop", "reset", "half-event"), "truncated"),
    **dict.fromkeys(("hang-headers", "hang-first-text", "hang-mid"), "timed_out"),
    "408": "failed",
    **dict.fromkeys(
        (
            *("asked-not-served", "empty", "blank-only", "blank-then-text", "tool-call"),
            *("text-then-tool-call", "filtered-in-stream", "done-without-finish", "finish-without-done"),
            *("drip", "utf8-split", "crlf", "comments", "bom"),
        ),
        "ok",
    ),
}
"""The status of a stream with each fault, over every protocol but for those in `UNLIKE`."""
UNLIKE = {
    ("done-without-finish", "openai-responses"): "truncated",
    ("done-without-finish", "openai-responses-ws"): "truncated",
    # A socket is open before the request names a model.
    ("redirect", "openai-responses-ws"): "ok",
}
CELLS = {(fault, api): UNLIKE.get((fault, api), STATUS[fault]) for fault in STATUS for api in APIS}


def test_the_matrix_is_complete() -> None:
    """Each fault that the emulator knows has a cell with each protocol."""
    assert set(CELLS) == {(fault, api) for fault in FAULTS for api in APIS}


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own."""
    with start(scripts=SCRIPTS, seed=7) as server:
        yield server


async def faulty_and_next(emulator: EmulatorProcess, api: str, fault: str) -> tuple[StreamLog, StreamLog]:
    """Over one asker: a request with the fault, ended by us after the time-out, and one without."""
    plugin, settings = stage_of(api, emulator.port)
    assert plugin.ask is not None
    tap, shared = Tap(), Shared()
    mode = a_mode(api, f"quick!{fault}")
    asker: Any = await asyncio.to_thread(
        plugin.ask, mode, settings, Conversation(max_tokens=400), shared, tap
    )
    try:
        for prompt in (f"{QUESTION} ({fault}, {api})", QUESTION):
            try:
                async with asyncio.timeout(TIMEOUT_S if fault.startswith("hang") else 10):
                    await asker.ask(prompt)
            except TimeoutError:
                assert fault.startswith("hang")
            _ask_for(asker, "quick")
    finally:
        await asker.close()
    first, second = tap.take()
    return first, second


def _ask_for(asker: Any, model: str) -> None:
    """Let the asker's next request be for another model."""
    if hasattr(asker, "_fields"):
        asker._fields = {**asker._fields, "model": model}
        return
    made = asker._request
    asker._request = lambda prompt: {**made(prompt), "model": model}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_ends_in_its_status_in_time_and_the_next_request_is_well(
    emulator: EmulatorProcess, fault: str
) -> None:
    """Over all four protocols the stream ends as what it is, a hang within a second more, and the same
    asker's next request is served."""
    both = await asyncio.gather(*(faulty_and_next(emulator, api, fault) for api in APIS))
    for api, (faulty, following) in zip(APIS, both, strict=True):
        expected = CELLS[fault, api]
        assert faulty.end_ns is not None
        lasted_s = (faulty.end_ns - faulty.request_ns) / 1e9
        if expected == "timed_out":
            assert faulty.status == "cancelled", api
            assert TIMEOUT_S * 0.9 <= lasted_s <= LIMIT_S
        else:
            assert faulty.status == expected, (api, faulty.status, faulty.detail)
        assert (faulty.status in ("ok", "cancelled")) == (not faulty.detail)
        assert (following.status, following.text) == ("ok", ANSWER), (api, following.detail)


async def test_an_endpoint_that_hangs_is_given_up_after_its_own_time_out(
    emulator: EmulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an endpoint may be silent for so long and no longer, that ends the stream as `timed_out`, over
    all four protocols; it is not asked again, though a request may be made twice."""
    monkeypatch.setattr(llm, "Retry", lambda: Retry(2, 1.0))

    async def one(api: str, fault: str) -> None:
        [log] = await asked(emulator, api, f"quick!{fault}", timeout_s=TIMEOUT_S)
        assert (log.status, len(log.attempts)) == ("timed_out", 1), (api, fault, log.detail)
        assert log.detail
        assert log.end_ns is not None
        assert TIMEOUT_S * 0.9 <= (log.end_ns - log.request_ns) / NS_PER_S <= LIMIT_S, (api, fault)

    await asyncio.gather(*(one(api, fault) for fault in FAULTS if fault.startswith("hang") for api in APIS))
