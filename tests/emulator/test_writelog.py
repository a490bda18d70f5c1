"""The write log: what was handed to the socket, when, on the monotonic clock."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.conftest import QUICK
from tests.emulator.readers import ANSWER, QUESTION, Clients, text_of
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.emulator.timing import TimingScript
from voicebench.emulator.writelog import lateness


def test_instants_are_in_order_on_the_shared_clock(clients: Clients, emulator: EmulatorProcess) -> None:
    """Received, headers and events follow each other; no write begins before it is due, none ends before it
    began."""
    began = time.monotonic_ns()
    seen = clients.stream("chat")
    ended = time.monotonic_ns()
    record = emulator.record(seen.request)
    assert began < record["received_ns"] < ended
    headers = record["headers"]
    assert (
        record["received_ns"] + 1_000_000 == headers["due_ns"] <= headers["before_ns"] <= headers["after_ns"]
    )
    last = headers["after_ns"]
    for event in record["events"]:
        assert event["due_ns"] <= event["before_ns"] <= event["after_ns"]
        assert last <= event["before_ns"]
        last = event["after_ns"]
    assert last < ended
    assert record["lateness_us"]["n"] == len(record["events"])
    assert 0 <= record["lateness_us"]["p50"] <= record["lateness_us"]["p99"] <= record["lateness_us"]["max"]


def test_client_and_log_agree_on_every_delta(clients: Clients, emulator: EmulatorProcess) -> None:
    """Cumulative characters of the log's text events are those of the deltas that the client read."""
    for protocol in ("anthropic", "chat", "responses"):
        seen = clients.stream(protocol, headers={"x-emulate-tokens-per-event": "3"})
        sums = [sum(len(delta) for delta in seen.deltas[: index + 1]) for index in range(len(seen.deltas))]
        events = [event for event in emulator.record(seen.request)["events"] if event["kind"] == "text"]
        assert [event["characters"] for event in events] == sums
        assert [event["text_tokens"] for event in events] == [3, 6, 9, 12]


def test_the_same_body_counts_up(clients: Clients, emulator: EmulatorProcess) -> None:
    """Requests with one model and body are numbered from 0; each has an id of its own."""
    requests = [clients.stream("chat", question="How many times?").request for _ in range(3)]
    assert [emulator.record(request)["ordinal"] for request in requests] == [0, 1, 2]
    assert len(set(requests)) == 3


def _ask(emulator: EmulatorProcess, fault: str = "") -> str:
    """One streamed chat request; gives its id."""
    with openai.OpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=0) as client:
        stream = client.chat.completions.create(
            model="quick",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            extra_headers={"x-emulate-fault": fault} if fault else None,
        )
        with stream:
            try:
                for _ in stream:
                    pass
            except openai.APIConnectionError:
                pass
            return stream.response.headers["x-request-id"]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line, parse_constant=pytest.fail) for line in path.read_text(encoding="utf-8").splitlines()
    ]


def test_the_file_has_a_line_for_every_request(tmp_path: Path) -> None:
    """Whole, dropped and refused requests each leave one line of strict JSON in a file that only its owner
    reads."""
    path = tmp_path / "log.jsonl"
    with start(scripts=[QUICK], log=path) as emulator:
        requests = [_ask(emulator), _ask(emulator, "drop;after=3")]
        answer = httpx2.post(
            f"{emulator.base_url_openai}/chat/completions", json={"model": "quick", "messages": []}
        )
        assert answer.status_code == 401
        shown = [emulator.record(request) for request in requests]
    lines = _lines(path)
    assert lines[:2] == shown
    assert [line["outcome"] for line in lines] == ["complete", "drop", "refused"]
    assert [text_of(line) for line in lines] == [ANSWER, "The capital of", ""]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with start(scripts=[QUICK], log=path) as emulator:
        _ask(emulator)
    assert len(_lines(path)) == 4


def test_a_seed_gives_the_same_replies_at_the_same_instants() -> None:
    """Two emulators with one seed give the same ids, words and planned instants; another seed other ones."""

    rough = TimingScript("rough", first_text_ms=2.0, rate_tok_s=5000.0, jitter_relative=0.5, jitter_ms=0.3)

    def planned(seed: int) -> list[Any]:
        with start(scripts=[rough], seed=seed) as emulator:
            with openai.OpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=0) as client:
                for question in ("Qwertz?", "Qwertz?", "Tell me at length about rivers."):
                    messages: Any = [{"role": "user", "content": question}]
                    with client.chat.completions.create(
                        model="rough", messages=messages, stream=True
                    ) as stream:
                        assert list(stream)
            records = [emulator.record(request) for request in emulator.requests()]
        return [
            (
                record["request"],
                record["reply"],
                [event["due_ns"] - record["received_ns"] for event in record["events"]],
            )
            for record in records
        ]

    first = planned(1)
    assert planned(1) == first
    assert planned(2) != first


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_lateness_is_ordered(values: list[int]) -> None:
    """The percentiles are values of the list, in order; the maximum is its largest."""
    shown = lateness(values)
    assert shown is not None
    assert shown["n"] == len(values)
    assert shown["max"] == max(values) / 1000
    ordered = sorted(values)
    assert shown["p50"] == ordered[(len(values) + 1) // 2 - 1] / 1000
    assert shown["p50"] <= shown["p99"] <= shown["max"]


def test_no_events_have_no_lateness() -> None:
    """Without events lateness is empty, not zero."""
    assert lateness([]) is None
