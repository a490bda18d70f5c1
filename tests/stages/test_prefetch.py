"""A clause that is made ahead is given out as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from voicebench.stages.prefetch import Prefetch
from voicebench.stages.shared import WorkLog


class Voice:
    """Gives frames as the test lets it."""

    prefetchable = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.frames: asyncio.Queue[Any] = asyncio.Queue()

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Any, None]:
        self.asked.append(text)
        while (frame := await self.frames.get()) is not None:
            if isinstance(frame, Exception):
                raise frame
            yield frame


async def test_the_first_piece_is_given_before_the_last_is_made() -> None:
    """A clause's first frame goes on while the second is still being made, and the voice is asked once."""
    voice = Voice()
    prefetch = Prefetch(voice, WorkLog())
    prefetch.begin("Well then.")
    voice.frames.put_nowait(SimpleNamespace(number=1))
    given = voice.run_tts("Well then.", "context")
    first = await anext(given)
    assert (first.number, first.context_id) == (1, "context")
    voice.frames.put_nowait(SimpleNamespace(number=2))
    voice.frames.put_nowait(None)
    assert [frame.number async for frame in given] == [2]
    assert voice.asked == ["Well then."]


async def test_a_clause_that_is_broken_off_is_made_no_further() -> None:
    """Who is interrupted while the clause is still being made leaves no work behind, and it is counted."""
    for given in (0, 1):
        voice, work = Voice(), WorkLog()
        prefetch = Prefetch(voice, work)
        prefetch.begin("Well then.")
        speaking = voice.run_tts("Well then.", "context")
        if given:
            voice.frames.put_nowait(SimpleNamespace(number=1))
            await anext(speaking)
        waiting = asyncio.ensure_future(anext(speaking))
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for _ in range(5):
            await asyncio.sleep(0)
        assert [task for task in asyncio.all_tasks() if task.get_name() == "tts-prefetch"] == []
        assert "tts_wasted" in [one.name for one in work.take()[0]]


async def test_a_voice_that_fails_at_once_is_asked_again() -> None:
    """Where nothing of the clause could be made ahead it is made when it is due."""
    voice = Voice()
    prefetch = Prefetch(voice, WorkLog())
    voice.frames.put_nowait(RuntimeError("no"))
    prefetch.begin("Well then.")
    await asyncio.sleep(0)
    voice.frames.put_nowait(SimpleNamespace(number=1))
    voice.frames.put_nowait(None)
    assert [frame.number async for frame in voice.run_tts("Well then.", "context")] == [1]
    assert voice.asked == ["Well then."] * 2


async def test_a_voice_that_fails_midway_says_so() -> None:
    """What was made is given, then the error comes: half a clause does not pass for a whole one."""
    voice = Voice()
    prefetch = Prefetch(voice, WorkLog())
    prefetch.begin("Well then.")
    voice.frames.put_nowait(SimpleNamespace(number=1))
    voice.frames.put_nowait(RuntimeError("broken"))
    given = voice.run_tts("Well then.", "context")
    assert (await anext(given)).number == 1
    with pytest.raises(RuntimeError, match="broken"):
        await anext(given)
