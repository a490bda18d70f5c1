"""Recognition and synthesis that come too late: the turn ends in time, and the late piece harms no other."""

from __future__ import annotations

import time

import pytest

from tests.pipeline.driven import REPLY, SPEECH_S, Driver, clip, scripted
from voicebench.turns.records import Outcome

TIMEOUT_S = 0.8
CLIP_S = SPEECH_S + 0.1


def _slow(driver: Driver, point: str, field: str, ms: float) -> None:
    """Let a scripted stage take so long from now on, though its settings are frozen."""
    object.__setattr__(getattr(driver.specs, point).settings, field, ms)


@pytest.mark.parametrize(
    ("point", "field", "reason"),
    [("asr", "delay_ms", "no transcript came"), ("tts", "first_byte_ms", "had not sounded")],
)
async def test_what_comes_after_the_time_out_ends_the_turn_and_reaches_no_other(
    point: str, field: str, reason: str
) -> None:
    """The turn is `timed_out` within its time-out and a second; the next one is its own, and completed."""
    driver = Driver(scripted(turn_timeout_s=6.0))
    try:
        usual = getattr(getattr(driver.specs, point).settings, field)
        await driver.record(clip(SPEECH_S))
        object.__setattr__(driver.config, "turn_timeout_s", TIMEOUT_S)
        _slow(driver, point, field, 1500)
        begun = time.monotonic()
        late = await driver.record(clip(SPEECH_S))
        lasted_s = time.monotonic() - begun
        assert late.outcome is Outcome.TIMED_OUT
        assert reason in (late.reason or "")
        assert late.voice_to_voice_ms is None
        _slow(driver, point, field, usual)
        object.__setattr__(driver.config, "turn_timeout_s", 6.0)
        following = await driver.record(clip(SPEECH_S))
        assert following.outcome is Outcome.COMPLETED, following.reason
        assert following.reply == REPLY
        assert following.transcript == "What is it?"
        assert lasted_s < CLIP_S + TIMEOUT_S + 1
    finally:
        await driver.close()
        driver.shared.close()
