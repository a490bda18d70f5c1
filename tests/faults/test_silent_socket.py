"""A WebSocket whose server falls silent: the request ends as `timed_out` in time, the next one is healthy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast, get_args

import pytest

from tests.faults.silent_server import SAID, Silence, SilentServer, silent_server
from tests.pipeline.driven import SPEECH_S, clip
from tests.pipeline.emulated_turns import emulated_mode, talking_to
from tests.stages.asked import QUESTION, a_mode, stage_of, through_pipecat
from voicebench.clock import NS_PER_S
from voicebench.plan.config import Conversation
from voicebench.stages.llm import Tap
from voicebench.stages.llm_responses_ws import DRAIN_S, SocketAsker
from voicebench.stages.llm_socket import connect_options
from voicebench.stages.shared import Shared
from voicebench.turns.records import Outcome

API = "openai-responses-ws"
TIMEOUT_S = 0.3
LIMIT_S = TIMEOUT_S + 1.0
SILENCES: tuple[Silence, ...] = tuple(one for one in get_args(Silence) if one != "none")


@asynccontextmanager
async def _asker(server: SilentServer, **settings: Any) -> AsyncIterator[SocketAsker]:
    plugin, given = stage_of(API, server.port, **settings)
    assert plugin.ask is not None
    asker: Any = await asyncio.to_thread(plugin.ask, a_mode(API), given, Conversation(), Shared(), Tap())
    try:
        yield asker
    finally:
        await asker.close()


async def _of_all(
    check: Callable[[SilentServer], Awaitable[None]], silences: tuple[Silence, ...] = SILENCES
) -> None:
    """Check the silences at the same time, each with a server of its own."""

    async def one(silence: Silence) -> None:
        async with silent_server(silence) as server:
            await check(server)

    await asyncio.gather(*map(one, silences))


async def test_a_request_ends_when_its_endpoint_was_silent_for_so_long() -> None:
    """Asked directly: at the handshake, before the first event and in mid-stream; what had come is kept."""

    async def check(server: SilentServer) -> None:
        silence = server.silence
        async with _asker(server, timeout_s=TIMEOUT_S) as asker:
            begun = time.monotonic()
            log = await asker.ask(QUESTION)
            lasted_s = time.monotonic() - begun
            server.silence = "none"
            following = await asker.ask(QUESTION)
        assert log.status == "timed_out", (silence, log.detail)
        assert "silent for 0.3 s" in log.detail or (silence == "handshake" and "handshake" in log.detail)
        assert log.text == (SAID if silence == "mid-stream" else "")
        assert log.end_ns is not None
        assert TIMEOUT_S * 0.9 <= (log.end_ns - log.request_ns) / NS_PER_S <= lasted_s <= LIMIT_S, silence
        assert (following.status, following.text) == ("ok", SAID), (silence, following.detail)
        assert following.new_connection
        assert server.connections == 2

    await _of_all(check)


async def test_a_spoken_turn_ends_when_its_endpoint_was_silent_for_so_long() -> None:
    """Through pipecat's service, long before the turn's own time-out; the next turn is completed."""

    async def check(server: SilentServer) -> None:
        silence = server.silence
        address = f"http://127.0.0.1:{server.port}/v1"
        mode = emulated_mode(API, server, "quick", settings={"base_url": address, "timeout_s": TIMEOUT_S})
        async with talking_to(mode, turn_timeout_s=8.0) as driver:
            faulty = await driver.record(clip(SPEECH_S))
            server.silence = "none"
            following = await driver.record(clip(SPEECH_S))
        assert faulty.outcome is Outcome.TIMED_OUT, (silence, faulty.outcome, faulty.reason)
        assert "LLM: TimeoutError: the endpoint was silent" in (faulty.reason or "")
        [attempt] = faulty.attempts
        assert attempt.end_ns is not None
        assert TIMEOUT_S * 0.9 <= (attempt.end_ns - attempt.request_ns) / NS_PER_S <= LIMIT_S, silence
        assert following.outcome is Outcome.COMPLETED, (silence, following.reason)
        assert following.reply == SAID

    await _of_all(check)


async def test_a_server_that_answers_no_ping_is_one_that_fell_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the socket's own pings find out first, the request is `timed_out`, too, with text or without."""
    monkeypatch.setattr(
        "voicebench.stages.llm_responses_ws.connect_options",
        lambda settings: {**connect_options(settings), "ping_interval": 0.1, "ping_timeout": 0.1},
    )

    async def check(server: SilentServer) -> None:
        silence = server.silence
        async with _asker(server) as asker:
            log = await asker.ask(QUESTION)
            server.silence = "none"
            following = await asker.ask(QUESTION)
        assert (log.status, "answered no ping" in log.detail) == ("timed_out", True), (silence, log.detail)
        assert log.text == (SAID if silence == "mid-stream" else "")
        assert (following.status, following.text) == ("ok", SAID)

    await _of_all(check, ("first-event", "mid-stream"))


async def test_a_request_given_up_does_not_wait_for_a_farewell() -> None:
    """Cancelled while its server is silent, the request ends then, and asking is over soon after."""
    async with silent_server("mid-stream") as server, _asker(server) as asker:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await asker.ask(QUESTION)
        assert time.monotonic() - begun <= LIMIT_S
        server.silence = "none"
        following = await asker.ask(QUESTION)
    assert (following.status, following.text) == ("ok", SAID)


async def test_a_barge_in_on_a_silent_server_leaves_the_next_turn_well() -> None:
    """Of a reply that was broken off and never ends nothing is waited for long, and nothing is taken for the
    next reply."""
    async with silent_server("mid-stream") as server:
        begun: list[float] = []

        def before_each(_: object) -> None:
            begun.append(time.monotonic())
            server.silence = "none" if len(begun) > 1 else "mid-stream"

        spoken = await through_pipecat(
            cast(Any, server), API, prompts=(QUESTION, QUESTION), interrupt_at=1, before_each=before_each
        )
        lasted_s = time.monotonic() - begun[1]
    assert [log.status for log in spoken.streams] == ["cancelled", "ok"]
    assert spoken.replies == [SAID, SAID]
    assert server.connections == 2
    assert lasted_s <= DRAIN_S + 1.0
