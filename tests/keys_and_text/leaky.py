"""Services of pipecat that break with their key in the error, in its causes and in their variables."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from pipecat.frames.frames import ErrorFrame, Frame
from pipecat.services.llm_service import LLMService
from pipecat.services.settings import LLMSettings, STTSettings, TTSSettings
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService


def _break(api_key: str) -> None:
    """Raise with the key in the text, in a cause's text, in a note and in a local variable."""
    header = f"the key {api_key}"
    try:
        raise KeyError(header)
    except KeyError as cause:
        error = RuntimeError(f"refused with {header}")
        error.add_note(f"asked with {api_key}")
        raise error from cause


class LeakyStt(SegmentedSTTService):
    """Breaks when it is to transcribe."""

    def __init__(self, api_key: str, **more: Any) -> None:
        super().__init__(settings=STTSettings(model="m", language=None), **more)
        self._api_key = api_key

    def __repr__(self) -> str:
        return f"LeakyStt({self._api_key})"

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame | None, None]:
        """Break."""
        _break(self._api_key)
        yield None


class LeakyTts(TTSService):
    """Breaks when it is to speak."""

    def __init__(self, api_key: str, **more: Any) -> None:
        super().__init__(settings=TTSSettings(model="m", voice="v", language=None), **more)
        self._api_key = api_key

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        """Tell the key in an error frame, then break."""
        yield ErrorFrame(error=f"no voice for {self._api_key}")
        _break(self._api_key)


class LeakyLlm(LLMService):
    """Breaks when it is asked."""

    Settings = LLMSettings

    def __init__(self, api_key: str, **more: Any) -> None:
        super().__init__(**more)
        self._api_key = api_key

    async def process_frame(self, frame: Frame, direction: Any) -> None:
        """Break on a context."""
        await super().process_frame(frame, direction)
        if type(frame).__name__ == "LLMContextFrame":
            _break(self._api_key)
        await self.push_frame(frame, direction)


class Unmakable(LeakyStt):
    """Cannot be made."""

    def __init__(self, api_key: str, **more: Any) -> None:
        _break(api_key)


Settings = LLMSettings
