"""Self-calibration: a pipeline of known delays tells what this harness itself adds on this machine.

A tone of exact length is spoken into the same source, session and sink that measure real turns. The detector
judges energy, the ASR, the LLM and the voice are scripted, so the true instant of every mark is known. What
is left is the noise floor: of voice-to-voice latency, and of each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.file_source import RATE
from voicebench.clock import ms
from voicebench.pipeline import marks
from voicebench.pipeline.build import resolve
from voicebench.pipeline.session import Heard, Session
from voicebench.plan.config import Config, Conversation, Hear, PluginSpec, Vad
from voicebench.plan.modes import Mode
from voicebench.stages.shared import Shared
from voicebench.turns.timeline import Mark, Stage, Timeline

SPEECH_S = 0.3
TAIL_S = 0.1
WARMUP = 2
STAGE_LIMIT_MS = 8.0
"""A stage whose median is further from its truth than this shows more than what the harness adds."""
FLOOR_LIMIT_MS = 12.0
"""The noise floor that a machine fit for measuring stays below."""


@dataclass(frozen=True)
class Script:
    """The known delays, in ms."""

    vad_stop: float = 200.0
    asr: float = 20.0
    llm_first_text: float = 30.0
    tts_first_byte: float = 20.0
    leading_silence: float = 20.0

    @property
    def truth(self) -> dict[Stage, float]:
        """What each stage should take, in ms."""
        return {
            Stage.ENDPOINTING: self.vad_stop,
            Stage.ASR: self.asr,
            Stage.TURN: 0.0,
            Stage.DISPATCH: 0.0,
            Stage.LLM_TTFAT: self.llm_first_text,
            Stage.CLAUSE: 0.0,
            Stage.TTS: self.tts_first_byte,
            Stage.PLAYOUT: self.leading_silence,
        }

    @property
    def voice_to_voice(self) -> float:
        """What a turn should take, in ms."""
        return sum(self.truth.values())


@dataclass(frozen=True)
class Calibration:
    """What was found. `extra_ms` holds, per turn, what voice-to-voice latency has beyond its truth."""

    script: Script
    extra_ms: tuple[float, ...]
    stage_extra_ms: Mapping[Stage, tuple[float, ...]]
    failed: int
    """Turns that gave no latency."""

    @property
    def noise_floor_ms(self) -> float | None:
        """p99 of the extra latency from 100 turns on, below that its maximum; None without a turn."""
        return _high(self.extra_ms)

    @property
    def bias_ms(self) -> float | None:
        """The median of the extra latency; None without a turn."""
        return float(np.median(self.extra_ms)) if self.extra_ms else None

    def faults(self) -> list[str]:
        """What the harness cannot explain by its own overhead, in words; empty where all is well."""
        found = []
        for stage, values in self.stage_extra_ms.items():
            middle = float(np.median(values)) if values else 0.0
            if abs(middle) > STAGE_LIMIT_MS:
                found.append(f"{stage.value} takes {middle:+.1f} ms beyond its known delay")
        if self.bias_ms is not None and self.bias_ms > FLOOR_LIMIT_MS:
            found.append(f"voice-to-voice latency is {self.bias_ms:+.1f} ms off at the median")
        if self.failed:
            found.append(f"{self.failed} turns gave no latency")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `run.json`, in ms with three decimals."""
        return {
            "n": len(self.extra_ms),
            "failed": self.failed,
            "noise_floor_ms": _rounded(self.noise_floor_ms),
            "statistic": "p99" if len(self.extra_ms) >= 100 else "max",
            "bias_ms": _rounded(self.bias_ms),
            "min_ms": _rounded(min(self.extra_ms, default=None)),
            "max_ms": _rounded(max(self.extra_ms, default=None)),
            "faults": self.faults(),
            "truth_ms": self.script.voice_to_voice,
            "stage_bias_ms": {
                stage.value: _rounded(float(np.median(values)))
                for stage, values in self.stage_extra_ms.items()
                if values
            },
        }


def _high(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return float(np.percentile(values, 99)) if len(values) >= 100 else float(max(values))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def tone(seconds: float, tail_s: float = TAIL_S) -> NDArray[np.int16]:
    """16 kHz PCM: a tone that begins and ends at full level, then silence."""
    count = round(RATE * seconds)
    wave = 0.3 * np.cos(2 * np.pi * 400.0 * np.arange(count) / RATE)
    return (np.concatenate((wave, np.zeros(round(RATE * tail_s)))) * 32767).astype(np.int16)


def scripted(script: Script, hear: Hear = "onset") -> tuple[Config, Mode]:
    """The configuration and the mode that act the script out."""
    mode = Mode(
        id="calibration",
        kind="emulated",
        provider="voicebench",
        api="scripted",
        model="scripted",
        settings={"text": "One two three.", "first_text_ms": script.llm_first_text, "per_word_ms": 0.0},
    )
    config = Config(
        name="calibration",
        modes=(mode.id,),
        own_modes=(mode,),
        hear=hear,
        turn_timeout_s=5.0,
        asr=PluginSpec.model_validate({"kind": "scripted", "delay_ms": script.asr}),
        tts=PluginSpec.model_validate(
            {
                "kind": "tone",
                "first_byte_ms": script.tts_first_byte,
                "leading_silence_ms": script.leading_silence,
            }
        ),
        turn=PluginSpec.model_validate({"kind": "speech_timeout", "speech_timeout_secs": 0.0}),
        vad=Vad(kind="energy", start_secs=0.1, stop_secs=script.vad_stop / 1000),
        conversation=Conversation(system_prompt="Calibration."),
    )
    return config, mode


async def calibrate(
    turns: int,
    script: Script | None = None,
    *,
    acted: Script | None = None,
    hear: Hear = "onset",
    on_turn: Callable[[Heard], None] = lambda _: None,
) -> Calibration:
    """Run `turns` scripted turns (after two for warming up) and compare each mark with its truth.

    `acted` is what the stages really do, where it shall differ from the truth: a planted fault. `on_turn` is
    given each measured turn.
    """
    script = script or Script()
    config, mode = scripted(acted or script, hear)
    shared = Shared()
    session = Session(mode, resolve(config, [mode], "calibration"), config, shared)
    clip = tone(SPEECH_S)
    extra: list[float] = []
    stages: dict[Stage, list[float]] = {stage: [] for stage in Stage}
    failed = 0
    await session.open()
    try:
        for number in range(turns + WARMUP):
            heard = await session.turn(clip, SPEECH_S, True)
            answer = marks.answer(heard.attempts(), heard.speech_end_ns)
            timeline = Timeline(answer.marks)
            total, parts = timeline.voice_to_voice_ns, timeline.stages_ns()
            if not session.healthy:
                await session.close()
                session = Session(mode, resolve(config, [mode], "calibration"), config, shared)
                await session.open()
            if number < WARMUP:
                continue
            on_turn(heard)
            if total is None or parts is None or Mark.FIRST_AUDIBLE not in answer.marks:
                failed += 1
                continue
            extra.append(ms(total) - script.voice_to_voice)
            for stage, truth in script.truth.items():
                taken = parts[stage]
                if taken is not None:
                    stages[stage].append(ms(taken) - truth)
    finally:
        await session.close()
        shared.close()
    return Calibration(
        script, tuple(extra), {stage: tuple(values) for stage, values in stages.items()}, failed
    )
