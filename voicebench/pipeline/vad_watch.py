"""How far has the voice activity detector heard, and what does it hear? A paced source follows it."""

from __future__ import annotations

import asyncio
from typing import Any

from voicebench.clock import NS_PER_S, now_ns


class VadWatch:
    """Watches a pipecat detector's `analyze_audio`: 16-bit mono audio, one piece after the other."""

    def __init__(self) -> None:
        self.samples = 0
        """So many samples were judged since the pipeline was built."""
        self.state = "quiet"
        """`quiet`, `starting`, `speaking` or `stopping`: pipecat's own four states."""
        self._changed = asyncio.Event()

    async def reached(self, samples: int, within_s: float) -> bool:
        """Wait until so many samples were judged in all; False where that takes longer than `within_s`."""
        deadline = now_ns() + round(within_s * NS_PER_S)
        while self.samples < samples:
            self._changed.clear()
            try:
                async with asyncio.timeout(max(0.0, (deadline - now_ns()) / NS_PER_S)):
                    await self._changed.wait()
            except TimeoutError:
                return self.samples >= samples
        return True

    def watch(self, analyzer: Any) -> None:
        """Begin to watch the detector; it does what it did before."""
        analyze = analyzer.analyze_audio

        async def watched(buffer: bytes) -> Any:
            state = await analyze(buffer)
            self.samples += len(buffer) // 2
            self.state = state.name.lower()
            self._changed.set()
            return state

        analyzer.analyze_audio = watched
