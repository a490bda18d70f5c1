"""Voice activity detection: Silero as pipecat ships it, or plain energy with verdicts known in advance."""

from __future__ import annotations

from typing import Any

from voicebench.plan.config import Vad
from voicebench.stages.quiet import hush_pipecat

ENERGY_WINDOW_MS = 10


def build_vad(vad: Vad) -> Any:
    """The detector that pipecat's user aggregator asks."""
    hush_pipecat()
    from pipecat.audio.vad.vad_analyzer import VADParams

    params = VADParams(
        confidence=vad.confidence,
        start_secs=vad.start_secs,
        stop_secs=vad.stop_secs,
        min_volume=0.0 if vad.kind == "energy" else vad.min_volume,
    )
    if vad.kind == "energy":
        return _energy_class()(params=params)
    from pipecat.audio.vad.silero import SileroVADAnalyzer

    return SileroVADAnalyzer(params=params)


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
