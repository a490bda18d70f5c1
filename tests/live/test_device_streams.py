"""A device's stream on a made audio library: at which rate it opens, what its stamps are worth, when it is
lost."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from voicebench.audio import devices
from voicebench.audio.devices import BLOCK_MS, Device, DeviceStream, Direction
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.errors import BadRequest

T0 = 5 * 10**12


class Library:
    """An audio library whose device takes the rates of `takes` alone."""

    class PortAudioError(Exception):
        """What PortAudio raises."""

    takes: ClassVar[tuple[int, ...]] = ()
    opened: ClassVar[list[dict[str, Any]]] = []

    def check_input_settings(self, **asked: Any) -> None:
        """Refuse what the device does not take."""
        if asked["samplerate"] not in self.takes:
            raise self.PortAudioError("Invalid sample rate")

    check_output_settings = check_input_settings

    class Stream:
        """An open stream, which calls back only when a test does."""

        def __init__(self, **asked: Any) -> None:
            Library.opened.append(asked)

        def start(self) -> None:
            """Begin."""

        def abort(self, **_: Any) -> None:
            """Stop."""

        def close(self, **_: Any) -> None:
            """Let go."""

    InputStream = OutputStream = Stream


class Clock:
    """A clock that moves when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = T0
        monkeypatch.setattr(devices, "now_ns", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The devices' clock, and the made library in place of PortAudio."""
    monkeypatch.setattr(Library, "opened", [])
    monkeypatch.setattr(devices, "portaudio", Library)
    return Clock(monkeypatch)


def stream(direction: Direction, takes: tuple[int, ...], host: str = "Core Audio") -> DeviceStream:
    """A stream on a device that says it runs at the first of its rates."""
    Library.takes = takes
    rate = takes[0] if takes else 44_100
    return DeviceStream(Device(3, "Headset", host, 1, 2, rate), direction)


def fed(made: DeviceStream, clock: Clock, stamp: Callable[[float], float], blocks: int = 100) -> None:
    """Call back so many blocks; `stamp` makes of the library's time that of the block's first sample."""
    called = Library.opened[-1]["callback"]
    frames = made.rate * BLOCK_MS // 1000
    status = SimpleNamespace(input_overflow=False, output_underflow=False)
    for _ in range(blocks):
        clock.now += frames * NS_PER_S // made.rate
        now = clock.now / NS_PER_S
        at = stamp(now)
        time = SimpleNamespace(currentTime=now, inputBufferAdcTime=at, outputBufferDacTime=at)
        called(np.zeros((frames, 1), dtype=np.float32), frames, time, status)


@pytest.mark.parametrize("direction", ["input", "output"])
@pytest.mark.parametrize("takes", [(44_100,), (48_000,), (32_000,), (96_000, 48_000), (8_000,)])
@pytest.mark.parametrize("host", ["ALSA", "Core Audio", "WASAPI"])
def test_a_device_that_cannot_open_at_16_khz_opens_at_a_rate_of_its_own(
    direction: Direction, takes: tuple[int, ...], host: str, clock: Clock
) -> None:
    """16 kHz is asked of no device that does not take it: the stream runs at a rate that it has."""
    made = stream(direction, takes, host)
    made.open(lambda data, first: None)
    [asked] = Library.opened
    assert asked["samplerate"] == made.rate == made.clock.rate
    assert made.rate in takes
    assert made.facts["rate"] == made.rate
    made.close()


def test_a_device_that_takes_no_rate_is_refused_by_name(clock: Clock) -> None:
    """Where it takes none at all the error names the device, in words."""
    with pytest.raises(BadRequest, match="Headset"):
        stream("input", ()).open(lambda data, first: None)


def test_a_device_without_a_sign_of_life_is_lost_within_a_second(clock: Clock) -> None:
    """After its last callback a device counts as lost within a second, and not within half of one; one that
    never calls back is lost as well, and its name stands in its facts."""
    made = stream("input", (48_000,))
    made.open(lambda data, first: None)
    fed(made, clock, lambda now: now - 0.01)
    clock.now += 500 * NS_PER_MS
    assert not made.lost
    clock.now += 500 * NS_PER_MS
    assert made.lost
    assert (made.facts["name"], made.facts["host"]) == ("Headset", "Core Audio")
    silent = stream("output", (48_000,))
    silent.open(lambda data, first: None)
    assert not silent.lost
    clock.now += 2 * NS_PER_S
    assert silent.lost


def test_a_stream_that_ended_by_itself_is_lost_at_once(clock: Clock) -> None:
    """A device whose library says that the stream is finished is not waited for."""
    made = stream("input", (48_000,))
    made.open(lambda data, first: None)
    fed(made, clock, lambda now: now - 0.01, blocks=1)
    assert not made.lost
    Library.opened[-1]["finished_callback"]()
    assert made.lost


@pytest.mark.parametrize(
    "stamp",
    [
        lambda now: 0.0,
        lambda now: -1.0,
        lambda now: now - 3600.0,
        lambda now: now + 3600.0,
        lambda now: 123.4,
    ],
    ids=["zero", "negative", "an hour ago", "in an hour", "frozen"],
)
@pytest.mark.parametrize("direction", ["input", "output"])
def test_stamps_that_cannot_be_are_not_used(
    direction: Direction, stamp: Callable[[float], float], clock: Clock
) -> None:
    """Zero, negative, far-off and frozen stamps leave the count of frames and the call's own instant: they
    stay within a block of the truth, and the record says that there was no time information and how much
    instants may be off."""
    made = stream(direction, (48_000,))
    made.open(lambda data, first: None)
    fed(made, clock, stamp)
    begun = T0 if direction == "input" else T0 + BLOCK_MS * NS_PER_MS
    assert abs(made.clock.instant(0) - begun) <= BLOCK_MS * NS_PER_MS
    assert made.clock.instant(48_000) - made.clock.instant(0) == NS_PER_S
    assert made.facts["time_info"] is False
    assert made.facts["uncertainty_ms"] >= 3 * BLOCK_MS


def test_good_stamps_are_used(clock: Clock) -> None:
    """Stamps that can be say when the sound is heard, and the uncertainty is smaller for it."""
    made = stream("output", (48_000,))
    made.open(lambda data, first: None)
    fed(made, clock, lambda now: now + 0.05)
    assert abs(made.clock.instant(0) - (T0 + 60 * NS_PER_MS)) <= NS_PER_MS
    assert made.facts["time_info"] is True
    assert made.facts["uncertainty_ms"] <= BLOCK_MS + 1
