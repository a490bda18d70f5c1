"""Early work: transcription and the reading of the prompt begin at the first silence, and can be revoked."""

from __future__ import annotations

import asyncio
from typing import Any

from voicebench.clock import now_ns
from voicebench.errors import BadRequest
from voicebench.plan.config import Early
from voicebench.stages.shared import WorkLog
from voicebench.stages.vad import SilenceHook


def early_hook(early: Early, asr: Any, llm: Any, work: WorkLog) -> SilenceHook | None:
    """What the voice activity detector tells of early silences; None where nothing is begun early.

    Raises BadRequest where the ASR cannot begin early. An LLM that cannot be warmed (a hosted one) is not.
    """
    if early.transcribe_after_ms is None:
        return None
    if not hasattr(asr, "silence"):
        raise BadRequest(
            f"early.transcribe_after_ms: {type(asr).__name__} cannot begin what may be dropped again.",
            "Use asr kind whisper, or leave the key out.",
        )
    if early.warm_llm and hasattr(llm, "warm"):
        asr.on_early_text = _Warming(llm, work).begin
    return SilenceHook(early.transcribe_after_ms, asr.silence, asr.speech)


class _Warming:
    """Warms the model with each early transcript, one at a time."""

    def __init__(self, llm: Any, work: WorkLog) -> None:
        self._llm = llm
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self, text: str) -> None:
        """Begin unless one is still at it."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._warm(text), name="llm-warming")

    async def _warm(self, text: str) -> None:
        start = now_ns()
        try:
            await self._llm.warm(text)
        except Exception:
            # The real request follows and tells what is wrong.
            return
        finally:
            self._work.add("llm_speculative", start)
