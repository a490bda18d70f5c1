"""The microphone and the loudspeaker of a talk: opened together, watched, and closed whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

from voicebench.audio.devices import Device
from voicebench.audio.echo import RATE
from voicebench.audio.microphone import Capture, Microphone
from voicebench.audio.speaker import Playout, Speaker
from voicebench.clock import NS_PER_S, ms, now_ns
from voicebench.errors import BadRequest, RunProblem

LISTEN_S = 0.5
FIRST_SOUND_S = 5.0
WINDOW_NS = 5_000_000
"""An edge found in samples is known to this window."""


@dataclass(frozen=True)
class Level:
    """What the microphone gives before anyone speaks, in dBFS. None: digital silence."""

    rms_dbfs: float | None
    peak_dbfs: float | None

    @property
    def warning(self) -> str | None:
        """What is wrong with it, in words; None where nothing is."""
        if self.rms_dbfs is None:
            return (
                "The microphone gives digital silence: it may be switched off, or the system may not let "
                "this program hear it."
            )
        if self.rms_dbfs > -35.0:
            return (
                f"It is loud around the microphone ({self.rms_dbfs:.0f} dBFS): ends of speech are uncertain."
            )
        return None


class Card:
    """Both devices. `stuck` turns true where one of them did not let itself be closed."""

    returns = False
    """May a device that is lost come back in the same conversation?"""

    def __init__(self, microphone: Device, speaker: Device, *, echo: bool = True) -> None:
        self.capture = Capture(microphone)
        self.playout = Playout(speaker)
        self.stuck = False
        if echo:
            self.capture.reference = self.playout.reference

    async def open(self) -> Level:
        """Open both and listen for half a second. Raises BadRequest where one refuses or gives no samples."""
        await self.playout.open()
        await self.capture.open()
        deadline = now_ns() + round(FIRST_SOUND_S * NS_PER_S)
        while self.capture.count < LISTEN_S * RATE:
            if now_ns() > deadline or self.lost is not None:
                raise BadRequest(
                    f"The microphone {self.capture.stream.device.name!r} gives no sound.",
                    "Close what else uses it, or name another: voicebench live --list-devices",
                )
            await asyncio.sleep(0.02)
        return self.level()

    def level(self) -> Level:
        """The level of the last half second."""
        import math

        rms, peak = self.capture.level(LISTEN_S)
        if rms <= 0:
            return Level(None, None)
        return Level(20 * math.log10(rms), 20 * math.log10(peak))

    def transports(self, rate: int) -> tuple[Microphone, Speaker]:
        """Source and sink of a pipeline whose voice has that rate in Hz."""
        return Microphone(self.capture), Speaker(self.playout, rate)

    async def there(self) -> bool:
        """Wait for devices that are on their way back; False where they do not come."""
        return True

    @property
    def lost(self) -> str | None:
        """Which device is gone, in words; None where both are there."""
        for stream, name in ((self.capture.stream, "microphone"), (self.playout.stream, "loudspeaker")):
            if stream.lost:
                return f"the {name} {stream.device.name!r} gives no sign of life any more (unplugged?)"
        return None

    @property
    def uncertainty_ms(self) -> float:
        """By how much the time from a sound heard to a sound played may be off."""
        clocks = (self.capture.stream.clock, self.playout.stream.clock)
        return ms(sum(clock.uncertainty_ns for clock in clocks) + WINDOW_NS)

    @property
    def troubles(self) -> tuple[int, int]:
        """Overflows of the microphone and underflows of the loudspeaker so far."""
        return self.capture.stream.troubles, self.playout.stream.troubles

    @property
    def facts(self) -> dict[str, Any]:
        """What `run.json` says of the devices."""
        return {
            "input": self.capture.stream.facts,
            "output": self.playout.stream.facts,
            "echo_coupling_db": self.capture.gate.coupling_db,
        }

    async def close(self) -> None:
        """Close both."""
        for device in (self.capture, self.playout):
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await device.close()
            except RunProblem:
                self.stuck = True
