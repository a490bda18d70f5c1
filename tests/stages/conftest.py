"""pipecat is silenced before any of these tests imports it; the emulator that language models are tested
against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()

from tests.stages.asked import SCRIPTS  # noqa: E402 - after the silencing
from voicebench.emulator.process import EmulatorProcess, start  # noqa: E402


@pytest.fixture(scope="package")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own."""
    with start(scripts=SCRIPTS, seed=7) as running:
        yield running
