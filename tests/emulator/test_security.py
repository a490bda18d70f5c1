"""Who may talk to the emulator, and that nothing a request holds upsets it."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx2
import pytest

from tests.emulator.readers import ANSWER, QUESTION
from voicebench.emulator.catalogue import Catalogue
from voicebench.emulator.problems import Refused
from voicebench.emulator.process import EmulatorProcess
from voicebench.emulator.running import Settings, is_loopback, run
from voicebench.emulator.server import MAX_BODY_BYTES, Endpoints
from voicebench.emulator.service import Service
from voicebench.emulator.writelog import WriteLog
from voicebench.errors import BadRequest

PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
KEYS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}


def post(emulator: EmulatorProcess, path: str, content: bytes | str, **headers: str) -> httpx2.Response:
    """One POST with a key, and with `headers` (underscores for dashes) over the usual ones."""
    given = {**KEYS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx2.post(f"http://127.0.0.1:{emulator.port}{path}", content=content, headers=given)


def body_of(protocol: str, **more: Any) -> dict[str, Any]:
    """A request for one answer."""
    if protocol == "responses":
        return {"model": "quick", "input": QUESTION, **more}
    return {"model": "quick", "max_tokens": 50, "messages": [{"role": "user", "content": QUESTION}], **more}


def problem_of(protocol: str, answer: httpx2.Response) -> str:
    """The kind of problem, from the vendor's own shape of an error."""
    data = answer.json()
    if protocol == "anthropic":
        assert data["type"] == "error"
        assert data["request_id"] == answer.headers["request-id"]
    else:
        assert set(data["error"]) == {"message", "type", "param", "code"}
        assert answer.headers["x-request-id"].startswith("req_")
    assert data["error"]["message"]
    return str(data["error"]["type"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.evil.example:{port}",
        "evil.example:{port}",
        "localhost.evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "0.0.0.0:{port}",
    ],
)
def test_other_host_names_are_refused(emulator: EmulatorProcess, host: str) -> None:
    """A Host header that is not exactly this server's gets no answer, on any page."""
    for path in ("/health", "/v1/models", "/emulator/log"):
        answer = httpx2.get(
            f"http://127.0.0.1:{emulator.port}{path}",
            headers={**KEYS, "host": host.format(port=emulator.port)},
        )
        assert answer.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_its_own_names_are_answered(emulator: EmulatorProcess, host: str) -> None:
    """The loopback names with the right port are answered."""
    answer = httpx2.get(
        f"http://127.0.0.1:{emulator.port}/health", headers={"host": host.format(port=emulator.port)}
    )
    assert answer.json() == {"status": "ok"}


def test_web_pages_of_others_are_refused(emulator: EmulatorProcess) -> None:
    """A request that a browser sends for another origin is refused, the WebSocket's handshake, too."""
    content = json.dumps(body_of("chat"))
    path = PATHS["chat"]
    assert post(emulator, path, content, origin="https://evil.example").status_code == 403
    assert post(emulator, path, content, origin="null").status_code == 403
    own = f"http://127.0.0.1:{emulator.port}"
    assert post(emulator, path, content, origin=own).status_code == 200
    handshake = httpx2.get(
        f"{own}/v1/responses",
        headers={**KEYS, "origin": "https://evil.example", "connection": "upgrade", "upgrade": "websocket"},
    )
    assert handshake.status_code == 403


@pytest.mark.parametrize("protocol", PATHS)
def test_a_key_is_needed(emulator: EmulatorProcess, protocol: str) -> None:
    """Without a key, or with an empty one, the vendor's own 401 comes back; any other key is taken."""
    content = json.dumps(body_of(protocol))
    path = PATHS[protocol]
    for key in ("", "Bearer", "Basic k"):
        answer = post(emulator, path, content, authorization=key)
        assert answer.status_code == 401
        assert problem_of(protocol, answer) in ("authentication_error", "invalid_request_error")
    assert post(emulator, path, content, authorization="", x_api_key="k").status_code == 200


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"model": NaN}',
        b"[" * 100_000,
        b'{"model": 5}',
        b'{"model": "quick"}',
        b'{"model": "quick", "messages": "hi", "input": 5, "max_tokens": 5}',
        b'{"model": "quick", "messages": [], "input": [1], "max_tokens": 5}',
        b'{"model": "quick", "messages": [null], "input": [null], "max_tokens": 5}',
        b'{"model": "quick", "messages": [{"role": "user", "content": "x"}], "input": "x",'
        b' "max_tokens": -1, "max_output_tokens": -1}',
    ],
)
def test_a_wrong_body_is_a_bad_request(emulator: EmulatorProcess, protocol: str, content: bytes) -> None:
    """What is no request of this API gets the vendor's own 400, and the emulator lives on."""
    answer = post(emulator, PATHS[protocol], content)
    assert answer.status_code == 400
    assert problem_of(protocol, answer) == "invalid_request_error"
    assert post(emulator, PATHS[protocol], json.dumps(body_of(protocol))).status_code == 200


@pytest.mark.parametrize("protocol", PATHS)
def test_odd_text_is_answered(emulator: EmulatorProcess, protocol: str) -> None:
    """Lone surrogates, NUL and special tokens in the text are counted and answered like any other."""
    odd = "\\ud800 \\u0000 <|endoftext|> \\u2028"
    content = json.dumps(body_of(protocol)).replace(QUESTION, f"{QUESTION} {odd}")
    answer = post(emulator, PATHS[protocol], content)
    assert answer.status_code == 200
    assert ANSWER in answer.text


@pytest.mark.parametrize("protocol", PATHS)
def test_a_request_has_its_largest_size(emulator: EmulatorProcess, protocol: str) -> None:
    """A body beyond the limit is refused as too large."""
    answer = post(emulator, PATHS[protocol], b" " * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert problem_of(protocol, answer) in ("request_too_large", "invalid_request_error")


@pytest.mark.parametrize(
    "path",
    ["/", "/etc/passwd", "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/%2e%2e/log", "/emulator/../x"],
)
def test_there_are_no_files_behind_the_paths(emulator: EmulatorProcess, path: str) -> None:
    """Paths that look for files find nothing."""
    assert httpx2.get(f"http://127.0.0.1:{emulator.port}{path}", headers=KEYS).status_code == 404


def test_a_wrong_method_is_told(emulator: EmulatorProcess) -> None:
    """A known path with the wrong method gets 405 as JSON."""
    answer = httpx2.get(f"http://127.0.0.1:{emulator.port}/v1/messages", headers=KEYS)
    assert answer.status_code == 405
    assert "GET /v1/messages" in answer.json()["error"]["message"]


def test_older_http_is_refused(emulator: EmulatorProcess) -> None:
    """HTTP/1.0, which has no chunks to stream in, is refused with 505."""
    with socket.create_connection(("127.0.0.1", emulator.port), timeout=5) as connection:
        connection.sendall(f"GET /health HTTP/1.0\r\nHost: 127.0.0.1:{emulator.port}\r\n\r\n".encode())
        assert connection.recv(100).split()[1] == b"505"


def test_the_log_needs_the_token(emulator: EmulatorProcess) -> None:
    """The emulator's own pages open with its token alone, not with an API key."""
    for path in ("/emulator/log", "/emulator/log?request=x", "/emulator/statistics"):
        for key in ("Bearer k", "", f"Bearer {emulator.token}x"):
            answer = httpx2.get(f"http://127.0.0.1:{emulator.port}{path}", headers={"authorization": key})
            assert answer.status_code == 401
    assert isinstance(emulator.requests(), list)


def test_the_version_header_is_needed_as_at_the_vendor(emulator: EmulatorProcess) -> None:
    """Anthropic's API without anthropic-version is a bad request."""
    answer = httpx2.post(
        f"http://127.0.0.1:{emulator.port}/v1/messages",
        json=body_of("anthropic"),
        headers={"x-api-key": "k"},
    )
    assert answer.status_code == 400
    assert "anthropic-version" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.org", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_what_counts_as_loopback(host: str, loopback: bool) -> None:
    """Only addresses that no other machine can reach count as loopback."""
    assert is_loopback(host) is loopback


async def test_another_host_needs_a_token() -> None:
    """Listening for other machines without a token, or with a short one, is refused at once."""
    for token in (None, "", "short"):
        with pytest.raises(BadRequest, match=r"token|machines"):
            await run(Settings(host="0.0.0.0", token=token), lambda started: None, asyncio.Event())


def test_beyond_loopback_the_token_is_the_only_key() -> None:
    """Where other machines can reach it, the emulator takes its token as API key and nothing else."""
    endpoints = Endpoints(Service(Catalogue(), 0, "", WriteLog()), "the-token", "the-token", frozenset())
    endpoints.authorise({"authorization": "Bearer the-token"})
    endpoints.authorise({"x-api-key": "the-token"})
    for headers in ({"authorization": "Bearer other"}, {"x-api-key": "the-toke"}, {}):
        with pytest.raises(Refused) as caught:
            endpoints.authorise(headers)
        assert caught.value.problem.status == 401
