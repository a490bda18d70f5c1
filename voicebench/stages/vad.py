"""Voice activity detection: Silero as pipecat ships it, or plain energy with verdicts known in advance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicebench.plan.config import Vad
from voicebench.stages.quiet import hush_pipecat

WINDOW_MS = 10
"""Of the level, and of the detector by energy."""
SILENCE_DB = 20.0
"""So far below the person's loudest the level is silence. At 25 the fading of a last word counts as speech
for longer, and the median of the samples was 13 to 27 ms higher."""
FALL_DB_PER_WINDOW = 0.1
"""By so much the loudest fades, so that a shout does not make all that follows silence."""
GOES_ON_MS = 30.0
"""So much sound after such a silence is speech that goes on; a click is shorter."""
NOTICES_WITHIN_MS = 250.0
"""A detector that hears speech for longer than this after the level fell hears soft speech."""


@dataclass
class SilenceHook:
    """Told, from the detector's thread, when `after_ms` of silence have come and when speech goes on."""

    after_ms: float
    on_silence: Callable[[], None] = lambda: None
    on_speech: Callable[[], None] = lambda: None
    by_level: bool = False
    """Is it silence as well where the level has fallen far enough? The detector itself notices later."""


class Level:
    """How long the level has been silence, or sound, against the loudest of late."""

    def __init__(self, sample_rate: int) -> None:
        self._window = sample_rate * WINDOW_MS // 1000
        self._rest = b""
        self._loudest_db = -120.0
        self.silent_ms = 0.0
        self.loud_ms = 0.0

    def hear(self, pcm: bytes) -> None:
        """Judge the next piece of 16-bit mono audio, in windows of 10 ms."""
        pcm = self._rest + pcm
        count = len(pcm) // (2 * self._window)
        self._rest = pcm[2 * self._window * count :]
        samples = np.frombuffer(pcm, dtype=np.int16, count=count * self._window).astype(np.float32) / 32768.0
        for power in np.mean(samples.reshape(count, self._window) ** 2, axis=1):
            db = 10.0 * math.log10(float(power) + 1e-12)
            self._loudest_db = max(db, self._loudest_db - FALL_DB_PER_WINDOW)
            if db < self._loudest_db - SILENCE_DB:
                self.silent_ms, self.loud_ms = self.silent_ms + WINDOW_MS, 0.0
            else:
                self.silent_ms, self.loud_ms = 0.0, self.loud_ms + WINDOW_MS


def build_vad(vad: Vad, hook: SilenceHook | None = None) -> Any:
    """The detector that pipecat's user aggregator asks; it tells `hook` of silences before its own stop."""
    hush_pipecat()
    from pipecat.audio.vad.vad_analyzer import VADParams

    params = VADParams(
        confidence=vad.confidence,
        start_secs=vad.start_secs,
        stop_secs=vad.stop_secs,
        min_volume=0.0 if vad.kind == "energy" else vad.min_volume,
    )
    if vad.kind == "energy":
        kind = _energy_class()
    else:
        from pipecat.audio.vad.silero import SileroVADAnalyzer

        kind = SileroVADAnalyzer
    return kind(params=params) if hook is None else _telling(kind, hook)(params=params)


def _telling(kind: type[Any], hook: SilenceHook) -> type[Any]:
    """A detector of that kind that tells of a silence while it is still waiting for its stop."""
    from pipecat.audio.vad.vad_analyzer import VADState

    class Telling(kind):  # type: ignore[misc]  # the base is known at run time only
        """Watches the parent's own state, and where wanted the level, after each piece of audio."""

        _told = False
        _told_by_level = False
        _soft = False
        """Does the person speak softly, so that the level tells nothing?"""
        _before = VADState.QUIET
        _level: Level | None = None

        def _run_analyzer(self, buffer: bytes) -> Any:
            state = super()._run_analyzer(buffer)
            if hook.by_level:
                self._level = self._level or Level(self.sample_rate)
                self._level.hear(buffer)
            before, self._before = self._before, state
            level = self._level
            if level is None or level.loud_ms:
                self._soft = False
            if state not in (VADState.SPEAKING, VADState.STOPPING):
                self._told = self._soft = False
            elif not self._told:
                if state is VADState.STOPPING and self._silent_ms() >= hook.after_ms:
                    self._tell(by_level=False)
                elif level is not None and not self._soft and level.silent_ms >= hook.after_ms:
                    self._tell(by_level=True)
            elif self._goes_on(before, state):
                self._told = False
                self._soft = level is not None and not level.loud_ms
                hook.on_speech()
            return state

        def _silent_ms(self) -> float:
            """For how long the detector itself has heard none."""
            return float(self._vad_stopping_count * self._vad_frames / self.sample_rate * 1000)

        def _tell(self, by_level: bool) -> None:
            self._told, self._told_by_level = True, by_level
            hook.on_silence()

        def _goes_on(self, before: Any, state: Any) -> bool:
            """Does the person speak after a silence was told of?"""
            if state is VADState.SPEAKING and before is VADState.STOPPING:
                return True
            level = self._level
            if not self._told_by_level or level is None:
                return False
            soft = state is VADState.SPEAKING and level.silent_ms >= NOTICES_WITHIN_MS
            return soft or level.loud_ms >= GOES_ON_MS

    return Telling


def _energy_class() -> Any:
    """Speech is what the presence rule calls sound: no model, so its decision is known to the sample."""
    from pipecat.audio.vad.vad_analyzer import VADAnalyzer

    from voicebench.audio.presence import THRESHOLD_DBFS, amplitude

    limit = amplitude(THRESHOLD_DBFS)

    class EnergyVad(VADAnalyzer):
        """Judges 10 ms windows by their RMS."""

        def num_frames_required(self) -> int:
            return self.sample_rate * WINDOW_MS // 1000

        def voice_confidence(self, buffer: bytes) -> float:
            samples = np.frombuffer(buffer, dtype=np.int16).astype(np.float64) / 32768.0
            return float(np.sqrt(np.mean(samples**2)) > limit)

    return EnergyVad
