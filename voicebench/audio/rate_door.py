"""What every model stands behind: audio comes in at the rate it works on, whatever rate it was made at.

A model is given plain samples and takes them for its own rate: telephone speech at 8 kHz would be heard at
double speed.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.pcm import RATES_HZ, to_pcm16
from voicebench.audio.streaming_rate import RateConverter
from voicebench.errors import AudioProblem

AudioFrame = TypeVar("AudioFrame")


class RateDoor:
    """Lets 16-bit audio pass at `rate` Hz in one channel: other rates are converted, channels are mixed.

    Converting holds back the converter's `delay_s`, 2 ms at 8 kHz. One door serves one stream.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._converter: RateConverter | None = None

    def admit(self, frame: AudioFrame) -> AudioFrame:
        """A pipecat frame of raw audio at the door's rate: itself where it has that already, else a copy.

        Raises AudioProblem for a rate or a number of channels that no sound has.
        """
        given: Any = frame
        if given.sample_rate == self.rate and given.num_channels == 1:
            return frame
        admitted: Any = copy.copy(given)
        admitted.audio = self.convert(given.audio, given.sample_rate, given.num_channels)
        admitted.sample_rate, admitted.num_channels = self.rate, 1
        admitted.num_frames = len(admitted.audio) // 2
        passed: AudioFrame = admitted
        return passed

    def convert(self, audio: bytes, sample_rate: int, channels: int) -> bytes:
        """The next piece of a stream of 16-bit PCM at `sample_rate` Hz, as it passes. Raises as `admit`."""
        if not RATES_HZ[0] <= sample_rate <= RATES_HZ[1] or channels < 1:
            raise AudioProblem(
                f"Audio of {channels} channels at {sample_rate} Hz came in: no sound has that.",
                "Let the audio source state the rate and the channels that its samples have.",
            )
        if self._converter is None or self._converter.from_rate != sample_rate:
            self._converter = RateConverter(sample_rate, self.rate)
        return to_pcm16(self._converter.push(_mean(audio, channels)))


def hold_rate(source: Any, rate: int) -> None:
    """Let every input frame that the pipecat processor `source` gives pass a door of `rate` Hz.

    All behind it (ASR, voice activity detection, turn detection) get their samples at the pipeline's rate.
    """
    from pipecat.frames.frames import InputAudioRawFrame

    door, push = RateDoor(rate), source.push_frame

    async def admitted(frame: Any, *more: Any, **named: Any) -> None:
        if isinstance(frame, InputAudioRawFrame):
            frame = door.admit(frame)
        await push(frame, *more, **named)

    source.push_frame = admitted


def one_channel(frame: AudioFrame) -> AudioFrame:
    """A pipecat frame of raw 16-bit audio in one channel: itself where it has one, else a copy with the mean.

    A sink that took several channels for one would play them that many times slower.
    """
    given: Any = frame
    if given.num_channels == 1:
        return frame
    mixed: Any = copy.copy(given)
    mixed.audio = to_pcm16(_mean(given.audio, given.num_channels))
    mixed.num_channels, mixed.num_frames = 1, len(mixed.audio) // 2
    passed: AudioFrame = mixed
    return passed


def _mean(audio: bytes, channels: int) -> NDArray[np.float32]:
    """16-bit PCM as one channel, +-1.0; a last frame that is not whole is left out."""
    frames = len(audio) // (2 * channels)
    whole = np.frombuffer(audio, dtype=np.int16, count=frames * channels).reshape(-1, channels)
    mean: NDArray[np.float32] = whole.astype(np.float32).mean(axis=1, dtype=np.float32) / np.float32(32768.0)
    return mean
