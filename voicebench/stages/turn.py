"""Turn detection: when does the person count as finished? pipecat's own strategies, named explicitly."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from voicebench.clock import NS_PER_S, now_ns
from voicebench.plan.config import Settings, Vad
from voicebench.plan.registry import Plugin
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.shared import WorkLog


class SmartTurnSettings(Settings):
    """Smart Turn v3: a small model judges from the sound whether the person has finished."""

    silence_secs: float = Field(3.0, gt=0, le=30.0)
    """After a verdict of "not finished": so much silence ends the turn all the same."""
    threads: int = Field(1, ge=1, le=16)


class SpeechTimeoutSettings(Settings):
    """The turn ends a fixed time after the voice activity detector's stop, with a transcript there."""

    speech_timeout_secs: float = Field(0.6, ge=0.0, le=10.0)
    """0: the detector's stop and the transcript alone decide."""


class VadOnlySettings(Settings):
    """The voice activity detector's stop and the transcript end the turn: nothing else to set."""


class AsrTurnSettings(Settings):
    """The ASR service proposes the end of the turn itself (Deepgram Flux, AssemblyAI and the like)."""

    transcript_wait_secs: float = Field(0.5, ge=0.0, le=10.0)
    """So long a proposal waits for late transcripts."""


def build_smart_turn(settings: SmartTurnSettings, vad: Vad, work: WorkLog) -> Any:
    """Strategies that ask Smart Turn at each stop of the voice activity detector."""
    hush_pipecat()
    from pipecat.audio.turn.smart_turn.base_smart_turn import SmartTurnParams
    from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3
    from pipecat.turns.user_start import VADUserTurnStartStrategy
    from pipecat.turns.user_stop import TurnAnalyzerUserTurnStopStrategy
    from pipecat.turns.user_turn_strategies import UserTurnStrategies

    class TimedSmartTurn(LocalSmartTurnAnalyzerV3):
        """Reports how long its verdicts take."""

        async def analyze_end_of_turn(self) -> Any:
            start = now_ns()
            verdict = await super().analyze_end_of_turn()
            work.add("turn_model", start)
            return verdict

    class OnOurClock(TurnAnalyzerUserTurnStopStrategy):  # type: ignore[no-untyped-call]  # so is pipecat's
        """Waits for a late transcript by the monotonic clock.

        pipecat takes what is left of that wait from the wall clock, once its analyzer is done: a clock that
        is set meanwhile would end the turn at once, or hold it for as long as it was set back.
        """

        _until_ns = 0

        async def _handle_vad_user_stopped_speaking(self, frame: Any) -> None:
            self._until_ns = now_ns() + round((self._stt_timeout - frame.stop_secs) * NS_PER_S)
            await super()._handle_vad_user_stopped_speaking(frame)

        async def _timeout_handler(self, timeout: float) -> None:  # noqa: ASYNC109 - pipecat's own signature
            left = max(0.0, (self._until_ns - now_ns()) / NS_PER_S) if self._vad_stopped else timeout
            await super()._timeout_handler(left)

    analyzer = TimedSmartTurn(
        cpu_count=settings.threads, params=SmartTurnParams(stop_secs=settings.silence_secs)
    )
    return UserTurnStrategies(
        start=[VADUserTurnStartStrategy()],
        stop=[OnOurClock(turn_analyzer=analyzer)],
    )


def build_speech_timeout(settings: SpeechTimeoutSettings, vad: Vad, work: WorkLog) -> Any:
    """Strategies that wait a fixed time after the voice activity detector's stop."""
    hush_pipecat()
    from pipecat.turns.user_start import VADUserTurnStartStrategy
    from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
    from pipecat.turns.user_turn_strategies import UserTurnStrategies

    return UserTurnStrategies(
        start=[VADUserTurnStartStrategy()],
        stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=settings.speech_timeout_secs)],
    )


def build_vad_only(settings: VadOnlySettings, vad: Vad, work: WorkLog) -> Any:
    """Strategies that wait for nothing beyond the voice activity detector's stop and a transcript."""
    return build_speech_timeout(SpeechTimeoutSettings(speech_timeout_secs=0.0), vad, work)


def build_asr_turn(settings: AsrTurnSettings, vad: Vad, work: WorkLog) -> Any:
    """Strategies that follow the ASR service's own proposals."""
    hush_pipecat()
    from pipecat.turns.user_start import ExternalUserTurnStartStrategy
    from pipecat.turns.user_stop import ExternalUserTurnStopStrategy
    from pipecat.turns.user_turn_strategies import UserTurnStrategies

    return UserTurnStrategies(
        start=[ExternalUserTurnStartStrategy(enable_interruptions=True)],
        stop=[ExternalUserTurnStopStrategy(timeout=settings.transcript_wait_secs)],
    )


SMART_TURN = Plugin(settings=SmartTurnSettings, build=build_smart_turn, title="Smart Turn v3")
SPEECH_TIMEOUT = Plugin(settings=SpeechTimeoutSettings, build=build_speech_timeout, title="Speech timeout")
VAD_ONLY = Plugin(settings=VadOnlySettings, build=build_vad_only, title="voice activity only")
ASR_TURN = Plugin(settings=AsrTurnSettings, build=build_asr_turn, title="the ASR's own end of turn")
