"""Asking over HTTP without a pipeline: one call of an SDK after the other, each stream read to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from voicebench.stages.llm import Tap
from voicebench.turns.stream import StreamLog


def without_models(stream: Any) -> None:
    """Let an SDK's stream give plain JSON, and build no model of each event.

    A model takes 200 to 330 us of processor time: from about 3000 events a second on the client would be
    what is measured. An SDK that cannot do so goes on as it is; the readers take both.
    """
    if hasattr(stream, "_cast_to"):
        stream._cast_to = object


class StreamAsker:
    """An `Asker` over an SDK call that the tap observes.

    `request` makes the call's arguments from a prompt; `close_client` ends the SDK's client.
    """

    def __init__(
        self,
        create: Callable[..., Awaitable[Any]],
        request: Callable[[str], dict[str, Any]],
        tap: Tap,
        close_client: Callable[[], Awaitable[Any]],
    ) -> None:
        self._create = create
        self._request = request
        self._tap = tap
        self._close_client = close_client

    async def ask(self, prompt: str) -> StreamLog:
        """Put `prompt` to the model and read its stream to the end; what goes wrong is in the log."""
        begun = len(self._tap.streams)
        try:
            stream = await self._create(**self._request(prompt))
            async with stream:
                async for _ in stream:
                    pass
        except Exception:
            # The tap has put into the log what went wrong.
            if len(self._tap.streams) == begun:
                raise
        return self._tap.streams[-1]

    async def close(self) -> None:
        """Close the client and its connections."""
        await self._close_client()
