"""The embedded language model: llama.cpp in a process of its own on loopback, spoken to like any endpoint."""

from __future__ import annotations

import secrets
from typing import Any

from pydantic import Field

from voicebench import child
from voicebench.models.resolve import resolve_llm
from voicebench.plan.config import Conversation, Settings
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.llm import Asker, Tap
from voicebench.stages.llm_openai import ChatSettings, chat_asker, chat_service, make_client
from voicebench.stages.shared import Shared

KEPT_S = 4.0
"""The server closes a connection that was idle for 5 s: by then it must not be used any more, since a
request that meets the closing fails."""


class LlamaSettings(Settings):
    """How the local server runs."""

    model: str | None = None
    """A catalogue id or the path of a GGUF file; None: the mode's own model."""
    threads: int = Field(2, ge=1, le=64)
    niceness: int = Field(0, ge=0, le=19)
    """By how much the server gives way where processors are short (Unix): the rest of a reply is written
    while its first clause is made into sound, which is what the person waits for. It costs nothing while the
    model works alone, and much beside other programs at work."""
    context_tokens: int = Field(2048, ge=256)
    timeout_s: float = Field(60.0, gt=0)


def needs(settings: LlamaSettings) -> Needs:
    """xllamacpp; which model file is decided with the mode."""
    return Needs(libraries=(("xllamacpp", "local"),))


def build(mode: Mode, settings: LlamaSettings, conversation: Conversation, shared: Shared, tap: Tap) -> Any:
    """Start the server once per run and speak to it through pipecat's OpenAI service."""
    base_url, client = _server(mode, settings, shared)
    chat = _chat(base_url)
    service = chat_service(mode, chat, conversation, tap, client)

    async def warm(text: str) -> None:
        """Read the prompt with the person's words into the server's cache; its one token is thrown away."""
        await client.chat.completions.create(
            model=mode.model,
            messages=[
                {"role": "system", "content": conversation.system_prompt},
                {"role": "user", "content": text},
            ],
            max_tokens=1,
            **{**chat.extra, "extra_headers": {}},
        )

    service.warm = warm
    return service


def ask(mode: Mode, settings: LlamaSettings, conversation: Conversation, shared: Shared, tap: Tap) -> Asker:
    """Start the server once per run and ask it without a pipeline."""
    base_url, client = _server(mode, settings, shared)
    return chat_asker(mode, _chat(base_url), conversation, tap, client)


def _server(mode: Mode, settings: LlamaSettings, shared: Shared) -> tuple[str, Any]:
    """The run's server for this model, started the first time: its address and the SDK's client for it."""
    model = settings.model or mode.model
    return shared.get(
        ("llama.cpp", model, settings.threads, settings.context_tokens, settings.niceness),
        lambda: _serve(model, settings, shared),
    )


def _chat(base_url: str) -> ChatSettings:
    """How llama.cpp is spoken to: the same answer each time, the prompt's beginning kept in its cache.

    It closes the connection behind each streamed reply without a word of it, and a request that meets the
    closing fails: so the request itself says that its connection ends.
    """
    return ChatSettings(
        base_url=base_url,
        tokens_field="max_tokens",
        extra={
            "temperature": 0.0,
            "seed": 1,
            "extra_body": {"cache_prompt": True},
            "extra_headers": {"Connection": "close"},
        },
    )


def _serve(model: str, settings: LlamaSettings, shared: Shared) -> tuple[str, Any]:
    path = resolve_llm(model).model
    key = secrets.token_urlsafe(24)
    log = None if shared.log_folder is None else shared.log_folder / "llama.log"
    server = child.start(
        [
            "-m",
            "voicebench.stages.llama_server",
            str(path),
            str(settings.threads),
            str(settings.context_tokens),
            str(settings.niceness),
        ],
        name="The local language model's server",
        log=log,
        env={"VOICEBENCH_LLAMA_KEY": key},
        given_up=shared.closing,
    )
    shared.on_close(server.stop)
    base_url = f"http://127.0.0.1:{int(server.detail)}/v1"
    return base_url, make_client(base_url, key, settings.timeout_s, KEPT_S)


PLUGIN = Plugin(
    settings=LlamaSettings,
    build=build,
    needs=needs,
    load=lambda mode, settings, conversation, shared: _server(mode, settings, shared),
    ask=ask,
    retries=True,
    title="llama.cpp on this machine",
)
