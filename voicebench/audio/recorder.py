"""The stereo recording of a turn: left what the person said, right what was played, on one sample clock.

It is made of samples and the instants at which they sounded. It knows no marks, so it can contradict them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.pcm import resample
from voicebench.audio.played import Played
from voicebench.clock import NS_PER_S
from voicebench.turns.durable import CAREFULLY, FILE_MODE

RATE = 48_000
TAIL_S = 0.2
USER, AGENT = 0, 1


@dataclass(frozen=True)
class Recording:
    """`samples` are float32 of shape (frames, 2): the person, the agent. Frame 0 sounded at `origin_ns`."""

    samples: NDArray[np.float32]
    origin_ns: int
    said: tuple[int, int]
    """First and last frame (exclusive) of the person's clip: around it the channel is silent by construction,
    and the end of a clip's own noise is no end of speech."""
    sample_rate: int = RATE


def record(speech: NDArray[np.int16], speech_rate: int, start_ns: int, played: Played) -> Recording:
    """Put what was said (its first sample at `start_ns`) and what was played on one clock."""
    tracks = [(USER, start_ns, _resampled(speech, speech_rate))]
    for run in played.runs:
        tracks.append((AGENT, run.start_ns, _resampled(np.concatenate(run.pieces), run.sample_rate)))
    origin = min(at for _, at, _ in tracks)
    placed = [(channel, round((at - origin) * RATE / NS_PER_S), audio) for channel, at, audio in tracks]
    length = max(offset + audio.size for _, offset, audio in placed) + round(TAIL_S * RATE)
    samples = np.zeros((length, 2), dtype=np.float32)
    for channel, offset, audio in placed:
        samples[offset : offset + audio.size, channel] += audio
    _, begin, clip = placed[0]
    return Recording(samples, origin, (begin, begin + clip.size))


def _resampled(pcm: NDArray[np.int16], rate: int) -> NDArray[np.float32]:
    return resample(pcm.astype(np.float32) / np.float32(32768.0), rate, RATE)


def write(recording: Recording, path: Path) -> None:
    """Write a FLAC file of 16 bits, private to its owner, whole or not at all. Raises OSError."""
    import soundfile

    temporary = path.with_name(f".{path.name}.part")
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | CAREFULLY, FILE_MODE), "wb"
    ) as file:
        soundfile.write(
            file,
            np.clip(recording.samples, -1.0, 1.0),
            recording.sample_rate,
            format="FLAC",
            subtype="PCM_16",
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
