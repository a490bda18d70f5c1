"""What pipecat does for each frame of the person's audio, and what of it is left out."""

from __future__ import annotations

import pytest
from pipecat.frames.frames import InputAudioRawFrame
from pipecat.observers.base_observer import BaseObserver, FrameProcessed, FramePushed

from tests.pipeline.driven import SPEECH_S, clip, driving
from voicebench.plan.config import Pipecat
from voicebench.turns.records import Outcome


class Watcher(BaseObserver):
    """Which processors push the person's audio on, and how many frames are told as pushed and as taken."""

    def __init__(self) -> None:
        super().__init__(observe_every_push=True)
        self.pushing: set[str] = set()
        self.pushed = self.taken = 0

    async def on_push_frame(self, data: FramePushed) -> None:
        self.pushed += 1
        if isinstance(data.frame, InputAudioRawFrame):
            self.pushing.add(type(data.source).__name__)

    async def on_process_frame(self, data: FrameProcessed) -> None:
        self.taken += 1


async def watched(pipecat: Pipecat) -> Watcher:
    """What is seen of the second of two turns, both of them well."""
    async with driving(pipecat=pipecat) as driver:
        await driver.record(clip(SPEECH_S))
        assert driver.session is not None
        assert driver.session._parts is not None
        watcher = Watcher()
        driver.session._parts.worker.add_observer(watcher)
        assert (await driver.record(clip(SPEECH_S))).outcome is Outcome.COMPLETED
    return watcher


@pytest.mark.parametrize("on", [False, True])
async def test_the_persons_audio_ends_at_the_turn_detector(on: bool) -> None:
    """Neither the aggregator nor a stage behind it hands the audio on, unless that is asked for."""
    seen = (await watched(Pipecat(audio_downstream=on))).pushing
    assert {"FileSource", "LLMUserAggregator"} & seen == (
        {"FileSource", "LLMUserAggregator"} if on else {"FileSource"}
    )
    assert any("Llm" in name or "LLM" in name for name in seen - {"LLMUserAggregator"}) is on


@pytest.mark.parametrize("on", [False, True])
async def test_observers_are_told_what_is_pushed(on: bool) -> None:
    """What a processor takes is told beside it only where that is asked for."""
    seen = await watched(Pipecat(process_events=on))
    assert seen.pushed > 20
    assert (seen.taken > 20) if on else (seen.taken == 0)
