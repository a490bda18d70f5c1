"""Early work: transcription, language model and voice begin at the first silence, and can be revoked."""

from __future__ import annotations

import asyncio
from typing import Any

from voicebench.clock import now_ns
from voicebench.errors import BadRequest
from voicebench.plan.config import Clause, Early
from voicebench.plan.modes import Mode
from voicebench.stages.held_reply import HeldReply
from voicebench.stages.llm import Tap
from voicebench.stages.prefetch import Prefetch
from voicebench.stages.shared import WorkLog
from voicebench.stages.turn_ahead import ask_ahead
from voicebench.stages.vad import SilenceHook


def asks_ahead(early: Early, mode: Mode) -> bool:
    """Is this mode's model asked on the early transcript, before the turn has ended?

    Only where both are wanted; a mode that costs, or stands for such a one, only where that is wanted too.
    Modes made of several are never.
    """
    if early.transcribe_after_ms is None or not early.speculate_llm or mode.members:
        return False
    return mode.kind == "local" or early.speculate_paid


def ask_early(
    early: Early,
    mode: Mode,
    clause: Clause,
    asr: Any,
    llm: Any,
    tts: Any,
    strategies: Any,
    tap: Tap,
    work: WorkLog,
) -> None:
    """Let the model, and where wanted the voice, begin on the early transcript; else change nothing.

    Raises BadRequest where the voice is none that can be thrown away.
    """
    if not asks_ahead(early, mode):
        return
    asr.announces = True
    ask_ahead(strategies)
    HeldReply(llm, tap, clause, Prefetch(tts, work) if early.prefetch_tts else None)


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
        warming = _Warming(llm, work)
        asr.on_dropped_text = warming.begin
        if asr.announces:
            asr.before_asking = warming.stop
        else:
            asr.on_early_text = warming.begin
    return SilenceHook(early.transcribe_after_ms, asr.silence, asr.speech, by_level=early.silence == "level")


class _Warming:
    """Warms the model with early transcripts, one at a time."""

    def __init__(self, llm: Any, work: WorkLog) -> None:
        self._llm = llm
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self, text: str) -> None:
        """Begin unless one is still at it."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._warm(text), name="llm-warming")

    def stop(self) -> None:
        """The model is asked now: what is still being read would only hold that up."""
        if self._task is not None:
            self._task.cancel()

    async def _warm(self, text: str) -> None:
        start = now_ns()
        try:
            await self._llm.warm(text)
        except Exception:
            # The real request follows and tells what is wrong.
            return
        finally:
            self._work.add("llm_speculative", start)
