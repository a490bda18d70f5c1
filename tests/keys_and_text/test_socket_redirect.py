"""A WebSocket whose handshake is redirected to another host: the key does not go along."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.keys_and_text.canary import CANARY, all_leaks
from tests.stages.asked import QUESTION, a_mode, stage_of
from voicebench.plan.config import Conversation
from voicebench.stages.llm import Tap
from voicebench.stages.shared import Shared


async def test_a_redirected_socket_gets_no_key() -> None:
    """The place that the redirect names sees no part of the key, and the request fails in words."""
    seen: list[str] = []
    first: list[str] = []

    async def redirect(request: web.Request) -> web.StreamResponse:
        first.append(str(dict(request.headers)))
        port = request.url.port
        return web.Response(status=307, headers={"location": f"ws://localhost:{port}/other"})

    async def other(request: web.Request) -> web.StreamResponse:
        seen.append(f"{request.url} {dict(request.headers)}")
        return web.Response(status=401)

    app = web.Application()
    app.router.add_get("/v1/responses", redirect)
    app.router.add_get("/other", other)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    plugin, settings = stage_of("openai-responses-ws", runner.addresses[0][1], api_key_env="CANARY_KEY")
    assert plugin.ask is not None
    shared = Shared(environment={"CANARY_KEY": CANARY})
    asker: Any = await asyncio.to_thread(
        plugin.ask, a_mode("openai-responses-ws"), settings, Conversation(), shared, Tap()
    )
    try:
        async with asyncio.timeout(10):
            log = await asker.ask(QUESTION)
    finally:
        await asker.close()
        await runner.cleanup()
    assert log.status == "failed"
    assert all_leaks(first), "the first host is the one that the key is for"
    assert all_leaks(seen) == []
    assert all_leaks([log.detail]) == []
