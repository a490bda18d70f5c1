"""Sessions over scripted stages: no model, no network, every delay known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.pipeline.made_turns import facts
from voicebench.audio.file_source import RATE
from voicebench.pipeline.build import Stage, StageSpecs, resolve
from voicebench.pipeline.record import record
from voicebench.pipeline.session import Heard, Session
from voicebench.plan.config import Config, PluginSpec, Vad
from voicebench.plan.modes import Mode
from voicebench.stages.shared import Shared
from voicebench.turns.records import TurnRecord

SPEECH_S = 0.3
REPLY = "It is Paris, I think. On the river Seine it lies."
ASR_MS, LLM_MS, TTS_MS, LEAD_MS = 30, 60, 40, 50


def clip(*parts: float) -> NDArray[np.int16]:
    """16 kHz sound: so many seconds of tone, of silence, of tone ... and 0.1 s of silence at the end."""
    pieces = []
    for index, seconds in enumerate(parts):
        count = round(seconds * RATE)
        wave = 9_000 * np.cos(2 * np.pi * 400 * np.arange(count) / RATE)
        pieces.append(wave if index % 2 == 0 else np.zeros(count))
    return np.concatenate((*pieces, np.zeros(RATE // 10))).astype(np.int16)


SILENCE = np.zeros(RATE // 2, dtype=np.int16)


def scripted(**changes: Any) -> Config:
    """A configuration of scripted stages; `asr`, `llm` and `tts` are dicts of settings that differ."""
    stages = {name: changes.pop(name, {}) for name in ("asr", "llm", "tts")}
    mode = Mode(
        id="made/m",
        kind="emulated",
        provider="made",
        api="scripted",
        model="made-1",
        settings={"text": REPLY, "first_text_ms": LLM_MS, "per_word_ms": 2.0, **stages["llm"]},
    )
    asr = {"kind": "scripted", "text": "What is it?", "delay_ms": ASR_MS, **stages["asr"]}
    tts = {
        "kind": "tone",
        "first_byte_ms": TTS_MS,
        "leading_silence_ms": LEAD_MS,
        "seconds_per_word": 0.05,
        **stages["tts"],
    }
    values: dict[str, Any] = {
        "modes": (mode.id,),
        "own_modes": (mode,),
        "asr": PluginSpec.model_validate(asr),
        "tts": PluginSpec.model_validate(tts),
        "turn": PluginSpec.model_validate({"kind": "speech_timeout", "speech_timeout_secs": 0.0}),
        "vad": Vad(kind="energy", start_secs=0.1, stop_secs=0.2),
        "hear": "onset",
        "turn_timeout_s": 1.5,
        "calibration_turns": 0,
        "warmup_turns": 0,
    }
    return Config(**{**values, **changes})


class Driver:
    """Runs turns as a run does: a session that is not healthy is closed and another one opened."""

    def __init__(self, config: Config) -> None:
        self.config = config
        [self.mode] = config.own_modes
        self.specs: StageSpecs = resolve(config, [self.mode], "made")
        self.shared = Shared()
        self.session: Session | None = None
        self.opened = 0

    async def turn(
        self, samples: NDArray[np.int16], speech_end_s: float | None = SPEECH_S, has_speech: bool = True
    ) -> Heard:
        """One turn."""
        if self.session is None or not self.session.healthy:
            await self.close()
            self.session = Session(self.mode, self.specs, self.config, self.shared)
            await self.session.open()
            self.opened += 1
        return await self.session.turn(samples, speech_end_s, has_speech)

    async def record(self, samples: NDArray[np.int16], **more: Any) -> TurnRecord:
        """One turn's record."""
        has_speech = more.get("speech_end_s", SPEECH_S) is not None
        heard = await self.turn(samples, has_speech=has_speech, **more)
        return record(facts(mode=self.mode, has_speech=has_speech), heard)

    async def close(self) -> None:
        """End the session."""
        if self.session is not None:
            await self.session.close()
        self.session = None


@asynccontextmanager
async def driving(**changes: Any) -> AsyncIterator[Driver]:
    """A driver over scripted stages, closed afterwards."""
    driver = Driver(scripted(**changes))
    try:
        yield driver
    finally:
        await driver.close()
        driver.shared.close()


def set_fault(stage: Stage, fault: str) -> None:
    """Let a scripted stage behave so from now on, though its settings are frozen."""
    object.__setattr__(stage.settings, "fault", fault)
