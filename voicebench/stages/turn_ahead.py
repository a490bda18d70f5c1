"""Ask before the turn has ended: pipecat's eager end of turn for a turn detector that knows nothing of it.

pipecat speculates for services that predict the end of a turn themselves. Here the prediction is the early
transcript, and the turn detector stays whatever it is: its stop strategy is taught to answer the prediction,
and to keep or to drop the answer when it ends the turn. Nothing reaches the person or the conversation before
that: the language model's service holds the reply.
"""

from __future__ import annotations

from typing import Any


class AskAhead:
    """Teaches one of pipecat's stop strategies to speculate; it decides on the turn's end as before.

    An early transcript asks the model at once. The answer is dropped where the person goes on, and where the
    transcripts of the turn are others than what was asked with, case and punctuation aside.
    """

    def __init__(self, strategy: Any) -> None:
        from pipecat.turns.user_stop.eager_match_policy import NormalizedMatch

        self._strategy = strategy
        self._policy = NormalizedMatch()
        self._said: list[str] = []
        self._asked: str | None = None
        self._process = strategy.process_frame
        self._stopped = strategy.trigger_user_turn_stopped
        self._on_start = strategy.handle_user_turn_started
        self._on_stop = strategy.handle_user_turn_stopped
        strategy.process_frame = self._see
        strategy.trigger_user_turn_stopped = self._end
        strategy.handle_user_turn_started = self._begin
        strategy.handle_user_turn_stopped = self._over

    async def _see(self, frame: Any) -> Any:
        from pipecat.frames.frames import (
            EagerEndOfTurnCancelFrame,
            EagerTranscriptionFrame,
            TranscriptionFrame,
            VADUserStartedSpeakingFrame,
        )

        if isinstance(frame, EagerTranscriptionFrame):
            await self._ask(frame)
        elif isinstance(frame, EagerEndOfTurnCancelFrame):
            # It reaches the language model by itself.
            self._asked = None
        elif isinstance(frame, VADUserStartedSpeakingFrame):
            await self._withdraw()
        elif isinstance(frame, TranscriptionFrame):
            self._said.append(frame.text.strip())
        return await self._process(frame)

    async def _ask(self, frame: Any) -> None:
        from pipecat.turns.types import UserTurnSpeculation

        if getattr(frame.result, "dropped", False):
            return
        await self._withdraw()
        self._asked = " ".join([*self._said, frame.text.strip()])
        await self._strategy.trigger_user_turn_inference_triggered(
            speculation=UserTurnSpeculation(text=self._asked)
        )

    async def _withdraw(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            await self._strategy.trigger_user_turn_speculation_cancelled()

    async def _end(self, *, enable_user_speaking_frames: bool | None = None) -> None:
        """The strategy ends the turn: with the reply that is held, or by asking now."""
        asked = self._asked
        if asked is not None and self._policy.matches(asked, " ".join(self._said)):
            self._asked = None
            await self._strategy.trigger_user_turn_finalized(
                enable_user_speaking_frames=enable_user_speaking_frames, confirms_speculation=True
            )
            return
        await self._withdraw()
        await self._stopped(enable_user_speaking_frames=enable_user_speaking_frames)

    async def _begin(self) -> None:
        self._said.clear()
        await self._on_start()

    async def _over(self) -> None:
        self._said.clear()
        await self._withdraw()
        await self._on_stop()


def ask_ahead(strategies: Any) -> None:
    """Let each stop strategy of pipecat's `UserTurnStrategies` ask at an early transcript."""
    for strategy in strategies.stop or []:
        AskAhead(strategy)
