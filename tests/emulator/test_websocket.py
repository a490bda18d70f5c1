"""The Responses API over a WebSocket, message by message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.emulator.readers import ANSWER, QUESTION, ended, text_of
from voicebench.emulator.process import EmulatorProcess

Socket = aiohttp.ClientWebSocketResponse


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that sends nothing of its own."""
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer k"}) as client:
        yield client


async def create(socket: Socket, question: str = QUESTION, model: str = "quick", **more: Any) -> None:
    """Ask for a response."""
    await socket.send_json({"type": "response.create", "model": model, "input": question, **more})


async def events_of(socket: Socket) -> list[dict[str, Any]]:
    """The events up to the one that ends a response."""
    events = []
    while True:
        event = json.loads(await socket.receive_str(timeout=10))
        events.append(event)
        if event["type"] in ("response.completed", "response.incomplete", "response.failed", "error"):
            return events


def text_in(events: list[dict[str, Any]]) -> str:
    """The text of a response."""
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def test_responses_follow_one_another(
    emulator: EmulatorProcess, session: aiohttp.ClientSession
) -> None:
    """Requests sent at once are answered one after the other, each whole."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket)
        await create(socket, "How many legs does a spider have?")
        assert text_in(await events_of(socket)) == ANSWER
        assert text_in(await events_of(socket)) == "A spider has eight legs."


async def test_lanes_run_side_by_side(emulator: EmulatorProcess, session: aiohttp.ClientSession) -> None:
    """A slow response on one lane does not hold up another lane; every event names its lane."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, model="opus-4.6", stream_id="slow")
        await create(socket, stream_id="quick")
        order: list[str] = []
        texts = {"slow": "", "quick": ""}
        while len(order) < 2:
            event = json.loads(await socket.receive_str(timeout=10))
            if event["type"] == "response.output_text.delta":
                texts[event["stream_id"]] += event["delta"]
            elif event["type"] == "response.completed":
                order.append(event["stream_id"])
    assert order == ["quick", "slow"]
    assert texts == {"slow": ANSWER, "quick": ANSWER}


async def test_a_response_can_be_cancelled(emulator: EmulatorProcess, session: aiohttp.ClientSession) -> None:
    """A cancelled response ends with its own last event, and the connection serves the next one."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, "Tell me at length about tea.", model="opus-4.6")
        created = json.loads(await socket.receive_str(timeout=10))
        await socket.send_json({"type": "response.cancel", "response_id": created["response"]["id"]})
        events = [created, *await events_of(socket)]
        assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.incomplete", "cancelled")
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        record = emulator.record(emulator.requests()[-1])
        assert (record["outcome"], text_of(record)) == ("cancelled", text_in(events))
        await socket.send_json({"type": "response.cancel", "response_id": "resp_unknown"})
        await create(socket)
        assert text_in(await events_of(socket)) == ANSWER


async def test_wrong_messages_are_told(emulator: EmulatorProcess, session: aiohttp.ClientSession) -> None:
    """What is no request gets an `error` event in the SDK's shape, and the connection lives on."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        wrong = [
            "{",
            "[]",
            json.dumps({"type": "response.dance"}),
            json.dumps({"type": "response.steer", "previous_response_id": "x", "input": "y"}),
            json.dumps({"type": "response.create", "model": "quick", "input": 5}),
            json.dumps({"type": "response.create", "model": "quick", "input": "x", "stream_id": 5}),
        ]
        for message in wrong:
            await socket.send_str(message)
            (event,) = await events_of(socket)
            assert (event["type"], event["status"]) == ("error", 400)
            assert event["error"]["type"] == "invalid_request_error"
        await socket.send_bytes(b"\x00")
        assert (await events_of(socket))[0]["status"] == 400
        await create(socket, previous_response_id="resp_unknown")
        assert (await events_of(socket))[0]["error"]["code"] == "previous_response_not_found"
        await create(socket, model="nobody")
        assert (await events_of(socket))[0]["status"] == 404
        await create(socket)
        assert text_in(await events_of(socket)) == ANSWER


async def test_status_faults_are_events(emulator: EmulatorProcess, session: aiohttp.ClientSession) -> None:
    """A planted status comes as an `error` event with that status and its headers."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, model="quick!429;retry_after=3")
        (event,) = await events_of(socket)
        assert (event["status"], event["error"]["code"]) == (429, "rate_limit_exceeded")
        assert event["error"]["headers"] == {"retry-after": "3"}
        await create(socket, model="quick!429-once", question=f"{QUESTION} (over a WebSocket)")
        assert (await events_of(socket))[0]["status"] == 429
        await create(socket, model="quick!429-once", question=f"{QUESTION} (over a WebSocket)")
        assert text_in(await events_of(socket)) == ANSWER


@pytest.mark.parametrize("headers", [{"Authorization": ""}, {"x-emulate-fault": "401"}])
async def test_a_refused_key_ends_the_handshake(
    emulator: EmulatorProcess, session: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    """A missing key, or a planted 401 in a header, refuses the connection itself."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await session.ws_connect(emulator.websocket_url, headers=headers)
    assert caught.value.status == 401


@pytest.mark.parametrize("fault", ["drip;gap_ms=0", "utf8-split"])
async def test_bytes_in_odd_shapes(
    emulator: EmulatorProcess, session: aiohttp.ClientSession, fault: str
) -> None:
    """Byte by byte, or in frames that are cut inside characters, the text is whole; pings are answered
    between."""
    headers = {"x-emulate-fault": fault, "x-emulate-reply": "unicode"}
    async with session.ws_connect(emulator.websocket_url, headers=headers, autoping=False) as socket:
        await create(socket)
        await socket.ping(b"still there?")
        events: list[dict[str, Any]] = []
        pongs: list[bytes] = []
        while not events or events[-1]["type"] != "response.completed":
            message = await socket.receive(timeout=10)
            if message.type is aiohttp.WSMsgType.PONG:
                pongs.append(bytes(message.data))
            else:
                events.append(json.loads(message.data))
    assert text_in(events) == text_of(emulator.record(emulator.requests()[-1]))
    assert "👩‍👩‍👧" in text_in(events)
    assert pongs == [b"still there?"]


@pytest.mark.parametrize("fault", ["error-in-stream", "overloaded-in-stream", "failed-in-stream"])
async def test_errors_inside_a_response(
    emulator: EmulatorProcess, session: aiohttp.ClientSession, fault: str
) -> None:
    """An error after some text is nested, with its status; or the response fails; the connection lives on."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, model=f"quick!{fault}")
        events = await events_of(socket)
        assert 0 < len(text_in(events)) < len(ANSWER)
        if fault == "failed-in-stream":
            assert events[-1]["response"]["status"] == "failed"
        else:
            assert events[-1]["status"] == (529 if "overloaded" in fault else 500)
            assert events[-1]["error"]["message"]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        await create(socket)
        assert text_in(await events_of(socket)) == ANSWER


@pytest.mark.parametrize(
    ("fault", "closed"), [("drop", 1006), ("reset", 1006), ("half-event", 1006), ("no-terminal", 1000)]
)
async def test_a_connection_that_ends_in_mid_answer(
    emulator: EmulatorProcess, session: aiohttp.ClientSession, fault: str, closed: int
) -> None:
    """The connection breaks, or is closed in order, after some text and without a terminal event."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, model=f"quick!{fault};after=3")
        text = ""
        async for message in socket:
            event = json.loads(message.data)
            assert event["type"] != "response.completed"
            text += event.get("delta", "")
        assert text == "The capital of"
        assert socket.close_code == closed


async def test_a_client_that_leaves_is_noticed(
    emulator: EmulatorProcess, session: aiohttp.ClientSession
) -> None:
    """A response whose client closes the connection ends, with what had gone out in its record."""
    async with session.ws_connect(emulator.websocket_url) as socket:
        await create(socket, model="quick!hang-mid;after=2")
        event = {"type": ""}
        while event.get("delta") != " capital":
            event = json.loads(await socket.receive_str(timeout=10))
    record = ended(emulator, emulator.requests()[-1])
    assert record["outcome"] == "client_gone"
    assert text_of(record) == "The capital"
