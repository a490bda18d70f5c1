"""Each planted fault reaches the SDKs as the vendors' own faults do."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.emulator.readers import ANSWER, PROTOCOLS, QUESTION, Clients, ended, text_of
from voicebench.emulator.faults import FAULTS, parse
from voicebench.emulator.process import EmulatorProcess
from voicebench.errors import BadRequest

BROKEN_STREAM = (httpx2.RemoteProtocolError, httpx2.ReadError, openai.APIConnectionError)


def planted(fault: str) -> dict[str, str]:
    """The header that plants a fault."""
    return {"x-emulate-fault": fault}


def error_of(clients: Clients, protocol: str, fault: str, stream: bool = True) -> Any:
    """What the SDK raises."""
    ask = clients.stream if stream else clients.whole
    with pytest.raises((anthropic.APIError, openai.APIError, httpx2.TransportError)) as caught:
        ask(protocol, headers=planted(fault))
    return caught.value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("fault", "for_anthropic", "for_openai"),
    [
        ("401", anthropic.AuthenticationError, openai.AuthenticationError),
        ("403", anthropic.PermissionDeniedError, openai.PermissionDeniedError),
        ("404", anthropic.NotFoundError, openai.NotFoundError),
        ("408", anthropic.APIStatusError, openai.APIStatusError),
        ("429", anthropic.RateLimitError, openai.RateLimitError),
        ("500", anthropic.InternalServerError, openai.InternalServerError),
        ("503", anthropic.InternalServerError, openai.InternalServerError),
        ("529", anthropic.APIStatusError, openai.InternalServerError),
    ],
)
def test_a_status_becomes_the_sdks_error(
    clients: Clients, protocol: str, fault: str, for_anthropic: Any, for_openai: Any
) -> None:
    """An error status is raised as the SDK's class for it, streaming or not, with the request id at hand."""
    for stream in (True, False):
        error: Any = error_of(clients, protocol, fault, stream)
        assert isinstance(error, for_anthropic if protocol == "anthropic" else for_openai)
        assert error.status_code == int(fault)
        assert error.request_id.startswith("req_")


def test_overload_has_a_class_of_its_own_with_anthropic(clients: Clients) -> None:
    """Anthropic's 529 is an OverloadedError of the type overloaded_error."""
    error = error_of(clients, "anthropic", "529")
    assert type(error).__name__ == "OverloadedError"
    assert error.body["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rate_limit_says_when_to_come_back(clients: Clients, protocol: str) -> None:
    """A 429 carries retry-after, in the seconds that were asked for."""
    assert error_of(clients, protocol, "429;retry_after=7").response.headers["retry-after"] == "7"


def test_rate_limited_once_is_served_at_the_retry(emulator: EmulatorProcess) -> None:
    """The SDK's own retry gets the reply, and the server sees that it is one."""
    with openai.OpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=1) as client:
        completion = client.chat.completions.create(
            model="quick",
            messages=[{"role": "user", "content": f"{QUESTION} (once)"}],
            extra_headers=planted("429-once;retry_after=0.01"),
        )
    assert completion.choices[0].message.content == ANSWER
    first, second = (emulator.record(request) for request in emulator.requests()[-2:])
    assert [first["status"], second["status"]] == [429, 200]
    assert [first["asked"]["retry_count"], second["asked"]["retry_count"]] == ["0", "1"]


@pytest.mark.parametrize("fault", ["error-in-stream", "overloaded-in-stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_inside_a_stream(
    clients: Clients, emulator: EmulatorProcess, protocol: str, fault: str
) -> None:
    """An error in a 200 stream is raised with status 200 (Anthropic), as APIError (Chat), or yielded
    (Responses)."""
    if protocol == "responses":
        seen = clients.stream(protocol, headers=planted(fault))
        assert seen.types[-1] == "error"
        assert seen.finish is None
        assert 0 < len(seen.text) < len(ANSWER)
    else:
        error = error_of(clients, protocol, fault)
        if protocol == "anthropic":
            assert error.status_code == 200
            kind = "overloaded_error" if "overloaded" in fault else "api_error"
            assert error.body["error"]["type"] == kind
        else:
            assert type(error) is openai.APIError
            assert (error.code == "server_is_overloaded") == ("overloaded" in fault)
    record = emulator.record(emulator.requests()[-1])
    assert record["outcome"] == "clean"
    assert ANSWER.startswith(text_of(record))
    assert 0 < len(text_of(record)) < len(ANSWER)


def test_an_error_before_any_text(clients: Clients, emulator: EmulatorProcess) -> None:
    """With after=0 the error comes in place of the first text."""
    error_of(clients, "anthropic", "error-in-stream;after=0")
    assert text_of(emulator.record(emulator.requests()[-1])) == ""


def test_a_response_can_fail_by_its_own_event(clients: Clients) -> None:
    """Responses: response.failed is yielded with its status; the others raise."""
    seen = clients.stream("responses", headers=planted("failed-in-stream"))
    assert (seen.types[-1], seen.finish) == ("response.failed", "failed")
    error_of(clients, "chat", "failed-in-stream")


@pytest.mark.parametrize(
    ("protocol", "finish"),
    [("anthropic", "refusal"), ("chat", "content_filter"), ("responses", "incomplete")],
)
def test_the_vendor_breaks_off(clients: Clients, protocol: str, finish: str) -> None:
    """A filtered reply ends in order, with the vendor's word for it, streaming or not."""
    seen = clients.stream(protocol, headers=planted("filtered-in-stream"))
    assert seen.finish == finish
    assert 0 < len(seen.text) < len(ANSWER)
    assert clients.whole(protocol, headers=planted("filtered-in-stream")).finish == finish


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_clean_end_in_mid_answer_raises_nothing(clients: Clients, protocol: str) -> None:
    """A stream that ends without its terminal marker raises nothing: only the missing finish tells."""
    seen = clients.stream(protocol, headers=planted("no-terminal"))
    assert seen.finish is None
    assert seen.output_tokens is None
    assert 0 < len(seen.text) < len(ANSWER)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_end_without_its_reason(clients: Clients, protocol: str) -> None:
    """All the text and the last marker arrive, but not why the reply ended."""
    seen = clients.stream(protocol, headers=planted("done-without-finish"))
    assert (seen.text, seen.finish) == (ANSWER, None)
    if protocol == "anthropic":
        assert seen.types[-1] == "message_stop"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_reason_without_the_end(clients: Clients, protocol: str) -> None:
    """All the text and why the reply ended arrive, but not the marker behind it."""
    seen = clients.stream(protocol, headers=planted("finish-without-done"))
    assert seen.text == ANSWER
    assert seen.finish in ("end_turn", "stop", "completed")
    assert "message_stop" not in seen.types


@pytest.mark.parametrize("fault", ["drop", "reset", "half-event"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broken_connection(clients: Clients, emulator: EmulatorProcess, protocol: str, fault: str) -> None:
    """A connection that breaks in mid-answer raises; the record holds what had gone out whole, and how it
    ended."""
    assert isinstance(error_of(clients, protocol, f"{fault};after=3"), BROKEN_STREAM)
    record = emulator.record(emulator.requests()[-1])
    assert record["outcome"] == ("reset" if fault == "reset" else "drop")
    assert text_of(record) == "The capital of"
    assert isinstance(error_of(clients, protocol, fault, stream=False), (*BROKEN_STREAM, anthropic.APIError))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_said(clients: Clients, protocol: str) -> None:
    """An empty reply is complete, with a finish and without text or tokens."""
    seen = clients.stream(protocol, headers=planted("empty"))
    assert (seen.text, seen.output_tokens) == ("", 0)
    assert seen.finish is not None
    assert clients.whole(protocol, headers=planted("empty")).text == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_white_space(clients: Clients, emulator: EmulatorProcess, protocol: str) -> None:
    """White space can be all there is, or come first with the text behind it."""
    only = clients.stream(protocol, headers=planted("blank-only"))
    assert only.text
    assert not only.text.strip()
    assert only.finish is not None
    first = clients.stream(protocol, headers=planted("blank-then-text;gap_ms=20"))
    assert first.text == f"\n\n{ANSWER}"
    blank, visible = [event for event in emulator.record(first.request)["events"] if event["kind"] == "text"][
        :2
    ]
    assert visible["due_ns"] - blank["due_ns"] >= 20_000_000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tool_calls(clients: Clients, protocol: str) -> None:
    """A tool call comes alone or behind text, and its arguments are JSON."""
    alone = clients.stream(protocol, headers=planted("tool-call"))
    assert (alone.text, alone.tool) == ("", '{"city": "Paris"}')
    assert alone.finish in ("tool_use", "tool_calls", "completed")
    behind = clients.stream(protocol, headers=planted("text-then-tool-call"))
    assert (behind.text, behind.tool) == (ANSWER, alone.tool)


def test_a_tool_call_fits_the_requests_tool(clients: Clients) -> None:
    """The first tool of the request is called, with arguments of its schema; its result gets text."""
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "unit": {"type": "string", "enum": ["km", "mile"]}},
    }
    tool = {"type": "function", "function": {"name": "measure", "parameters": schema}}
    completion = clients.gpt.chat.completions.create(
        model="quick",
        messages=[{"role": "user", "content": QUESTION}],
        tools=[tool],  # type: ignore[list-item] # a plain dictionary serves
        extra_headers=planted("tool-call"),
    )
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "function"
    assert (calls[0].function.name, calls[0].function.arguments) == ("measure", '{"count": 1, "unit": "km"}')
    answered = clients.gpt.chat.completions.create(
        model="quick",
        messages=[
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "tool_calls": [calls[0].model_dump()]},  # type: ignore[list-item]
            {"role": "tool", "tool_call_id": calls[0].id, "content": "12"},
        ],
        extra_headers=planted("tool-call"),
    )
    assert answered.choices[0].message.content == ANSWER


@pytest.mark.parametrize("fault", ["drip;gap_ms=0", "utf8-split", "crlf", "comments", "bom"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_in_odd_shapes_give_the_same_text(
    clients: Clients, emulator: EmulatorProcess, protocol: str, fault: str
) -> None:
    """Byte by byte, cut inside characters, with CR LF, comments or a byte-order mark: the same text."""
    headers = {"x-emulate-reply": "unicode"}
    plain = clients.stream(protocol, headers=headers)
    seen = clients.stream(protocol, headers={**headers, **planted(fault)})
    # The SDKs take a mark for a part of the first line, so that Anthropic's first event loses its name.
    assert seen.types == (plain.types[1:] if (fault, protocol) == ("bom", "anthropic") else plain.types)
    assert seen.text == plain.text == text_of(emulator.record(seen.request))
    assert "日本語" in seen.text
    assert "👩‍👩‍👧" in seen.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_silence_after_the_preamble(clients: Clients, emulator: EmulatorProcess, protocol: str) -> None:
    """A stream that hangs opens and then says nothing, however long one waits; only the client ends it."""
    patient = Clients(clients.claude.with_options(timeout=0.3), clients.gpt.with_options(timeout=0.3))
    for fault, text in (("hang-first-text", ""), ("hang-mid;after=2", "The capital")):
        with pytest.raises((anthropic.APITimeoutError, openai.APITimeoutError, httpx2.ReadTimeout)):
            patient.stream(protocol, headers=planted(fault))
        record = ended(emulator, emulator.requests()[-1])
        assert record["outcome"] == "client_gone"
        assert text_of(record) == text
    with pytest.raises((anthropic.APITimeoutError, openai.APITimeoutError)):
        patient.stream(protocol, headers=planted("hang-headers"))
    record = ended(emulator, emulator.requests()[-1])
    assert (record["outcome"], record["headers"], record["events"]) == ("client_gone", None, [])


def test_pings_do_not_break_a_silence(clients: Clients) -> None:
    """A stream that hangs may go on pinging: the client's read time-out does not end it, its own clock
    must."""
    with clients.claude.with_options(timeout=5.0).messages.create(
        model="quick",
        max_tokens=10,
        messages=[{"role": "user", "content": QUESTION}],
        stream=True,
        extra_headers=planted("hang-first-text;ping_ms=5"),
    ) as stream:
        lines = stream.response.iter_lines()
        pings = 0
        while pings < 10:
            pings += next(lines) == "event: ping"


def test_a_redirect_names_another_host(emulator: EmulatorProcess) -> None:
    """A redirect leads to this server by another name, or to where it is told to."""
    places = []
    for fault in ("redirect", "redirect;to=http://127.0.0.1:1/v1/responses"):
        answer = httpx2.post(
            f"{emulator.base_url_openai}/responses",
            json={"model": "quick", "input": QUESTION},
            headers={"authorization": "Bearer k", **planted(fault)},
        )
        assert answer.status_code == 307
        places.append(answer.headers["location"])
    assert places == [
        f"http://localhost:{emulator.port}/v1/responses?redirected=1",
        "http://127.0.0.1:1/v1/responses",
    ]


def test_a_followed_redirect_shows_whether_the_key_came_along(
    clients: Clients, emulator: EmulatorProcess
) -> None:
    """The record at the other host tells if a client sent it the key; Anthropic's SDK does unless told not
    to."""
    clients.whole("anthropic", headers=planted("redirect"))
    leaked = emulator.record(emulator.requests()[-1])
    assert (leaked["status"], leaked["asked"]["key_present"]) == (200, True)
    with pytest.raises(openai.AuthenticationError):
        clients.whole("chat", headers=planted("redirect"))
    kept = emulator.record(emulator.requests()[-1])
    assert (kept["status"], kept["asked"]["key_present"]) == (401, False)


def test_a_fault_can_be_named_by_the_model(clients: Clients, emulator: EmulatorProcess) -> None:
    """A suffix of the model's name plants a fault; the reply names the model without it."""
    with pytest.raises(openai.RateLimitError):
        clients.stream("chat", model="quick!429")
    seen = clients.stream("responses", model="quick!no-terminal;after=2")
    record = emulator.record(seen.request)
    assert (seen.text, record["model"], record["fault"]) == ("The capital", "quick", "no-terminal;after=2")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_setting_is_refused(clients: Clients, protocol: str) -> None:
    """An unknown fault, setting or value is a bad request that names it."""
    for headers in (
        planted("no-such-fault"),
        planted("drop;soon=1"),
        planted("drop;after=never"),
        {"x-emulate-rate-tok-s": "quick"},
        {"x-emulate-color": "blue"},
    ):
        with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)):
            clients.stream(protocol, headers=headers)


def test_faults_parse_and_print() -> None:
    """A fault prints as text that parses to the same fault; what it does not know it refuses by name."""
    for name in FAULTS:
        fault = parse(name)
        assert fault is not None
        assert parse(str(fault)) == fault
    assert parse("") is None
    with pytest.raises(BadRequest, match="no-such-fault"):
        parse("no-such-fault")
    with pytest.raises(BadRequest, match="after"):
        parse("drop;after=-1")
