"""A page without a browser: speaks recordings, plays what it gets in real time, and says what it played."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
import numpy as np
from numpy.typing import NDArray

from voicebench.audio.decode import decode
from voicebench.audio.pcm import resample

RATE, BLOCK = 16_000, 320
HEAD = struct.Struct("<dd")


def _now_ms() -> float:
    """The page's clock: another origin than the server's."""
    return time.monotonic() * 1000 % 1e7 + 500.0


class FakePage:
    """One connection to a served page. `told` is what it was told, in order."""

    def __init__(self, url: str) -> None:
        self.told: list[dict[str, Any]] = []
        self.played = 0
        self._url = url
        self._news = asyncio.Condition()
        self._speech: NDArray[np.int16] = np.zeros(0, dtype=np.int16)
        self._waiting: list[tuple[int, NDArray[np.int16]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._pings = 0

    async def __aenter__(self) -> FakePage:
        host = self._url.split("/")[2]
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(f"{self._url}socket", origin=f"http://{host}")
        self._tasks = [asyncio.create_task(self._read())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Close the tab."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._socket.close()
        await self._session.close()

    async def say(self, **message: Any) -> None:
        """Tell the server something."""
        await self._socket.send_str(json.dumps(message))

    async def start(self) -> None:
        """Press Start: from now on sound goes both ways."""
        await self.until(lambda: self._pings >= 2)
        await self.say(type="hello", rate=RATE, base_latency_ms=10.0)
        self._tasks.append(asyncio.create_task(self._sound()))

    def speak(self, sample: Path) -> None:
        """Speak a recording into the microphone."""
        clip = decode(sample)
        speech = resample(clip.samples[:, 0], clip.sample_rate, RATE)
        self._speech = np.rint(np.clip(speech, -1, 1) * 32767).astype(np.int16)

    async def until(self, there: Callable[[], bool], within: float = 30.0) -> None:
        """Wait until that is so; asked whenever something was told or played."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(there)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All that was told of that type."""
        return [one for one in self.told if one["type"] == kind]

    async def turns(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many turns; the turns."""
        await self.until(lambda: len(self.of("turn")) >= count)
        return [one["turn"] for one in self.of("turn")]

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.BINARY:
                first, _ = HEAD.unpack_from(message.data)
                self._waiting.append((int(first), np.frombuffer(message.data, dtype="<i2", offset=16)))
                continue
            told = json.loads(message.data)
            async with self._news:
                if told["type"] == "ping":
                    await self.say(type="pong", id=told["id"], at_ms=_now_ms())
                    self._pings += 1
                elif told["type"] == "flush":
                    self._waiting.clear()
                    await self.say(type="flushed", id=told["id"])
                self.told.append(told)
                self._news.notify_all()

    async def _sound(self) -> None:
        """Every 20 ms a block of the microphone goes out, and a block of what waits is played."""
        begun = time.monotonic()
        frame = 0
        while True:
            await asyncio.sleep(max(0.0, begun + (frame + BLOCK) / RATE - time.monotonic()))
            block = np.zeros(BLOCK, dtype=np.int16)
            part, self._speech = self._speech[:BLOCK], self._speech[BLOCK:]
            block[: part.size] = part
            now = _now_ms()
            await self._socket.send_bytes(HEAD.pack(frame, now) + block.tobytes())
            frame += BLOCK
            if frame % (5 * BLOCK) == 0:
                await self.say(type="stamp", now_ms=now, frame=frame, lead_ms=20.0)
            await self._play(frame)

    async def _play(self, frame: int) -> None:
        room = BLOCK
        while room and self._waiting:
            first, samples = self._waiting.pop(0)
            if samples.size > room:
                self._waiting.insert(0, (first + room, samples[room:]))
            count = min(room, samples.size)
            await self.say(type="played", first=first, count=count, frame=frame)
            frame, room = frame + count, room - count
            async with self._news:
                self.played += count
                self._news.notify_all()
