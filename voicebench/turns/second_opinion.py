"""When the waveform contradicts the marks: the one rule, for the harness, the truth tests and the reports."""

from __future__ import annotations

WAVEFORM_TOLERANCE_MS = 10.0
"""Two latencies of one turn may differ by this much and agree: a window of 5 ms at either edge.

Both the marks and the waveform analyser put an onset and an end at the edge of a 5 ms window of sound
(audio/presence). Their windows begin at different samples, so each of the two edges may fall one window
apart.
"""


def waveform_disagrees(
    marks_ms: float | None,
    waveform_ms: float | None,
    certain: bool | None,
    uncertainty_ms: float | None = None,
) -> bool:
    """Is a turn's voice-to-voice latency by its marks further from the waveform's than the waveform allows?

    Allowed are 10 ms, or the `uncertainty_ms` that the analyser states where that is more (in noise, on a
    telephone line); None: it stated none. False where either latency is missing, and where the analyser does
    not trust an edge (`certain` False): a doubtful opinion contradicts nobody. `certain` None: it said
    nothing of its trust, and is believed.
    """
    if marks_ms is None or waveform_ms is None or certain is False:
        return False
    return abs(marks_ms - waveform_ms) > max(WAVEFORM_TOLERANCE_MS, uncertainty_ms or 0.0)
