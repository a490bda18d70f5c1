"""Voice activity detection: Silero as pipecat ships it, or plain energy with verdicts known in advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from voicebench.plan.config import Vad
from voicebench.stages.quiet import hush_pipecat

ENERGY_WINDOW_MS = 10


@dataclass
class SilenceHook:
    """Told, from the detector's thread, when `after_ms` of silence have come and when speech goes on."""

    after_ms: float
    on_silence: Callable[[], None] = lambda: None
    on_speech: Callable[[], None] = lambda: None


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
        """Watches the parent's own state after each piece of audio."""

        _told = False

        def _run_analyzer(self, buffer: bytes) -> Any:
            state = super()._run_analyzer(buffer)
            if state is VADState.STOPPING:
                silent_ms = self._vad_stopping_count * self._vad_frames / self.sample_rate * 1000
                if not self._told and silent_ms >= hook.after_ms:
                    self._told = True
                    hook.on_silence()
            elif self._told:
                self._told = False
                if state is VADState.SPEAKING:
                    hook.on_speech()
            return state

    return Telling


def _energy_class() -> Any:
    """Speech is what the presence rule calls sound: no model, so its decision is known to the sample."""
    import numpy as np
    from pipecat.audio.vad.vad_analyzer import VADAnalyzer

    from voicebench.audio.presence import THRESHOLD_DBFS, amplitude

    limit = amplitude(THRESHOLD_DBFS)

    class EnergyVad(VADAnalyzer):
        """Judges 10 ms windows by their RMS."""

        def num_frames_required(self) -> int:
            return self.sample_rate * ENERGY_WINDOW_MS // 1000

        def voice_confidence(self, buffer: bytes) -> float:
            samples = np.frombuffer(buffer, dtype=np.int16).astype(np.float64) / 32768.0
            return float(np.sqrt(np.mean(samples**2)) > limit)

    return EnergyVad
