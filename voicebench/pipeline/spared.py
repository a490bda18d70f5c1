"""What pipecat does for each frame of the person's audio, and nobody here has a use for."""

from __future__ import annotations

from typing import Any


def tell_pushes_only(worker: Any) -> None:
    """Spare a worker's observers the frames that processors take: only what is pushed is told.

    pipecat hands each of them, at each processor, to each observer through a queue and a task of its own,
    while the models want the cores. Ours ask for pushes alone.
    """

    async def untold(_: Any) -> None:
        return None

    worker._observer.on_process_frame = untold


def keep_audio(aggregator: Any) -> None:
    """Let the person's audio end at the aggregator, whose detector is the last to hear it.

    pipecat sends it on through the language model, the voice and the transport, fifty frames a second, each
    of which hands it on to the next.
    """
    from pipecat.frames.frames import InputAudioRawFrame
    from pipecat.processors.frame_processor import FrameDirection

    push = aggregator.push_frame

    async def push_frame(frame: Any, direction: Any = FrameDirection.DOWNSTREAM) -> None:
        if not isinstance(frame, InputAudioRawFrame):
            await push(frame, direction)

    aggregator.push_frame = push_frame
