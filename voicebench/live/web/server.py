"""The page's HTTP side: a few fixed files and one socket, below a secret path, for exact names only."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket as sockets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files

from aiohttp import web

from voicebench.errors import BadRequest
from voicebench.export.html.look import patterns
from voicebench.live.web.messages import MOST_BYTES
from voicebench.live.web.page import Page

LOOPBACK = "127.0.0.1"
_GRACE_S = 0.5
_FILES = {
    "": ("voicebench.live.web", "static/page.html", "text/html"),
    "live.css": ("voicebench.live.web", "static/live.css", "text/css"),
    "report.css": ("voicebench.export.html", "styles.css", "text/css"),
    **{
        name: ("voicebench.live.web", f"static/{name}", "text/javascript")
        for name in ("live.js", "drawing.js", "turns.js", "sound.js", "capture.js", "player.js")
    },
}
"""All there is: name in the address, package, file, type."""
HATCHES = b"<!-- hatches -->"
"""Stands in the page where the report's hatches belong."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class WebOptions:
    """Where the page is served. `port` 0 takes a free one; `host` is loopback unless asked otherwise."""

    host: str = LOOPBACK
    port: int = 0


class WebServer:
    """Serves the page at `url`. Every address holds the token; anything else is 404, 403 for a wrong name."""

    def __init__(self, options: WebOptions, page: Page) -> None:
        self._options = options
        self._page = page
        self._token = secrets.token_urlsafe(24)
        self._contents = {
            name: (files(package).joinpath(*file.split("/")).read_bytes(), kind)
            for name, (package, file, kind) in _FILES.items()
        }
        body, kind = self._contents[""]
        self._contents[""] = body.replace(HATCHES, str(patterns()).encode()), kind
        self._names: frozenset[str] = frozenset()
        self._runner: web.AppRunner | None = None
        self.url = ""
        """The page's address, with its token; empty before `start`."""

    async def start(self) -> None:
        """Listen. Raises BadRequest where the address cannot be taken or does not name one machine."""
        listener = _listener(self._options)
        port = int(listener.getsockname()[1])
        host = self._options.host
        named = f"[{host}]" if ":" in host else host.lower()
        local = {"127.0.0.1", "localhost"} if host == LOOPBACK else set()
        self._names = frozenset(f"{name}:{port}" for name in {named, *local})
        app = web.Application(middlewares=[self._guard], client_max_size=1024)
        app.router.add_route("*", "/{token}/{name:[^/]*}", self._serve)
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=_GRACE_S
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self.url = f"http://{named}:{port}/{self._token}/"

    async def close(self) -> None:
        """Listen no more, and end what is open."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer only who names this server exactly and knows the token; nothing else can be told apart."""
        hosts = request.headers.getall("Host", [])
        origins = request.headers.getall("Origin", [])
        known = len(hosts) == 1 and hosts[0].lower() in self._names
        if not known or any(one not in self._origins for one in origins):
            return self._plain(403, "This address does not name the page.")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return self._plain(error.status, error.reason)

    @property
    def _origins(self) -> frozenset[str]:
        return frozenset(f"http://{name}" for name in self._names)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        given = request.match_info["token"].encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._token.encode()):
            raise web.HTTPNotFound()
        name = request.match_info["name"]
        if request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
        if name == "socket":
            return await self._socket(request)
        if name not in self._contents:
            raise web.HTTPNotFound()
        body, kind = self._contents[name]
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=self._headers())

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """The page's socket. A browser always says which page asks; who does not is none."""
        if len(request.headers.getall("Origin", [])) != 1:
            return self._plain(403, "The socket is for the page.")
        socket = web.WebSocketResponse(compress=False, max_msg_size=MOST_BYTES, timeout=_GRACE_S)
        await socket.prepare(request)
        await self._page.serve(socket)
        return socket

    def _plain(self, status: int, told: str) -> web.Response:
        return web.Response(status=status, text=f"{told}\n", headers=self._headers())

    def _headers(self) -> dict[str, str]:
        sockets_of = " ".join(sorted(f"ws://{name}" for name in self._names))
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
            f"connect-src 'self' {sockets_of}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            # Alone in its process, the page gets a finer clock.
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Embedder-Policy": "require-corp",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
        }


def is_loopback(host: str) -> bool:
    """Can only this machine reach `host`?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(options: WebOptions) -> sockets.socket:
    host = options.host
    if host in ("", "0.0.0.0", "::", "*"):  # noqa: S104  # refused, not bound
        raise BadRequest(
            f"--host {host!r} names every address of this machine, but the page answers to one exact name.",
            "Give the one address under which the browser reaches it.",
        )
    try:
        family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
        listener = sockets.create_server((host, options.port), family=family)
    except OSError as error:
        raise BadRequest(
            f"The page cannot be served at {host}:{options.port}: {error.strerror or error}.",
            "Leave --port out to take a free one; --host takes an address of this machine.",
        ) from None
    listener.setblocking(False)
    return listener
