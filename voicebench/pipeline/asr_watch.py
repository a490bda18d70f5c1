"""Is speech recognition still at work? A transcript that comes too late must not land in the next turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from voicebench.pipeline.observer import Event, Kind


class AsrWatch:
    """Watches a pipecat STT service's `run_stt`.

    A service that transcribes whole segments is known to be at work while `run_stt` runs. One that streams
    takes each frame of audio at once: whether it still has something to say, nobody knows.
    """

    def __init__(self) -> None:
        self.by_segment = True
        self._at_work = 0

    @property
    def running(self) -> bool:
        """Is a segment being transcribed?"""
        return self.by_segment and self._at_work > 0

    def may_speak(self, events: Sequence[Event]) -> bool:
        """May a transcript of this turn still come? Yes where a streaming service gave none at all."""
        if self.by_segment:
            return self.running
        kinds = {event.kind for event in events}
        return Kind.VAD_START in kinds and Kind.TRANSCRIPT not in kinds

    def watch(self, service: Any) -> None:
        """Begin to watch the service; it does what it did before."""
        from pipecat.services.stt_service import SegmentedSTTService

        self.by_segment = isinstance(service, SegmentedSTTService)
        run_stt = service.run_stt

        async def watched(audio: bytes) -> AsyncGenerator[Any, None]:
            self._at_work += 1
            try:
                async for frame in run_stt(audio):
                    yield frame
            finally:
                self._at_work -= 1

        service.run_stt = watched
