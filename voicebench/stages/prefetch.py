"""The audio of a clause, made before it may be spoken, and dropped where it never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from voicebench.clock import now_ns
from voicebench.errors import BadRequest
from voicebench.stages.shared import WorkLog

NOTE = "tts_prefetch"
"""The note of a prefetch that was spoken: a `Fetched`."""


@dataclass
class Fetched:
    """One prefetch. Instants are ns of the monotonic clock."""

    text: str
    request_ns: int
    first_byte_ns: int | None = None
    frames: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    """What was made; None is the end."""
    error: Exception | None = None
    """Why it ended early."""
    task: asyncio.Task[None] | None = None


class Prefetch:
    """Makes one clause ahead with a pipecat TTS service, whose `run_tts` then gives it out.

    Raises BadRequest where the service is none whose synthesis can be thrown away: a hosted one costs.
    """

    def __init__(self, tts: Any, work: WorkLog) -> None:
        if not getattr(tts, "prefetchable", False):
            raise BadRequest(
                f"early.prefetch_tts: {type(tts).__name__} is not asked for speech that may be thrown away.",
                "Use tts kind piper, or leave the key out.",
            )
        self._work = work
        self._run = tts.run_tts
        self._current: Fetched | None = None
        tts.run_tts = self._speak

    def begin(self, text: str) -> None:
        """Begin to make the audio of `text`, in place of what was made before."""
        self.drop()
        self._current = made = Fetched(text.strip(), now_ns())
        made.task = asyncio.get_running_loop().create_task(self._make(made), name="tts-prefetch")

    def drop(self) -> None:
        """The clause will not be spoken."""
        made, self._current = self._current, None
        if made is not None and made.task is not None:
            made.task.cancel()
            self._work.add("tts_wasted", made.request_ns)

    async def _make(self, made: Fetched) -> None:
        from pipecat.frames.frames import ErrorFrame

        try:
            async for frame in self._run(made.text, "prefetch"):
                if isinstance(frame, ErrorFrame):
                    raise RuntimeError(frame.error)
                if frame is not None:
                    if made.first_byte_ns is None:
                        made.first_byte_ns = now_ns()
                    made.frames.put_nowait(frame)
        except Exception as error:
            made.error = error
        finally:
            made.frames.put_nowait(None)

    async def _speak(self, text: str, context_id: str) -> AsyncGenerator[Any, None]:
        made = self._current
        if made is not None and made.text == text.strip():
            self._current = None
            try:
                asked = now_ns()
                frame = await made.frames.get()
                if frame is not None:
                    self._work.add("tts_speculative", made.request_ns, max(made.request_ns, asked))
                    self._work.note(NOTE, made)
                    while frame is not None:
                        frame.context_id = context_id
                        yield frame
                        frame = await made.frames.get()
                    if made.error is not None:
                        raise made.error
                    return
            finally:
                # Broken off: nobody hears the rest.
                if made.task is not None and not made.task.done():
                    made.task.cancel()
                    self._work.add("tts_wasted", made.request_ns)
        elif made is not None:
            self.drop()
        # Also where nothing of it could be made ahead: what is wrong is told now.
        async for frame in self._run(text, context_id):
            yield frame
