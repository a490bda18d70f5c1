"""How many examples the tests of this room draw: few in the suite, many under `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LONG = "VOICEBENCH_FUZZ_LONG"
"""With this variable set, each test draws so many times more examples."""


def examples(few: int) -> settings:
    """`few` examples in the suite, always the same ones there; a hundred times more in a soak."""
    long = LONG in os.environ
    return settings(
        max_examples=few * (100 if long else 1),
        derandomize=not long,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
