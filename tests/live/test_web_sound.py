"""The page's sound: its clock on ours, and that only what it has played counts as played."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.live.web.clock import PageClock
from voicebench.live.web.messages import Flushed, Hello, PlayedSamples, Refused, Stamp, heard, to_play, told
from voicebench.live.web.page import Page
from voicebench.live.web.playout import PagePlayout
from voicebench.live.web.streams import PageStreamClock

T0 = 10**12
RATE = 48_000


def test_the_ping_that_came_back_soonest_gives_the_offset() -> None:
    """Slow pings move nothing, and the uncertainty is half of the quickest one's way."""
    clock = PageClock()
    clock.note(T0, 1000.0, T0 + 60 * NS_PER_MS)
    clock.note(T0 + NS_PER_S, 2001.0, T0 + NS_PER_S + 2 * NS_PER_MS)
    clock.note(T0 + 2 * NS_PER_S, 3030.0, T0 + 2 * NS_PER_S + 90 * NS_PER_MS)
    assert clock.instant(2001.0) == T0 + NS_PER_S + NS_PER_MS
    assert clock.uncertainty_ns == NS_PER_MS


def test_blocks_that_come_late_move_no_instant() -> None:
    """The earliest blocks say when the microphone's count began."""
    clock = PageStreamClock(RATE)
    for number in range(200):
        late = 40 * NS_PER_MS if number % 3 else 0
        clock.note(number * 480, 480, T0 + (number + 1) * 10 * NS_PER_MS + late, None)
    assert clock.instant(0) == T0
    assert clock.uncertainty_ns == 50 * NS_PER_MS


def test_a_browser_that_stood_still_is_doubted() -> None:
    """After a stop of 80 ms, whose sound may wait ever after, instants may be off by that much more."""
    clock = PageStreamClock(RATE)
    for number in range(600):
        stop = 80 * NS_PER_MS if number > 200 else 0
        clock.note(number * 480, 480, T0 + (number + 1) * 10 * NS_PER_MS + stop, None)
    assert clock.slipped_ns == 80 * NS_PER_MS
    assert clock.uncertainty_ns == 90 * NS_PER_MS
    clock.begin()
    assert clock.slipped_ns == 0


class _Owner:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, bool]] = []

    def sounded(self, samples: NDArray[np.int16], at_ns: int, goes_on: bool) -> None:
        self.heard.append((samples.size, at_ns, goes_on))


class _Page(Page):
    """A page that is there and keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Any] = []
        self.hello = Hello(type="hello", rate=RATE, base_latency_ms=10.0)
        self.clock.note(T0, 0.0, T0)

    @property
    def connected(self) -> bool:
        return True

    def tell(self, **message: Any) -> None:
        self.sent.append(message)

    def play(self, first: int, samples: NDArray[np.int16]) -> None:
        self.sent.append((first, samples))


@pytest.fixture
def playout() -> PagePlayout:
    """A player whose frame 0 sounds 30 ms after T0."""
    page = _Page()
    made = PagePlayout(page)
    assert page.hello is not None
    made.begin(page.hello)
    made.note_stamp(Stamp(type="stamp", now_ms=0.0, frame=0, lead_ms=30.0))
    return made


def _sound(size: int = 480) -> NDArray[np.int16]:
    return np.full(size, 9000, dtype=np.int16)


def _played(first: int, count: int, frame: int) -> PlayedSamples:
    return PlayedSamples(type="played", first=first, count=count, frame=frame)


def test_what_was_sent_is_not_yet_played(playout: PagePlayout) -> None:
    """Sound counts from the page's report on, at the instant its output gives that frame."""
    owner = _Owner()
    playout.send(_sound(), owner)
    playout.send(_sound(), owner)
    assert owner.heard == []
    assert playout.queued_s == pytest.approx(0.02)
    playout.note_played(_played(0, 600, 4800))
    start = T0 + 130 * NS_PER_MS
    assert owner.heard == [(480, start, False), (120, start + 10 * NS_PER_MS, True)]
    assert playout.queued_s == pytest.approx(360 / RATE)


def test_a_player_that_ran_dry_is_counted(playout: PagePlayout) -> None:
    """A gap in the middle of what was sent begins a new run, and is counted as a trouble."""
    owner = _Owner()
    playout.send(_sound(), owner)
    playout.send(_sound(), owner)
    playout.note_played(_played(0, 480, 0))
    playout.note_played(_played(480, 480, 960))
    assert [goes_on for _, _, goes_on in owner.heard] == [False, False]
    assert playout.gaps == playout.stream.troubles == 1


async def test_an_interruption_counts_what_sounded_before_it(playout: PagePlayout) -> None:
    """After a flush nothing waits; what the page played until then still counts, the rest never does."""
    owner = _Owner()
    playout.send(_sound(), owner)
    playout.send(_sound(), owner)
    playout.clear()
    assert playout.queued_s == 0
    playout.note_played(_played(0, 300, 0))
    playout.note_flushed(Flushed(type="flushed", id=1))
    await playout.flushed(0.0)
    playout.send(_sound(), owner)
    playout.note_played(_played(960, 480, 4800))
    assert [size for size, _, _ in owner.heard] == [300, 480]


def test_while_silent_the_page_gets_silence(playout: PagePlayout) -> None:
    """A warm-up is accounted for as if it sounded, and does not sound."""
    playout.silent = True
    owner = _Owner()
    playout.send(_sound(), owner)
    page = playout._page
    assert isinstance(page, _Page)
    assert not page.sent[-1][1].any()
    playout.note_played(_played(0, 480, 0))
    assert owner.heard[0][0] == 480


def test_an_echo_is_looked_for_in_what_was_played(playout: PagePlayout) -> None:
    """The gate's reference is the page's sound at the instant it sounded."""
    playout.send(_sound(4800), _Owner())
    playout.note_played(_played(0, 4800, 0))
    end = T0 + 130 * NS_PER_MS
    assert playout.reference(end, 160).min() > 0.25
    assert playout.reference(end + NS_PER_S, 160).max() == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"type": "played", "first": -1, "count": 1, "frame": 0}),
        json.dumps({"type": "pong", "id": 1, "at_ms": "NaN"}),
        json.dumps({"type": "hello", "rate": 1}),
        json.dumps({"type": "wish", "what": "mode", "more": 1}),
    ],
)
def test_a_message_without_a_meaning_is_refused(text: str) -> None:
    """Only what the page really says is taken."""
    with pytest.raises(Refused):
        told(text)


def test_sound_of_odd_length_is_refused() -> None:
    """A block has its head and whole samples."""
    for data in (b"", bytes(16), bytes(19), to_play(2**60, _sound(2))):
        with pytest.raises(Refused):
            heard(data)
    assert heard(to_play(7, _sound(3)))[0] == 7
