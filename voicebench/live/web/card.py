"""The page as a sound card: its microphone and its player together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from voicebench.audio.echo import RATE
from voicebench.audio.microphone import Microphone
from voicebench.clock import NS_PER_MS, NS_PER_S, ms, now_ns
from voicebench.errors import BadRequest
from voicebench.live.card import FIRST_SOUND_S, LISTEN_S, WINDOW_NS, Card, Level
from voicebench.live.web.messages import Hello
from voicebench.live.web.page import Page
from voicebench.live.web.playout import PagePlayout
from voicebench.live.web.streams import UNSEEN_MS, PageCapture

GONE = "the page in the browser is gone (closed, its connection lost, or its sound stopped)"
RETURN_WITHIN_S = 120.0
"""So long a conversation waits for its page to come back."""


@dataclass
class Uncertainty:
    """What V2V in the page may be off by, in ms, part by part."""

    clock_ms: float
    """Half of a ping's shortest way: the browser's clock on ours."""
    microphone_ms: float
    """One block of the microphone, and how unevenly blocks come."""
    player_ms: float
    """One block of the player, and how unevenly its stamps come."""
    window_ms: float = ms(WINDOW_NS)
    unseen_ms: float = UNSEEN_MS

    @property
    def total_ms(self) -> float:
        """All of it together."""
        return self.clock_ms + self.microphone_ms + self.player_ms + self.window_ms + self.unseen_ms


class WebCard(Card):
    """The page's microphone and player in the place of a sound card's."""

    returns = True

    def __init__(self, page: Page, *, echo: bool = True) -> None:
        self.page = page
        self.capture: PageCapture = PageCapture(page)
        self.playout: PagePlayout = PagePlayout(page)
        self.stuck = False
        if echo:
            self.capture.reference = self.playout.reference
        page.on_sound = self.capture.note_sound
        page.on_hello = self._hello

    async def open(self) -> Level:
        """Wait until someone presses Start in the page, then listen for half a second."""
        await self.page.came.wait()
        # Only now is the rate known at which the page hears.
        await self.capture.open()
        while True:
            await self.page.came.wait()
            await asyncio.sleep(0.02)
            deadline = now_ns() + round(FIRST_SOUND_S * NS_PER_S)
            begun = self.capture.count
            while self.capture.count - begun < LISTEN_S * RATE and self.lost is None:
                if now_ns() > deadline:
                    raise BadRequest(
                        "The page's microphone gives no sound.", "Choose another in the browser's settings."
                    )
                await asyncio.sleep(0.02)
            if self.lost is None:
                return self.level()

    def transports(self, rate: int) -> tuple[Microphone, Any]:
        """Source and sink of a pipeline whose voice has that rate in Hz."""
        from voicebench.live.web.speaker import PageSpeaker

        return Microphone(self.capture), PageSpeaker(self.playout, rate)

    async def there(self) -> bool:
        """Wait for the page to come back; False where it does not for two minutes."""
        if self.page.connected:
            return True
        try:
            async with asyncio.timeout(RETURN_WITHIN_S):
                while not self.page.connected:
                    await self.page.came.wait()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    @property
    def lost(self) -> str | None:
        """That the page is gone, in words; None while it is there."""
        return None if self.page.connected else GONE

    @property
    def uncertainty(self) -> Uncertainty:
        """By how much V2V may be off, part by part."""
        clock = self.page.clock.uncertainty_ns if self.page.clock.known else 100 * NS_PER_MS
        heard, played = (one.clock.uncertainty_ns for one in (self.capture.stream, self.playout.stream))
        return Uncertainty(ms(clock), ms(heard), ms(played))

    @property
    def uncertainty_ms(self) -> float:
        """By how much the time from a sound heard to a sound played may be off."""
        return self.uncertainty.total_ms

    @property
    def facts(self) -> dict[str, Any]:
        """What `run.json` says of the page."""
        return {**super().facts, "web": True, "pages": self.page.generation}

    async def close(self) -> None:
        """Hear the page no more."""
        await self.capture.close()

    def _hello(self, hello: Hello) -> str | None:
        rate = self.capture.stream.rate
        if rate and rate != hello.rate:
            return (
                f"This browser's sound runs at {hello.rate} Hz, the conversation began with {rate} Hz. "
                "Go on in the browser it began in, or start the command anew."
            )
        self.capture.begin(hello)
        self.playout.begin(hello)
        return None
