"""Our own retries: what is tried again and when, with every attempt kept, over each protocol."""

from __future__ import annotations

import pytest

from tests.stages.asked import ANSWER, APIS, a_mode, asked, through_pipecat
from voicebench.clock import NS_PER_MS
from voicebench.emulator.process import EmulatorProcess
from voicebench.stages import llm
from voicebench.stages.retries import Retry, retry_after_s
from voicebench.turns.records import Flag
from voicebench.turns.stream import StreamLog, StreamStatus
from voicebench.turns.stream_fields import stream_flags

WAIT_S = 0.2


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tap tries a request up to two times."""
    monkeypatch.setattr(llm, "Retry", lambda: Retry(2, 1.0))


def check_retried(log: StreamLog) -> None:
    """The first attempt was rate limited, the second one answered after the wait that was asked for."""
    first, second = log.attempts
    assert (first.status, second.status) == ("rate_limited", "ok")
    assert log.request_ns == first.request_ns
    assert first.end_ns is not None
    assert second.request_ns - first.end_ns >= WAIT_S * 1000 * NS_PER_MS * 0.99
    assert second.end_ns == log.end_ns
    assert (log.status, log.text, log.detail) == ("ok", ANSWER, "")
    assert log.first_text_ns is not None
    assert log.first_text_ns > second.request_ns
    assert Flag.RETRIED in stream_flags(a_mode("openai-chat"), log, estimated=False)


@pytest.mark.parametrize(
    ("made", "status", "broken", "asked_s", "wait"),
    [
        (1, "rate_limited", False, 1.5, 1.5),
        (1, "overloaded", False, None, 0.5),
        (2, "overloaded", False, None, 1.0),
        (1, "failed", True, None, 0.5),
        (1, "failed", False, None, None),
        (1, "rate_limited", False, 5.1, None),
        (3, "rate_limited", False, 0.0, None),
        (1, "timed_out", False, None, None),
    ],
)
def test_what_is_tried_again_and_when(
    made: int, status: StreamStatus, broken: bool, asked_s: float | None, wait: float | None
) -> None:
    """Busy providers and broken connections only, after the wait that was asked for and no longer one."""
    assert Retry(attempts=3, longest_wait_s=5.0).wait_s(made, status, broken, asked_s) == wait


def test_without_a_setting_nothing_is_tried_again() -> None:
    """One attempt is the default."""
    assert Retry().wait_s(1, "rate_limited", False, 0.0) is None


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for(headers: dict[str, str], wait: float | None) -> None:
    """Seconds or milliseconds in a header; anything else asks for none."""

    class Response:
        pass

    error, response = Exception("busy"), Response()
    response.headers = headers  # type: ignore[attr-defined]
    error.response = response  # type: ignore[attr-defined]
    assert retry_after_s(error) == wait


@pytest.mark.parametrize("api", APIS)
async def test_a_rate_limited_request_is_made_again(api: str, emulator: EmulatorProcess, twice: None) -> None:
    """After one 429 the second attempt answers; both are kept, asked directly and through pipecat."""
    fault = f"quick!429-once;retry_after={WAIT_S}"
    [log] = await asked(emulator, api, fault, prompts=(f"What is the capital of France? {api}",))
    if api == "openai-responses-ws":
        # On a socket no header asks for a wait: the first one is half a second.
        assert log.attempts[1].request_ns - (log.attempts[0].end_ns or 0) >= 490 * NS_PER_MS
    check_retried(log)
    spoken = await through_pipecat(emulator, api, fault, prompts=(f"The capital of France? Now {api}",))
    [stream] = spoken.streams
    check_retried(stream)
    assert spoken.replies == [ANSWER]
    assert spoken.errors == []


@pytest.mark.parametrize("api", APIS)
async def test_without_a_second_attempt_it_stays_rate_limited(api: str, emulator: EmulatorProcess) -> None:
    """With one attempt the 429 is what became of the request."""
    [log] = await asked(emulator, api, "quick!429-once", prompts=(f"Capital of France? Once {api}",))
    assert (log.status, len(log.attempts)) == ("rate_limited", 1)


@pytest.mark.parametrize("api", APIS)
async def test_overload_before_any_text_is_tried_again(
    api: str, emulator: EmulatorProcess, twice: None
) -> None:
    """An overload that the stream itself tells, before its text, leads to as many attempts as are allowed."""
    spoken = await through_pipecat(emulator, api, "quick!overloaded-in-stream;after=0")
    [log] = spoken.streams
    assert [one.status for one in log.attempts] == ["overloaded", "overloaded"]
    assert log.status == "overloaded"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", ["overloaded-in-stream", "drop"])
async def test_after_text_nothing_is_tried_again(
    api: str, fault: str, emulator: EmulatorProcess, twice: None
) -> None:
    """Where some of the answer has come, the stream's end stands."""
    spoken = await through_pipecat(emulator, api, f"quick!{fault};after=3")
    [log] = spoken.streams
    assert len(log.attempts) == 1
    assert log.status in ("overloaded", "truncated")
    assert log.text


@pytest.mark.parametrize("api", APIS)
async def test_a_connection_that_breaks_before_text_is_tried_again(
    api: str, emulator: EmulatorProcess, twice: None
) -> None:
    """A reset before the first text leads to a second attempt."""
    [log] = await asked(emulator, api, "quick!reset;after=0")
    assert len(log.attempts) == 2
    assert log.status == "failed"


async def test_a_wrong_key_is_not_tried_again(emulator: EmulatorProcess, twice: None) -> None:
    """What another attempt would not mend is not tried again."""
    [log] = await asked(emulator, "anthropic", "quick!401")
    assert (log.status, len(log.attempts)) == ("failed", 1)


@pytest.mark.parametrize("api", APIS)
async def test_a_break_before_text_is_tried_again_in_a_conversation(
    api: str, emulator: EmulatorProcess, twice: None
) -> None:
    """The pipeline's services, too, ask again after a reset before the first text."""
    spoken = await through_pipecat(emulator, api, "quick!reset;after=0")
    [log] = spoken.streams
    assert len(log.attempts) == 2
    assert log.status == "failed"
