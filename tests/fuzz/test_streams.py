"""Streams of any bytes through the real SDKs: a typed end, never an exception of ours, never a hang."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.held import EVERYWHERE, VALUES, asked, changed, check_ended, cut
from tests.fuzz.how_much import examples
from tests.keys_and_text.echoing_vendor import events_of
from tests.stages.asked import through_pipecat
from voicebench.stages import llm_anthropic, llm_openai
from voicebench.turns.stream import StreamLog

APIS = {"anthropic": "/v1/messages", "openai-chat": "/chat/completions", "openai-responses": "/responses"}
TEXT = "It is Paris."
GARBAGE = (
    *(
        b"data: {}\n\n",
        b"data: null\n\n",
        b"data: []\n\n",
        b'data: "x"\n\n',
        b"data: {\n\n",
        b"data: \xff\n\n",
    ),
    *(
        b"event: error\ndata: {}\n\n",
        b"event: \n\n",
        b"\n\n",
        b"id: 1\x00\n\n",
        b"retry: x\n\n",
        b"no colon\n\n",
    ),
    *(b'data: {"type": 5}\n\n', b'data: {"choices": [null]}\n\n', b'data: {"choices": 5, "usage": 7}\n\n'),
    b'data: {"type": "content_block_delta", "delta": 5}\n\n',
    b'data: {"type": "response.output_text.delta", "delta": {"a": 1}}\n\n',
)


class _Bytes(httpx2.AsyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@pytest.fixture
def body(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What every SDK gets as the body of its answer: the pieces in this list."""
    pieces: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Bytes([*pieces]))

    for module in (llm_openai, llm_anthropic):
        monkeypatch.setattr(module, "client_options", lambda *_: {"transport": httpx2.MockTransport(answer)})
    return pieces


def _run(api: str, body: list[bytes], raw: bytes, at: list[int]) -> StreamLog:
    body[:] = cut(raw, at)
    log = asyncio.run(asked(api, 9))
    check_ended(api, log)
    return log


@pytest.mark.parametrize("api", APIS)
@examples(8)
@given(st.lists(st.integers(0, 10_000), max_size=30), st.booleans(), st.booleans(), st.booleans())
@example(at=EVERYWHERE, crlf=True, comments=True, mark=True)
def test_cuts_comments_line_ends_and_a_byte_order_mark_change_nothing(
    body: list[bytes], api: str, at: list[int], crlf: bool, comments: bool, mark: bool
) -> None:
    """Wherever the bytes are cut, byte by byte too, with CR LF, comments and a byte-order mark before them,
    the text, what was served and the counts are the same, and the stream is complete."""
    events = events_of(APIS[api], "x", "success")
    plain = _run(api, body, b"".join(events), [])
    assert (plain.text, plain.status) == (TEXT, "ok")
    raw = b"".join((b": a comment\n" if comments else b"") + event for event in events)
    raw = (codecs.BOM_UTF8 if mark else b"") + raw
    log = _run(api, body, raw.replace(b"\n", b"\r\n") if crlf else raw, at)
    assert (log.text, log.status) == (TEXT, "ok")
    assert (log.served, log.usage, log.finish_reason) == (plain.served, plain.usage, plain.finish_reason)
    assert log.caveats == plain.caveats


@pytest.mark.parametrize("api", APIS)
@examples(15)
@given(st.integers(0, 5), st.integers(0, 50), VALUES)
def test_a_field_of_any_kind_ends_in_a_status(
    body: list[bytes], api: str, event: int, place: int, value: Any
) -> None:
    """Whatever a vendor puts in place of one field, the stream ends as something and has its record."""
    events = events_of(APIS[api], "x", "success")
    shaped = [one for one in events if b"data: {" in one]
    chosen = shaped[event % len(shaped)]
    head, data = chosen.split(b"data: ", 1)
    events[events.index(chosen)] = head + b"data: " + changed(data, place, value) + b"\n\n"
    _run(api, body, b"".join(events), [])


@pytest.mark.parametrize("api", APIS)
@examples(15)
@given(
    st.lists(st.sampled_from(GARBAGE) | st.binary(max_size=20), min_size=1, max_size=3),
    st.integers(0, 5),
    st.lists(st.integers(0, 10_000), max_size=5),
    st.booleans(),
)
def test_garbage_ends_in_a_status(
    body: list[bytes], api: str, garbage: list[bytes], place: int, at: list[int], cut_off: bool
) -> None:
    """Whatever stands between the events and wherever the stream ends, it ends as something, in time."""
    events = events_of(APIS[api], "x", "success")
    events[place:place] = garbage
    raw = b"".join(events)
    _run(api, body, raw[: len(raw) // 2] if cut_off else raw, at)


@pytest.mark.parametrize("api", APIS)
async def test_garbage_in_a_conversation_breaks_no_service(body: list[bytes], api: str) -> None:
    """pipecat's services are handed no event that nothing can be made of: the reply is spoken as the log has
    it, and the stream ends as something, told as an error where it failed."""
    for place, garbage in enumerate(GARBAGE):
        events = events_of(APIS[api], "x", "success")
        events[place % 4 : place % 4] = [garbage]
        body[:] = [b"".join(events)]
        spoken = await through_pipecat(cast(Any, SimpleNamespace(port=9)), api)
        [log] = spoken.streams
        assert log.status in ("ok", "failed", "truncated"), garbage
        assert (log.status == "ok") == (not spoken.errors), (garbage, spoken.errors)
        assert spoken.replies == [log.text], garbage
        assert log.text == TEXT or log.status == "failed", garbage
