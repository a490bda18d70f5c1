"""The page as the server sees it: at most one at a time, what it says, and what it is told in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web
from numpy.typing import NDArray

from voicebench.clock import now_ns
from voicebench.live.web.clock import PageClock
from voicebench.live.web.messages import (
    Flushed,
    Hello,
    PlayedSamples,
    Pong,
    Refused,
    Stamp,
    Wish,
    heard,
    to_play,
    told,
)
from voicebench.turns.durable import strict_json

LOST_AFTER_NS = 700_000_000
"""A page whose microphone has given nothing for so long is gone."""
_FIRST_PINGS, _BETWEEN_FIRST_S, _BETWEEN_S = 8, 0.03, 1.0
_TAKE_OVER_S = 0.1
"""So long the page before is gone before the next one counts, so that a turn in progress notices."""
SEND_WITHIN_S = 2.0
MOST_PINGS = 10
"""So many pings may be on their way."""
REPLACED, FORBIDDEN, GOING_AWAY = 4000, 1008, 1001

Outgoing = asyncio.Queue[str | bytes | int]
"""Text, the numbers of pings, and empty bytes where the sound that waits has its place."""


class Page:
    """The open page. Those who listen set `on_sound`, `on_told` and `on_hello`.

    `connected` is true from the page's `hello` on, when its microphone is open, until it is gone.
    """

    def __init__(self) -> None:
        self.clock = PageClock()
        self.hello: Hello | None = None
        self.on_hello: Callable[[Hello], str | None] = lambda hello: None
        """Asked when the person has pressed Start; a text refuses."""
        self.on_sound: Callable[[int, float, NDArray[np.int16]], None] = lambda frame, at_ms, samples: None
        self.on_told: Callable[[Stamp | PlayedSamples | Flushed | Wish], None] = lambda message: None
        self.welcome: Callable[[], dict[str, Any]] = lambda: {"type": "welcome"}
        """What a page is told first: all that has happened so far."""
        self.generation = 0
        """How many pages have said hello."""
        self.came = asyncio.Event()
        """Set while the page is connected."""
        self._socket: web.WebSocketResponse | None = None
        self._outgoing: Outgoing = asyncio.Queue()
        self._sound: list[tuple[int, NDArray[np.int16]]] = []
        self._last_ns = 0
        self._pings: dict[int, int] = {}
        self._next_ping = 0

    @property
    def connected(self) -> bool:
        """Is a page there whose microphone gives sound?"""
        return self.came.is_set() and now_ns() - self._last_ns < LOST_AFTER_NS

    def tell(self, **message: Any) -> None:
        """Tell the page something; nobody hears it while no page is there."""
        if self._socket is not None:
            self._outgoing.put_nowait(strict_json(message).decode())

    def play(self, first: int, samples: NDArray[np.int16]) -> None:
        """Send sound, its first sample's number before it; it is lost while no page is there.

        What is sent in one go leaves as one message: a busy page has fewer to handle.
        """
        if self._socket is None:
            return
        if not self._sound:
            self._outgoing.put_nowait(b"")
        self._sound.append((first, samples))

    def drop_sound(self) -> None:
        """Do not send what has not left yet."""
        self._sound.clear()

    def _taken_sound(self) -> bytes:
        """All sound that waits to leave."""
        taken, self._sound = self._sound, []
        return to_play(taken[0][0], np.concatenate([samples for _, samples in taken])) if taken else b""

    async def serve(self, socket: web.WebSocketResponse) -> None:
        """Talk with a page until it is gone. A page that was there before has to go."""
        before, self._socket = self._socket, socket
        if before is not None:
            self.came.clear()
            self.hello = None
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(SEND_WITHIN_S):
                    await before.close(code=REPLACED, message=b"opened in another window")
            await asyncio.sleep(_TAKE_OVER_S)
            if self._socket is not socket:
                return
        self._outgoing = asyncio.Queue()
        self._sound = []
        self.clock = PageClock()
        self._pings.clear()
        tasks = [
            asyncio.create_task(self._write(socket, self._outgoing), name="page writer"),
            asyncio.create_task(self._ping(), name="page pings"),
        ]
        self._outgoing.put_nowait(strict_json(self.welcome()).decode())
        try:
            await self._read(socket)
        except Refused as refused:
            with contextlib.suppress(ConnectionError):
                await socket.close(code=FORBIDDEN, message=str(refused).encode())
        finally:
            for task in tasks:
                task.cancel()
            if self._socket is socket:
                self._socket = None
                self.came.clear()
                self.hello = None
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, within_s: float = SEND_WITHIN_S) -> None:
        """Send what is still to be told, then say goodbye."""
        socket = self._socket
        if socket is None:
            return
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(within_s):
                await self._outgoing.join()
                await socket.close(code=GOING_AWAY, message=b"the conversation is over")

    async def _read(self, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            now = now_ns()
            if self._socket is not socket:
                return
            if message.type is WSMsgType.BINARY:
                frame, at_ms, samples = heard(message.data)
                self._last_ns = now
                if self.came.is_set():
                    self.on_sound(frame, at_ms, samples)
            elif message.type is WSMsgType.TEXT:
                self._take(message.data, now)

    def _take(self, text: str, now: int) -> None:
        message = told(text)
        if isinstance(message, Pong):
            sent = self._pings.pop(message.id, None)
            if sent is not None:
                self.clock.note(sent, message.at_ms, now)
        elif isinstance(message, Hello):
            if not self.clock.known:
                raise Refused("hello before the first ping was answered")
            problem = self.on_hello(message)
            if problem is not None:
                self.tell(type="refused", text=problem)
                return
            self.hello = message
            self._last_ns = now
            self.generation += 1
            self.came.set()
            self.tell(type="listening", uncertainty_ms=self.clock.uncertainty_ns / 1e6)
        elif isinstance(message, Wish) or self.came.is_set():
            self.on_told(message)

    async def _ping(self) -> None:
        for number in count():
            self._next_ping += 1
            self._outgoing.put_nowait(self._next_ping)
            for old in [one for one in self._pings if one < self._next_ping - MOST_PINGS]:
                del self._pings[old]
            await asyncio.sleep(_BETWEEN_FIRST_S if number < _FIRST_PINGS else _BETWEEN_S)

    async def _write(self, socket: web.WebSocketResponse, outgoing: Outgoing) -> None:
        while True:
            message = await outgoing.get()
            try:
                if isinstance(message, bytes):
                    sound = self._taken_sound()
                    if sound:
                        await socket.send_bytes(sound)
                elif isinstance(message, str):
                    await socket.send_str(message)
                else:
                    # Sound may have waited before it: a ping is dated when it leaves.
                    self._pings[message] = now_ns()
                    await socket.send_str(json.dumps({"type": "ping", "id": message}))
            except (ConnectionError, RuntimeError):
                return
            finally:
                outgoing.task_done()
