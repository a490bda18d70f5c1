"""The reply that is held until the turn has ended: which requests were made ahead, and the first clause's
audio.

pipecat's speculation gate holds what the language model says. What passes into it is watched here: requests
are marked in the stream tap as made ahead, or as revoked, and the first clause of a held reply can go to
speech synthesis at once.
"""

from __future__ import annotations

from typing import Any

from voicebench.plan.config import Clause
from voicebench.stages.clauses import aggregator
from voicebench.stages.llm import Tap
from voicebench.stages.prefetch import Prefetch
from voicebench.turns.stream import StreamLog


class HeldReply:
    """Watches one language model service of pipecat's; it does what it did before."""

    def __init__(self, llm: Any, tap: Tap, clause: Clause, prefetch: Prefetch | None) -> None:
        from pipecat.utils.text.simple_text_aggregator import SimpleTextAggregator

        self._gate = llm._speculation_gate
        self._prefetch = prefetch
        self._pieces: Any = aggregator(clause) or SimpleTextAggregator()  # type: ignore[no-untyped-call]  # pipecat leaves it so
        self._wanted = False
        self._ahead = False
        self._held: list[StreamLog] = []
        self._process = llm.process_frame
        self._push = llm.push_frame
        llm.process_frame = self._see
        llm.push_frame = self._let
        tap.on_begin = self._begun

    def _begun(self, log: StreamLog) -> None:
        """A request is made now."""
        log.speculative = self._ahead
        # Once the turn has ended the gate holds nothing more, and nothing can be revoked.
        if self._ahead and not self._gate._turn_ended:
            self._held.append(log)

    def _revoke(self) -> None:
        for log in self._held:
            log.revoked = True
        self._held.clear()
        self._wanted = False
        if self._prefetch is not None:
            self._prefetch.drop()

    async def _see(self, frame: Any, direction: Any) -> None:
        from pipecat.frames.frames import LLMContextFrame

        if isinstance(frame, LLMContextFrame):
            self._revoke()
            self._ahead = frame.speculation
        await self._process(frame, direction)

    async def _let(self, frame: Any, direction: Any = None) -> None:
        from pipecat.processors.frame_processor import FrameDirection

        direction = direction or FrameDirection.DOWNSTREAM
        if direction is FrameDirection.DOWNSTREAM:
            await self._note(frame)
        await self._push(frame, direction)

    async def _note(self, frame: Any) -> None:
        from pipecat.frames.frames import (
            EagerEndOfTurnCancelFrame,
            InterruptionFrame,
            LLMFullResponseEndFrame,
            LLMFullResponseStartFrame,
            LLMTextFrame,
            UserStoppedSpeakingFrame,
        )

        if isinstance(frame, UserStoppedSpeakingFrame):
            self._held.clear()
            self._wanted = False
        elif isinstance(frame, EagerEndOfTurnCancelFrame) or (
            isinstance(frame, InterruptionFrame) and self._held
        ):
            self._revoke()
        elif isinstance(frame, InterruptionFrame):
            if self._prefetch is not None:
                self._prefetch.drop()
        elif self._prefetch is not None and self._gate.is_speculating:
            if isinstance(frame, LLMFullResponseStartFrame):
                await self._pieces.reset()
                self._wanted = True
            elif isinstance(frame, LLMTextFrame) and self._wanted:
                async for piece in self._pieces.aggregate(frame.text):
                    self._fetch(piece.text)
                    break
            elif isinstance(frame, LLMFullResponseEndFrame) and self._wanted:
                last = await self._pieces.flush()
                if last is not None:
                    self._fetch(last.text)

    def _fetch(self, text: str) -> None:
        self._wanted = False
        if self._prefetch is not None and text.strip():
            self._prefetch.begin(text)
