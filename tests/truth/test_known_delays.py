"""The harness against stages whose truth is known: the one place where tests assert times."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from tests.truth.pacing import last_frame_late_ms
from tests.truth.scripts import FLOOR_MS, KNOWN, STAGE_TOLERANCE_MS, beyond, opinion
from voicebench.clock import ms
from voicebench.pipeline.calibrate import calibrate
from voicebench.pipeline.contamination import limited
from voicebench.pipeline.session import Heard
from voicebench.turns.second_opinion import WAVEFORM_TOLERANCE_MS

TURNS = 30


async def test_known_delays_are_found_within_the_noise_floor() -> None:
    """Each stage is within 5 ms and V2V within 10 ms of the truth at p95, the noise floor taken off."""
    floor = await calibrate(TURNS)
    measured = await calibrate(TURNS, KNOWN)
    assert floor.failed == measured.failed == 0
    assert floor.bias_ms is not None
    assert floor.bias_ms <= FLOOR_MS
    assert beyond(measured, floor) == {}
    assert measured.faults() == []


async def test_a_stage_that_is_slower_than_its_script_is_named() -> None:
    """20 ms more in one stage than it should take is found, and laid to that stage."""
    slow = replace(KNOWN, asr=KNOWN.asr + 20)
    found = await calibrate(5, KNOWN, acted=slow)
    assert any(fault.startswith("asr takes +2") for fault in found.faults())
    assert not any(fault.startswith(("llm", "tts", "playout")) for fault in found.faults())


async def test_a_shifted_first_sound_is_contradicted_by_the_waveform() -> None:
    """A `first_audible` that is 30 ms off disagrees with the recording in each of five turns; the true one
    agrees in all but one at most."""
    turns: list[Heard] = []
    await calibrate(5, KNOWN, hear="reply", on_turn=turns.append)
    agreed = 0
    for heard in turns:
        timeline_ms, waveform = opinion(heard)
        assert waveform.certain
        agreed += not waveform.disagrees(timeline_ms)
        # A tone that breaks off at full level rings into the next 5 ms window, at either end of the gap: that
        # alone may be all that is tolerated.
        assert abs(timeline_ms - (waveform.voice_to_voice_ms or 0.0)) <= WAVEFORM_TOLERANCE_MS + 5.0
        assert waveform.disagrees(timeline_ms + 30.0)
        assert waveform.disagrees(timeline_ms - 30.0)
    assert agreed >= 4


async def test_a_stalled_loop_is_flagged() -> None:
    """Each turn through which the event loop stood still for 200 ms is not believed, whenever in the turn
    that was: while the person speaks, in the silence behind, while the agent answers. Quiet ones are."""
    stalls_s = {1: 0.3, 3: 0.5, 5: 0.7}
    lags: list[float] = []
    loop = asyncio.get_running_loop()

    def on_turn(heard: Heard) -> None:
        lags.append(ms(heard.lag_ns) if limited(ms(heard.lag_ns), heard.load) else 0.0)
        if len(lags) in stalls_s:
            loop.call_later(stalls_s[len(lags)], time.sleep, 0.2)

    await calibrate(6, on_turn=on_turn)
    assert [number for number, lag in enumerate(lags) if lag > 0] == list(stalls_s)
    assert all(lags[number] >= 180.0 for number in stalls_s)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, None], ids=["forward", "back", "frozen"])
async def test_the_wall_clock_moves_no_figure(step_s: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall clock that jumps by an hour or stands still during the run changes no latency, and makes none
    negative: neither ours nor pipecat's own beside it."""
    real, begin = time.time, time.time()
    calls = 0

    def wall() -> float:
        nonlocal calls
        calls += 1
        if step_s is None:
            return begin
        return real() + (step_s if calls % 2 else 0.0)

    monkeypatch.setattr(time, "time", wall)
    monkeypatch.setattr(time, "time_ns", lambda: round(wall() * 1e9))
    told: list[float] = []
    turns: list[Heard] = []
    found = await calibrate(5, KNOWN, on_turn=turns.append)
    assert calls > 0
    assert found.failed == 0
    # A step shows as an hour, a frozen clock as nothing at all: one millisecond below the truth is too much.
    assert min(found.extra_ms) >= -1.0
    assert max(found.extra_ms) < 1000.0
    for values in found.stage_extra_ms.values():
        assert -STAGE_TOLERANCE_MS <= min(values) <= max(values) < 1000.0
    for heard in turns:
        told += [ms(one.end_ns - one.start_ns) for one in heard.work]
        told += [ms(stream.end_ns - stream.request_ns) for stream in heard.streams if stream.end_ns]
        said = heard.notes["pipecat_user_bot_latency_ms"]
        assert KNOWN.vad_stop < said < KNOWN.voice_to_voice + 100.0
    assert told
    assert 0.0 <= min(told) <= max(told) < 1000.0


async def test_audio_does_not_drift() -> None:
    """The last frame of a clip enters the pipeline within 20 ms of its instant."""
    assert await last_frame_late_ms(5.0) <= 20.0
