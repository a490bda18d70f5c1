"""Stages whose threads never return, for configurations that name them by their class."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

from pipecat.frames.frames import Frame
from pipecat.services.settings import STTSettings, TTSSettings
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService


def for_ever() -> None:
    """Block the thread until the program ends."""
    threading.Event().wait()


class HangingAsr(SegmentedSTTService):
    """Hears every segment for ever."""

    def __init__(self, **more: Any) -> None:
        super().__init__(settings=STTSettings(model="hanging", language=None), ttfs_p99_latency=1.0, **more)

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame, None]:
        """Never give a transcript."""
        await asyncio.to_thread(for_ever)
        yield Frame()


class HangingTts(TTSService):
    """Works at every clause for ever."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            sample_rate=24_000,
            settings=TTSSettings(model=None, voice="hanging", language=None),
            **more,
        )

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        """Never give a sound."""
        await asyncio.to_thread(for_ever)
        yield None
