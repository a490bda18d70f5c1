"""A running emulator: what it is told at the start, and the server from its first to its last second."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voicebench.emulator.catalogue import SEED_SCRIPTS, Catalogue
from voicebench.emulator.timing import TimingScript
from voicebench.errors import BadRequest

_GRACE_S = 0.2
"""How long open requests may go on once the emulator is told to stop."""


@dataclass(frozen=True)
class Settings:
    """What an emulator is told at the start.

    `scripts` come on top of the seed scripts; `fault` is planted in every request that names none; `log` is
    a file for the write log. `host` other than loopback needs a `token`, which is then the only API key
    that is taken, too. `port` 0 takes a free one. `allowed_hosts` are further `name:port` that a Host
    header may hold.
    """

    scripts: Sequence[TimingScript] = ()
    seed: int = 0
    fault: str = ""
    log: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    allowed_hosts: Sequence[str] = field(default_factory=tuple)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data, for the pipe to a process of its own."""
        return {
            **vars(self),
            "scripts": [script.to_dict() for script in self.scripts],
            "log": None if self.log is None else str(self.log),
            "allowed_hosts": list(self.allowed_hosts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """The reverse of `to_dict`."""
        values = dict(data)
        values["scripts"] = tuple(TimingScript.from_dict(script) for script in values["scripts"])
        values["log"] = None if values["log"] is None else Path(values["log"])
        return cls(**values)


@dataclass(frozen=True)
class Started:
    """Where a running emulator listens, and the token that opens its `/emulator/...` pages."""

    host: str
    port: int
    token: str
    models: Sequence[str]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def run(settings: Settings, ready: Callable[[Started], None], stop: asyncio.Event) -> dict[str, Any]:
    """Serve until `stop` is set; `ready` is called once, when requests are answered. Gives the final
    statistics.

    Raises `BadRequest` for settings that cannot be served: an unknown fault, a host without its token, a
    taken port, a log that cannot be written.
    """
    from aiohttp import web

    from voicebench.emulator.server import Endpoints
    from voicebench.emulator.service import Service
    from voicebench.emulator.writelog import WriteLog

    local = is_loopback(settings.host)
    if not local and not settings.token:
        raise BadRequest(
            f"host {settings.host!r} can be reached from other machines.",
            "Give a --token (clients send it as their API key), or leave --host out to stay on this machine.",
        )
    if settings.token is not None and len(settings.token) < 8:
        raise BadRequest("the token is shorter than 8 characters.", "Give a longer one.")
    token = settings.token or secrets.token_urlsafe(24)
    log = WriteLog(settings.log)
    try:
        service = Service(Catalogue(settings.scripts), settings.seed, settings.fault, log)
        listener = await _listen(settings.host, settings.port)
        port = int(listener.getsockname()[1])
        names = {
            "127.0.0.1",
            "localhost",
            "[::1]",
            f"[{settings.host}]" if ":" in settings.host else settings.host,
        }
        allowed = frozenset(
            {f"{name}:{port}" for name in names} | {name.lower() for name in settings.allowed_hosts}
        )
        endpoints = Endpoints(service, token, None if local else token, allowed)
        runner = web.AppRunner(
            endpoints.app(), access_log=None, handler_cancellation=True, shutdown_timeout=_GRACE_S
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            _warm_up(service)
            ready(Started(settings.host, port, token, service.catalogue.names()))
            await stop.wait()
        finally:
            await runner.cleanup()
        return log.statistics()
    finally:
        await log.close()


async def _listen(host: str, port: int) -> Any:
    """A listening socket. Raises `BadRequest` where the address is taken or not this machine's."""
    import socket

    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise BadRequest(f"host {host!r}: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise BadRequest(
            f"cannot listen on {host}:{port}: {error.strerror}.",
            "Give another --port; 0 takes a free one.",
        ) from None
    listener.setblocking(False)
    return listener


def _warm_up(service: Any) -> None:
    """Plan one reply of each protocol, so that the first request waits for no table, vocabulary or import."""
    from voicebench.emulator import asked as asking
    from voicebench.emulator import plan as planning
    from voicebench.emulator import replies
    from voicebench.emulator.tokens import count

    message = [{"role": "user", "content": "hello"}]
    bodies: Mapping[asking.Protocol, Mapping[str, Any]] = {
        "anthropic": {"model": "opus-4.6", "max_tokens": 10, "messages": message},
        "chat": {"model": "opus-4.6", "messages": message},
        "responses": {"model": "opus-4.6", "input": message},
    }
    for protocol, body in bodies.items():
        planning.make(SEED_SCRIPTS[0], asking.read(protocol, body), None, 0, 0)
    for passages in range(3):
        replies.prose(replies.LONG_REPLY_TOKENS, planning.seeded(passages))
    count("warm")
    gc.collect()
    gc.freeze()
