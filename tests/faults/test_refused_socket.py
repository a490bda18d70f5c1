"""A WebSocket that cannot be opened: the request ends at once as what it is, and the next one is healthy."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.faults.silent_server import SAID, silent_server
from tests.pipeline.driven import SPEECH_S, clip
from tests.pipeline.emulated_turns import emulated_mode, talking_to
from tests.stages.asked import APIS, QUESTION, a_mode, stage_of, through_pipecat
from voicebench.clock import NS_PER_S
from voicebench.plan.config import Conversation
from voicebench.stages import llm
from voicebench.stages.llm import Tap
from voicebench.stages.retries import Retry
from voicebench.stages.shared import Shared
from voicebench.turns.records import Outcome
from voicebench.turns.stream import StreamLog

API = "openai-responses-ws"
AT_ONCE_S = 1.0
REFUSALS = {
    401: Outcome.FAILED,
    403: Outcome.FAILED,
    404: Outcome.FAILED,
    500: Outcome.FAILED,
    429: Outcome.RATE_LIMITED,
    503: Outcome.OVERLOADED,
    529: Outcome.OVERLOADED,
}
"""What becomes of a request whose handshake is refused with each HTTP status."""


async def _asked(port: int, times: int, api: str = API) -> list[StreamLog]:
    plugin, given = stage_of(api, port)
    assert plugin.ask is not None
    asker: Any = await asyncio.to_thread(plugin.ask, a_mode(api), given, Conversation(), Shared(), Tap())
    try:
        return [await asker.ask(QUESTION) for _ in range(times)]
    finally:
        await asker.close()


def _free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


async def test_a_refused_handshake_is_what_its_status_says() -> None:
    """Asked directly: typed by the HTTP status, over at once, and the same asker's next request is served."""

    async def one(status: int, outcome: Outcome) -> None:
        async with silent_server("none") as server:
            server.refuses = [status]
            refused, following = await _asked(server.port, 2)
        assert (refused.status, refused.text) == (outcome.value, ""), status
        assert f"HTTP {status}" in refused.detail
        assert len(refused.attempts) == 1
        assert refused.end_ns is not None
        assert refused.end_ns - refused.request_ns <= AT_ONCE_S * NS_PER_S
        assert (following.status, following.text) == ("ok", SAID), (status, following.detail)

    await asyncio.gather(*(one(status, outcome) for status, outcome in REFUSALS.items()))


async def test_a_refused_handshake_ends_a_spoken_turn_at_once() -> None:
    """Through pipecat's service, which tries nothing again unseen: one attempt, typed, the next turn well."""

    async def one(status: int, outcome: Outcome) -> None:
        async with silent_server("none") as server:
            # One for the session's own connection, one for the turn's.
            server.refuses = [status, status]
            address = f"http://127.0.0.1:{server.port}/v1"
            mode = emulated_mode(API, server, "quick", settings={"base_url": address})
            async with talking_to(mode, turn_timeout_s=8.0) as driver:
                refused = await driver.record(clip(SPEECH_S))
                server.refuses = []
                following = await driver.record(clip(SPEECH_S))
        assert refused.outcome is outcome, (status, refused.reason)
        assert f"HTTP {status}" in (refused.reason or "")
        [attempt] = refused.attempts
        assert attempt.end_ns is not None
        assert attempt.end_ns - attempt.request_ns <= AT_ONCE_S * NS_PER_S, status
        assert (following.outcome, following.reply) == (Outcome.COMPLETED, SAID), (status, following.reason)

    await asyncio.gather(*(one(status, REFUSALS[status]) for status in (401, 429, 503)))


async def test_an_endpoint_that_is_not_there_fails_at_once() -> None:
    """Where nobody listens the request has failed in the system's words, over all four protocols, directly
    and in a spoken turn."""
    port = _free_port()

    async def one(api: str) -> None:
        [log] = await _asked(port, 1, api)
        async with talking_to(
            emulated_mode(api, cast(Any, SimpleNamespace(port=port)), "quick"), turn_timeout_s=8.0
        ) as driver:
            record = await driver.record(clip(SPEECH_S))
        assert (log.status, record.outcome) == ("failed", Outcome.FAILED), (api, log.detail, record.reason)
        assert "onnect" in log.detail
        assert "onnect" in (record.reason or "")
        for attempts in (log.attempts, record.attempts):
            [attempt] = attempts
            assert attempt.end_ns is not None
            assert attempt.end_ns - attempt.request_ns <= AT_ONCE_S * NS_PER_S, api

    await asyncio.gather(*map(one, APIS))


async def test_a_refused_handshake_is_tried_again_as_often_as_the_mode_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two attempts the second one answers; both stand in the log, directly and through pipecat."""
    monkeypatch.setattr(llm, "Retry", lambda: Retry(2, 1.0))
    async with silent_server("none") as server:
        server.refuses = [429]
        [direct] = await _asked(server.port, 1)
        server.refuses = [503, 503]
        [spoken] = (await through_pipecat(cast(Any, server), API)).streams
    assert [one.status for one in direct.attempts] == ["rate_limited", "ok"]
    assert [one.status for one in spoken.attempts] == ["overloaded", "ok"]
    for log in (direct, spoken):
        assert (log.status, log.text, log.new_connection) == ("ok", SAID, True)
        assert log.connect_ns is not None
        assert log.request_ns == log.attempts[0].request_ns
