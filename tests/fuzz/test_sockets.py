"""WebSockets of any bytes through the real SDK and through pipecat: a typed end, never a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.held import EVERYWHERE, VALUES, asked, changed, check_ended, cut
from tests.fuzz.how_much import examples
from tests.fuzz.socket_bytes import frames, serving
from tests.keys_and_text.echoing_vendor import events_of
from tests.stages.asked import through_pipecat
from voicebench.emulator.staging import TEXT, websocket_frame
from voicebench.turns.stream import StreamLog

API = "openai-responses-ws"
SAID = "Zürich, 東京 – 🗼."
EVENTS = [
    event.split(b"data: ", 1)[1].strip().replace(b"It is Paris.", SAID.encode())
    for event in events_of("/responses", "x", "success")
]
MESSAGES = (
    *(b"", b"{}", b"null", b"[]", b'"x"', b"5", b"{", b"NaN", b"\xff", b"\xef\xbb\xbf{}", b"[" * 3000),
    *(
        b'{"type": 5}',
        b'{"type": "error"}',
        b'{"type": "error", "error": []}',
        b'{"type": "response.completed"}',
    ),
    b'{"type": "response.output_text.delta", "delta": {"a": 1}}',
)
"""Messages in which no event is to be found, or half of one."""
BROKEN = (
    # A reserved opcode, reserved bits, a masked frame, a continuation of nothing, a frame too long.
    *(b"\x83\x00", b"\xf1\x00", b"\x81\x81abcdx", b"\x80\x01x", b"\x81\x7f\x00\x00\x00\x7f\xff\xff\xff\xff"),
    # A message in bytes, a ping, a pong, a farewell, one with a code that is none, and one with half a code.
    *(b"\x82\x02{}", b"\x89\x00", b"\x8a\x00", b"\x88\x02\x03\xe8", b"\x88\x02\x00\x01", b"\x88\x01x"),
)
"""Bytes that are no text message."""


async def _asked(pieces: Sequence[bytes]) -> StreamLog:
    async with serving(pieces) as server:
        return await asked(API, server.port)


def _run(pieces: Sequence[bytes]) -> StreamLog:
    log = asyncio.run(_asked(pieces))
    check_ended(API, log)
    return log


@examples(8)
@given(
    st.lists(st.integers(0, 10_000), max_size=30), st.lists(st.integers(0, 400), max_size=6), st.booleans()
)
@example(at=EVERYWHERE, fragments=[], pings=False)
@example(at=EVERYWHERE, fragments=EVERYWHERE, pings=True)
def test_cuts_fragments_and_pings_change_nothing(at: list[int], fragments: list[int], pings: bool) -> None:
    """Wherever the bytes are cut and the messages are fragmented, within characters too, the text, what was
    served and the counts are the same, and the stream is complete."""
    plain = _run([frames([event], pings=False) for event in EVENTS])
    raw = b"".join(frames(cut(event, fragments), pings=pings) for event in EVENTS)
    log = _run(cut(raw, at))
    for one in (plain, log):
        assert (one.text, one.status, one.detail) == (SAID, "ok", "")
    assert (log.served, log.usage, log.finish_reason) == (plain.served, plain.usage, plain.finish_reason)
    assert log.caveats == plain.caveats


@examples(25)
@given(
    st.lists(
        st.sampled_from([websocket_frame(one, TEXT) for one in MESSAGES])
        | st.sampled_from(BROKEN)
        | st.binary(max_size=20),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 3),
    st.lists(st.integers(0, 10_000), max_size=5),
    st.booleans(),
)
def test_garbage_ends_in_a_status(garbage: list[bytes], place: int, at: list[int], cut_off: bool) -> None:
    """Whatever stands between the messages and wherever the bytes end, the stream ends as something."""
    sent = [websocket_frame(event, TEXT) for event in EVENTS]
    sent[place:place] = garbage
    raw = b"".join(sent)
    _run(cut(raw[: len(raw) // 2] if cut_off else raw, at))


@examples(15)
@given(st.integers(0, 2), st.integers(0, 50), VALUES)
def test_a_field_of_any_kind_ends_in_a_status(event: int, place: int, value: Any) -> None:
    """Whatever a vendor puts in place of one field, the stream ends as something and has its record."""
    sent = [*EVENTS]
    sent[event] = changed(sent[event], place, value)
    _run([websocket_frame(one, TEXT) for one in sent])


@pytest.mark.parametrize("after", [0, 2])
async def test_garbage_in_a_conversation_ends_in_a_status(after: int) -> None:
    """Through pipecat's service, too, what is no event ends the request as something, told as an error where
    it broke the service, before the text or behind it."""

    async def one(message: bytes) -> None:
        sent = [websocket_frame(event, TEXT) for event in EVENTS]
        sent[after:after] = [websocket_frame(message, TEXT)]
        async with serving(sent) as server:
            spoken = await through_pipecat(cast(Any, server), API)
        [log] = spoken.streams
        assert not log.running
        assert log.status != "cancelled", message
        assert (log.status == "ok") or log.detail, message
        assert spoken.replies == [SAID if log.text else ""], message
        assert spoken.errors or log.status == "ok", message

    await asyncio.gather(*map(one, MESSAGES))
