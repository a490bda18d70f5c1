"""The page's HTTP side: who may reach it, what it gives, and that nothing else is there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest
from yarl import URL

from voicebench.errors import BadRequest
from voicebench.live.web.page import Page
from voicebench.live.web.server import WebOptions, WebServer, is_loopback


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    """A served page."""
    made = WebServer(WebOptions(), Page())
    await made.start()
    yield made
    await made.close()


async def _asked(
    url: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, Mapping[str, str], str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), headers=headers, allow_redirects=False) as answer,
    ):
        return answer.status, answer.headers, await answer.text()


async def test_the_page_and_all_it_names_are_served(server: WebServer) -> None:
    """The page has no script or style of its own in it, and every file it names is there, with a policy."""
    status, headers, page = await _asked(server.url)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in page
    assert "style=" not in page
    assert " on" + "click" not in page
    for name in ("live.css", "report.css", "live.js", "drawing.js", "turns.js", "sound.js", "capture.js"):
        status, headers, content = await _asked(server.url + name)
        assert status == 200, name
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "innerHTML" not in content
        assert "https://" not in content


@pytest.mark.parametrize(
    "host", ["127.0.0.1.evil.example", "evil.example", "localhost.evil.example:{port}", "127.0.0.1", ""]
)
async def test_another_host_is_refused(server: WebServer, host: str) -> None:
    """Only the exact name and port are answered, so that no other name can lead a browser here."""
    port = server.url.split(":")[2].split("/")[0]
    status, _, _ = await _asked(server.url, {"Host": host.format(port=port)})
    assert status in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1", "null", "https://{own}"])
async def test_another_origin_is_refused(server: WebServer, origin: str) -> None:
    """A page from anywhere else is refused, files and socket alike; without an origin there is no socket."""
    own = server.url.split("/")[2]
    for name in ("", "socket"):
        status, _, _ = await _asked(server.url + name, {"Origin": origin.format(own=own)})
        assert status == 403
    assert (await _asked(server.url + "socket"))[0] == 403


async def test_without_the_token_nothing_is_there(server: WebServer) -> None:
    """A wrong token, or none, is not found; a right one with another method is refused."""
    base = server.url.rsplit("/", 2)[0]
    for path in (
        "/",
        "/live.js",
        "/wrong/",
        "/wrong/live.js",
        "/wrong/socket",
        server.url[len(base) : -2] + "/",
    ):
        assert (await _asked(base + path))[0] == 404, path
    assert (await _asked(server.url, method="POST"))[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "%2e%2e/server.py",
        "..%2f..%2fserver.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..\\server.py",
        "live.js%00",
        "static/live.js",
        "__init__.py",
        "C:%5c",
    ],
)
async def test_no_path_leads_out(server: WebServer, path: str) -> None:
    """Whatever a path says, only the page's own files are given."""
    status, _, content = await _asked(server.url + path)
    assert status in (400, 404), content
    assert "import" not in content


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*", ""])
async def test_a_host_that_names_every_address_is_refused(host: str) -> None:
    """The page answers to one exact name."""
    with pytest.raises(BadRequest, match="exact name"):
        await WebServer(WebOptions(host), Page()).start()


async def test_a_taken_port_is_told(server: WebServer) -> None:
    """A port that is in use ends in words, with the remedy."""
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(BadRequest, match="--port"):
        await WebServer(WebOptions(port=port), Page()).start()


def test_what_loopback_is() -> None:
    """Only this machine's own names count."""
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("192.168.1.4")
    assert not is_loopback("127.0.0.1.evil.example")
