"""Devices by name, and the instants of a stream's samples."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest

from voicebench.audio.devices import Device, StreamClock, find_device, portaudio
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.errors import BadRequest, MissingExtra

BLOCK, RATE = 480, 48_000
T0 = 10**12

DEVICES = [
    Device(0, "Built-in Microphone", "Core Audio", 1, 0, 48_000),
    Device(1, "Built-in Output", "Core Audio", 0, 2, 48_000, default_output=True),
    Device(2, "Headset", "Core Audio", 1, 2, 16_000, default_input=True),
]


def _fed(direction: Any, offset_s: float | None, jitter_ms: tuple[int, ...] = (0,)) -> StreamClock:
    """A clock after 100 callbacks, each late by the next value of `jitter_ms`."""
    clock = StreamClock(RATE, direction)
    for number in range(100):
        late = jitter_ms[number % len(jitter_ms)] * NS_PER_MS
        now = T0 + number * BLOCK * NS_PER_S // RATE + late
        shift = None if offset_s is None else offset_s - late / NS_PER_S
        clock.note(number * BLOCK, BLOCK, now, shift)
    return clock


def test_a_device_is_found_by_index_name_and_default() -> None:
    """An index, a whole name or a part that fits one device name it; without any it is the default."""
    assert find_device("2", "output", DEVICES).name == "Headset"
    assert find_device("head", "input", DEVICES).index == 2
    assert find_device(None, "input", DEVICES).index == 2
    assert find_device(None, "output", DEVICES).index == 1


@pytest.mark.parametrize("wanted", ["1", "Output", "none such"])
def test_a_device_without_that_direction_is_refused(wanted: str) -> None:
    """A loudspeaker is no microphone: the error names those that are."""
    with pytest.raises(BadRequest, match="Built-in Microphone"):
        find_device(wanted, "input", DEVICES)


def test_a_machine_without_a_microphone_is_told_that_recordings_need_none() -> None:
    """Without a device the error says what works all the same."""
    with pytest.raises(BadRequest, match="voicebench batch"):
        find_device(None, "input", [])


@pytest.mark.parametrize(
    ("raised", "told"), [(OSError("PortAudio library not found"), BadRequest), (ImportError(), MissingExtra)]
)
def test_a_missing_library_says_what_to_install(
    raised: Exception, told: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PortAudio, or the package that speaks to it, the error says what to install."""
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "sounddevice":
            raise raised
        return real(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(told, match="install"):
        portaudio()


def test_instants_come_from_counts_and_time_information() -> None:
    """Late callbacks move no instant where the time information says when the samples sound."""
    clock = _fed("output", 0.03, (0, 4, 1, 9))
    assert abs(clock.instant(0) - (T0 + 30 * NS_PER_MS)) < NS_PER_MS
    assert clock.instant(RATE) - clock.instant(0) == NS_PER_S
    assert clock.sample_at(clock.instant(12_345)) == 12_345
    assert clock.uncertainty_ns <= 12 * NS_PER_MS


def test_an_input_block_was_spoken_before_it_came() -> None:
    """Time information that says a block was heard only as it came is held to the block's own length."""
    assert abs(_fed("input", 0.0).instant(0) - (T0 - 10 * NS_PER_MS)) < NS_PER_MS
    assert abs(_fed("input", -0.025).instant(0) - (T0 - 25 * NS_PER_MS)) < NS_PER_MS


@pytest.mark.parametrize("offset", [None, 0.0, -0.5, 7.0])
def test_implausible_time_information_falls_back_to_counts(offset: float | None) -> None:
    """Zero, negative or far-off output stamps are not used, and the uncertainty says so."""
    clock = _fed("output", offset)
    assert clock.guessed == 100
    assert abs(clock.instant(0) - T0) < NS_PER_MS
    assert clock.uncertainty_ns >= 30 * NS_PER_MS


def test_lost_samples_begin_the_estimate_anew() -> None:
    """After an overflow only later callbacks count."""
    clock = _fed("output", 0.03)
    clock.restart()
    clock.note(100 * BLOCK, BLOCK, T0 + 5 * NS_PER_S, 0.03)
    assert clock.instant(100 * BLOCK) == T0 + 5 * NS_PER_S + 30 * NS_PER_MS
