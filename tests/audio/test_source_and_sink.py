"""The paced source and the playing sink in a running pipeline, with nothing between them and the test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns
from voicebench.stages.quiet import hush_pipecat

hush_pipecat()  # before pipecat is imported, by us or by what we test

from pipecat.frames.frames import (  # noqa: E402
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    TTSAudioRawFrame,
)
from pipecat.pipeline.pipeline import Pipeline  # noqa: E402
from pipecat.pipeline.worker import PipelineParams, PipelineWorker  # noqa: E402
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402
from pipecat.workers.runner import WorkerRunner  # noqa: E402

from voicebench.audio.file_source import FRAME_MS, FRAME_SAMPLES, RATE, FileSource, Playback  # noqa: E402
from voicebench.audio.play_sink import PlaySink  # noqa: E402
from voicebench.audio.played import Played  # noqa: E402

FRAME_NS = FRAME_MS * NS_PER_MS


class Ear(FrameProcessor):
    """Keeps the audio frames that pass, with the instant of each."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[tuple[int, bytes]] = []
        self.heard = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Note an audio frame and let everything through."""
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self.frames.append((now_ns(), frame.audio))
            self.heard.set()
        await self.push_frame(frame, direction)

    async def until(self, count: int) -> list[tuple[int, bytes]]:
        """The first `count` frames, when they are there."""
        async with asyncio.timeout(10):
            while len(self.frames) < count:
                self.heard.clear()
                await self.heard.wait()
        return self.frames[:count]


@dataclass
class Bench:
    """A running pipeline of source, ear and sink."""

    source: FileSource
    ear: Ear
    sink: PlaySink
    worker: PipelineWorker

    async def say(self, samples: NDArray[np.int16], rate: int) -> None:
        """Hand audio to the sink as a speech synthesis service does."""
        await self.worker.queue_frame(TTSAudioRawFrame(samples.tobytes(), rate, 1))

    async def until(self, holds: Callable[[Played], bool]) -> None:
        """Wait until that holds of what was played."""
        async with asyncio.timeout(10):
            while not holds(self.sink.played):  # noqa: ASYNC110 - an interruption announces itself nowhere
                await asyncio.sleep(0.001)

    async def until_written(self, samples: int) -> None:
        """Wait until the sink has taken so many samples."""
        await self.until(lambda played: sum(run.count for run in played.runs) >= samples)


@asynccontextmanager
async def running(sample_rate: int = 24_000) -> AsyncIterator[Bench]:
    """A bench that is started, and ended afterwards."""
    source, ear, sink = FileSource(), Ear(), PlaySink(sample_rate)
    worker = PipelineWorker(
        Pipeline([source, ear, sink]),
        params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=sample_rate),
        enable_rtvi=False,
        enable_turn_tracking=False,
        idle_timeout_secs=None,
        check_dangling_tasks=False,
    )
    started = asyncio.Event()

    async def on_started(*_: object) -> None:
        started.set()

    worker.add_event_handler("on_pipeline_started", on_started)
    runner = WorkerRunner(handle_sigint=False, handle_sigterm=False)
    await runner.add_workers(worker)
    task = asyncio.create_task(runner.run())
    async with asyncio.timeout(30):
        await started.wait()
    bench = Bench(source, ear, sink, worker)
    try:
        yield bench
    finally:
        await worker.cancel()
        await task


def ramp(count: int) -> NDArray[np.int16]:
    """A clip in which every sample is another one."""
    return np.arange(1, count + 1, dtype=np.int16)


def tone(ms: float, rate: int) -> NDArray[np.int16]:
    """So many ms of a loud tone."""
    count = round(rate * ms / 1000)
    return (9_000 * np.cos(2 * np.pi * 440 * np.arange(count) / rate)).astype(np.int16)


async def test_a_clip_is_spoken_whole_between_silence() -> None:
    """The frames hold the lead-in, then every sample of the clip in order, then silence."""
    clip = ramp(FRAME_SAMPLES * 3 + 100)
    async with running() as bench:
        bench.source.play(clip, lead_in_ms=40)
        frames = await bench.ear.until(8)
    data = np.frombuffer(b"".join(audio for _, audio in frames), dtype=np.int16)
    assert all(len(audio) == FRAME_SAMPLES * 2 for _, audio in frames)
    lead = 2 * FRAME_SAMPLES
    assert not data[:lead].any()
    assert np.array_equal(data[lead : lead + clip.size], clip)
    assert not data[lead + clip.size :].any()


async def test_no_frame_comes_before_it_has_been_spoken() -> None:
    """A frame enters when a microphone would have it whole: never before the instant of its last sample."""
    async with running() as bench:
        playback = bench.source.play(ramp(FRAME_SAMPLES * 5), lead_in_ms=20)
        frames = await bench.ear.until(6)
    begin = playback.start_ns - FRAME_NS
    for index, (at, _) in enumerate(frames):
        assert at >= begin + (index + 1) * FRAME_NS


async def test_a_stall_delays_no_later_frame() -> None:
    """After the loop stood still the frames that were due come at once, and the next one at its instant."""
    async with running() as bench:
        playback = bench.source.play(ramp(FRAME_SAMPLES * 20), lead_in_ms=0)
        await bench.ear.until(2)
        time.sleep(0.15)  # noqa: ASYNC251 - the loop is meant to stand still
        stalled_until = now_ns()
        due = (stalled_until - playback.start_ns) // FRAME_NS
        frames = await bench.ear.until(int(due) + 2)
    first_after = frames[-1][0]
    assert playback.worst_late_ns >= 100 * NS_PER_MS
    # With relative waits it would come after as many periods as were missed.
    assert first_after < stalled_until + 5 * FRAME_NS


async def test_a_stall_in_the_silence_after_a_clip_is_told() -> None:
    """Silence that comes late is told with its instant, and is none of the clip's delay."""
    async with running() as bench:
        playback = bench.source.play(ramp(FRAME_SAMPLES), lead_in_ms=0)
        await bench.ear.until(2)
        time.sleep(0.1)  # noqa: ASYNC251 - the loop is meant to stand still
        await bench.ear.until(4)
    assert playback.worst_late_until(playback.start_ns) == playback.worst_late_ns
    assert playback.worst_late_until(None) == playback.late_silence[-1][1] >= 60 * NS_PER_MS
    assert playback.worst_late_until(now_ns()) == playback.worst_late_until(None)


async def test_a_source_is_silent_between_clips() -> None:
    """After `quiet` no frame comes, and the next clip starts afresh."""
    async with running() as bench:
        bench.source.play(ramp(FRAME_SAMPLES))
        await bench.ear.until(1)
        await bench.source.quiet()
        await bench.source.quiet()
        await asyncio.sleep(0)
        bench.ear.frames.clear()
        clip = ramp(FRAME_SAMPLES)
        bench.source.play(clip, lead_in_ms=0)
        [(_, audio)] = await bench.ear.until(1)
        assert np.array_equal(np.frombuffer(audio, dtype=np.int16), clip)


async def test_two_clips_at_once_are_refused() -> None:
    """A source speaks one clip at a time."""
    async with running() as bench:
        bench.source.play(ramp(FRAME_SAMPLES))
        with pytest.raises(AssertionError, match="one clip at a time"):
            bench.source.play(ramp(FRAME_SAMPLES))


def test_an_instant_of_a_clip_is_exact() -> None:
    """Sample i was spoken i / 16000 s after the start, to the nanosecond."""
    playback = Playback(start_ns=1_000_000_007, samples=16_001)
    assert playback.instant(0) == 1_000_000_007
    assert playback.instant(0.4) == 1_000_000_007 + 400 * NS_PER_MS
    assert playback.end_ns == 1_000_000_007 + NS_PER_S + 62_500


async def test_what_is_said_is_played_sample_for_sample() -> None:
    """The sink's account holds the samples that were handed to it, in order."""
    rate = 24_000
    samples = ramp(rate // 10)
    async with running(rate) as bench:
        await bench.say(samples, rate)
        await bench.until_written(samples.size)
        pieces = [piece for run in bench.sink.played.runs for piece in run.pieces]
    assert np.array_equal(np.concatenate(pieces), samples)


async def test_audio_made_faster_than_real_time_is_played_in_real_time() -> None:
    """Ten seconds of speech that come at once are taken piece by piece, as they sound."""
    rate = 24_000
    async with running(rate) as bench:
        before = now_ns()
        await bench.say(tone(10_000, rate), rate)
        await bench.until_written(rate // 5)
        elapsed = now_ns() - before
        played = bench.sink.played
        # 200 ms of sound are taken at the earliest when all but the buffer of 40 ms has sounded.
        assert elapsed >= (200 - 10 - 40) * NS_PER_MS
        assert played.cursor_ns - now_ns() < 100 * NS_PER_MS
        first = played.first_sound(0)
        assert first is not None
        assert first >= before


async def test_an_interruption_silences_what_had_not_sounded() -> None:
    """After an interruption nothing of the reply sounds any more, and a new one begins a run of its own."""
    rate = 24_000
    async with running(rate) as bench:
        await bench.say(tone(2_000, rate), rate)
        await bench.until_written(rate // 20)
        await bench.worker.queue_frame(InterruptionFrame())
        await bench.until(lambda played: bool(played.runs) and played.runs[-1].closed)
        after = now_ns()
        await bench.say(tone(50, rate), rate)
        await bench.until(
            lambda played: sum(run.count for run in played.runs if not run.closed) >= rate // 20
        )
        played = bench.sink.played
    cut = [run for run in played.runs if run.closed]
    again = [run for run in played.runs if not run.closed]
    assert all(run.end_ns <= after + NS_PER_MS for run in cut)
    assert np.array_equal(np.concatenate([piece for run in again for piece in run.pieces]), tone(50, rate))
    assert again[0].start_ns >= after
    assert played.first_sound(after + NS_PER_MS) == again[0].start_ns


async def test_a_turn_begins_with_nothing_played() -> None:
    """What the turn before played is not in the account of the next one."""
    rate = 16_000
    async with running(rate) as bench:
        await bench.say(tone(20, rate), rate)
        await bench.until_written(rate // 50)
        bench.sink.begin_turn()
        assert bench.sink.played.sounds() == []
