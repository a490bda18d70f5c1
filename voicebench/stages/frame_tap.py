"""The stream tap for LLM services whose SDK is unknown: it reads the service's own frames.

The request is the instant at which the service takes the conversation, and a delta's arrival that of its
text frame: later than on the wire by what the service does in between. There is no usage and no terminal
marker, so counts are estimates and a stream cut short looks complete; each record says so.
"""

from __future__ import annotations

import asyncio
from typing import Any

from voicebench.clock import now_ns
from voicebench.stages.llm import Tap, classify
from voicebench.stages.llm_keys import redact
from voicebench.turns.stream import AttemptLog, StreamLog, StreamStatus

CAVEAT = "marks_from_frames"


def tapped(service_class: type[Any], tap: Tap, model: str, caveat: str | None = CAVEAT) -> type[Any]:
    """A subclass of a pipecat LLM service that keeps a StreamLog of each request in `tap`."""
    from pipecat.frames.frames import (
        ErrorFrame,
        Frame,
        FunctionCallsStartedFrame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
        LLMThoughtTextFrame,
    )
    from pipecat.processors.frame_processor import FrameDirection

    class Tapped(service_class):  # type: ignore[misc]  # the base is known at run time only
        """Notes when the conversation comes, text leaves, and the reply ends."""

        _log: StreamLog | None = None

        async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
            if not isinstance(frame, LLMContextFrame):
                await super().process_frame(frame, direction)
                return
            log = StreamLog(request_ns=now_ns(), model=model)
            log.attempts.append(AttemptLog(log.request_ns))
            if caveat:
                log.caveats.append(caveat)
            self._log = log
            tap.streams.append(log)
            tap.on_begin(log)
            tap.on_change()
            try:
                await super().process_frame(frame, direction)
            except BaseException as error:
                log.end(now_ns(), *classify(error))
                raise
            finally:
                log.end(now_ns(), "truncated", "the service was done and had not ended its reply")
                tap.on_change()

        async def push_frame(
            self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM
        ) -> None:
            log = self._log
            if log is not None and log.running:
                self._note(log, frame, now_ns())
            await super().push_frame(frame, direction)

        def _note(self, log: StreamLog, frame: Frame, at: int) -> None:
            if isinstance(frame, LLMTextFrame):
                had_text = log.first_text_ns is not None
                log.first_token_ns = log.first_token_ns or at
                log.deltas.append((at, frame.text))
                if not had_text and log.first_text_ns is not None:
                    tap.on_change()
            elif isinstance(frame, LLMThoughtTextFrame):
                log.first_token_ns = log.first_token_ns or at
            elif isinstance(frame, FunctionCallsStartedFrame):
                log.first_token_ns = log.first_token_ns or at
                log.tool_calls = len(frame.function_calls)
            elif isinstance(frame, ErrorFrame):
                # Errors of the stages behind this one pass through on their way up.
                if frame.processor is None or frame.processor is self:
                    status, detail = _told(frame)
                    log.end(at, status, detail)
                    tap.on_change()
            elif isinstance(frame, LLMFullResponseEndFrame):
                # Services send it on their way out of an interrupted reply as well.
                task = asyncio.current_task()
                log.terminal = task is None or not task.cancelling()
                log.end(at, "ok" if log.terminal else "cancelled")
                tap.on_change()

    Tapped.__name__ = Tapped.__qualname__ = service_class.__name__
    return Tapped


def _told(frame: Any) -> tuple[StreamStatus, str]:
    """What an error frame means for the turn, and its text in one line."""
    text = redact(" ".join(str(frame.error).split()))[:300]
    return "failed" if frame.exception is None else classify(frame.exception)[0], text
