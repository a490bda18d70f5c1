"""The virtual sound card for these tests; where the machine lacks its parts they fail and say what to run."""

from __future__ import annotations

import ctypes.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.virtual_card import VirtualCard
from voicebench.stages.quiet import hush_pipecat

hush_pipecat()

REMEDY = "apt-get install libportaudio2 pulseaudio pulseaudio-utils libasound2-plugins"


def _missing() -> list[str]:
    tools = [tool for tool in ("pulseaudio", "pactl", "pacat", "parec") if shutil.which(tool) is None]
    return tools + ([] if ctypes.util.find_library("portaudio") else ["libportaudio2"])


@pytest.fixture(scope="session")
def sound(request: pytest.FixtureRequest) -> None:
    """Fail, or where VOICEBENCH_NO_LIVE=1 says so skip, what needs a sound card."""
    missing = _missing()
    left_out = os.environ.get("VOICEBENCH_NO_LIVE") == "1"
    if left_out and os.environ.get("CI", "").casefold() == "true":
        pytest.fail("VOICEBENCH_NO_LIVE=1 leaves the live tests out, which CI=true refuses.", pytrace=False)
    if not left_out and missing:
        pytest.fail(
            f"The live tests need {', '.join(missing)}. Run:  {REMEDY}\n"
            "(VOICEBENCH_NO_LIVE=1 leaves them out.)",
            pytrace=False,
        )
    if left_out:
        count = sum("sound" in getattr(item, "fixturenames", ()) for item in request.session.items)
        pytest.skip(f"VOICEBENCH_NO_LIVE=1: {count} live tests are left out")


@pytest.fixture
def card(sound: None, tmp_path: Path) -> Iterator[VirtualCard]:
    """A running virtual card that is being recorded."""
    with VirtualCard(tmp_path / "card") as running:
        running.record()
        yield running


@pytest.fixture
def echoing_card(sound: None, tmp_path: Path) -> Iterator[VirtualCard]:
    """The same, with the agent's voice coming back into the microphone 20 dB weaker."""
    with VirtualCard(tmp_path / "card", echo_db=-20.0) as running:
        running.record()
        yield running
