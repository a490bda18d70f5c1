"""Made runs to compare: two runs over the same samples, with noise of a known size and a planted shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.analysis.made_run import run_info
from tests.turns.made import made, made_marks
from voicebench.analysis.comparison import Side
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunInfo

NOISE_MS = 60.0


def latencies(
    rng: np.random.Generator, samples: int, repeats: int, shift_ms: float = 0, sample_ms: float = 0
) -> tuple[list[float], list[float]]:
    """V2V of A and of B, repeats of a sample together: 700 ms, what the sample takes, and noise of 60 ms.

    What a sample takes is the same in A and B; B is `shift_ms` later.
    """
    n = samples * repeats
    own = np.repeat(rng.normal(0, sample_ms, samples), repeats)
    a, b = (700 + own + rng.normal(0, NOISE_MS, n) for _ in range(2))
    return [float(one) for one in a], [float(one) for one in b + shift_ms]


def turns(values: Sequence[float], repeats: int = 1, **fields: Any) -> list[TurnRecord]:
    """One turn for each V2V in ms, the noise in the model's stage."""
    return [
        made(
            place,
            sample=f"sample-{place // repeats:03d}",
            repeat=place % repeats,
            marks=made_marks(llm_first_text=value - 500),
            **fields,
        )
        for place, value in enumerate(values)
    ]


def side(records: Sequence[TurnRecord], run: str = "run-a", **facts: Any) -> Side:
    """A complete run of these records."""
    return Side.of(RunInfo.model_validate(run_info(records, **{"id": run, **facts})), list(records))
