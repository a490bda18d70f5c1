"""The page's clock on ours: pings give the offset between the browser's clock and the monotonic one."""

from __future__ import annotations

from collections import deque

from voicebench.clock import NS_PER_MS

KEPT = 30
"""So many pings are looked at: with one a second the clocks cannot drift apart by 2 ms meanwhile."""


class PageClock:
    """Maps instants of the page (`performance.now()`, ms) to ns of the monotonic clock.

    Of the last pings the one that came back soonest counts. The page answered it somewhere between its
    sending and its return, so an instant is known to half of that time.
    """

    def __init__(self) -> None:
        self._pings: deque[tuple[int, int]] = deque(maxlen=KEPT)

    def note(self, sent_ns: int, page_ms: float, received_ns: int) -> None:
        """A ping was sent and came back at these instants; the page answered it at `page_ms`."""
        between = (sent_ns + received_ns) // 2
        self._pings.append((received_ns - sent_ns, between - round(page_ms * NS_PER_MS)))

    @property
    def known(self) -> bool:
        """Has any ping come back?"""
        return bool(self._pings)

    def instant(self, page_ms: float) -> int:
        """When it was `page_ms` in the page, in ns. Raises ValueError before the first ping came back."""
        _, offset = min(self._pings)
        return offset + round(page_ms * NS_PER_MS)

    @property
    def uncertainty_ns(self) -> int:
        """Half of the shortest way there and back, in ns. Raises ValueError as `instant` does."""
        return min(self._pings)[0] // 2
