"""The stream tap for LLM services whose SDK is unknown: it reads the service's own frames.

The request is the instant at which the service takes the conversation, and a delta's arrival that of its
text frame: later than on the wire by what the service does in between. There is no usage and no terminal
marker, so counts are estimates and a stream cut short looks complete; each record says so.
"""

from __future__ import annotations

from typing import Any

from voicebench.clock import now_ns
from voicebench.stages.llm import Tap
from voicebench.turns.stream import AttemptLog, StreamLog

CAVEAT = "marks_from_frames"


def tapped(service_class: type[Any], tap: Tap, model: str, caveat: str | None = CAVEAT) -> type[Any]:
    """A subclass of a pipecat LLM service that keeps a StreamLog of each request in `tap`."""
    from pipecat.frames.frames import (
        ErrorFrame,
        Frame,
        LLMContextFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
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
            tap.on_change()
            try:
                await super().process_frame(frame, direction)
            finally:
                log.end(now_ns(), "cancelled")
                tap.on_change()

        async def push_frame(
            self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM
        ) -> None:
            log = self._log
            if log is not None and log.running:
                at = now_ns()
                if isinstance(frame, LLMTextFrame):
                    log.first_token_ns = log.first_token_ns or at
                    log.deltas.append((at, frame.text))
                elif isinstance(frame, ErrorFrame):
                    log.end(at, "failed", " ".join(str(frame.error).split())[:300])
                elif isinstance(frame, LLMFullResponseEndFrame):
                    log.terminal = True
                    log.end(at, "ok")
                    tap.on_change()
            await super().push_frame(frame, direction)

    Tapped.__name__ = Tapped.__qualname__ = service_class.__name__
    return Tapped
