"""The front door for audio files: `decode` reads any of them, or refuses it by name.

What a file is, its content says; its name is never asked. libsndfile (through soundfile) reads wav, flac,
ogg, opus, mp3, aiff, au and other plain formats; PyAV (the extra `av`) reads m4a, mp4, webm, amr and what
libsndfile gives up on.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from voicebench.audio.clip import Clip, ClipCaveat, Samples
from voicebench.audio.names import printable
from voicebench.audio.pcm import RATES_HZ, downmix, mono, resample, to_pcm16
from voicebench.audio.readers import NotReadable, Reader, open_reader
from voicebench.errors import AudioProblem

__all__ = ["Clip", "ClipCaveat", "decode", "mono", "resample", "to_pcm16"]

MAX_SECONDS = 1800.0
MAX_BYTES = 1 << 30
_ANEW = "Record or export it again."
_CONVERT = (
    "Check that a player plays it. If one does, convert it, for example with:  ffmpeg -i FILE -ac 1 NEW.wav"
)
_FULL_SCALE = 0.9999
_CLIPPED_RUN = 4
_NO_FILE = "Name a file that holds a recording; what a pipe or a device gives must be saved to one first."
_SPECIAL = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def decode(path: Path | str, *, max_seconds: float = MAX_SECONDS, max_bytes: int = MAX_BYTES) -> Clip:
    """Read the sound of the file at `path`.

    `max_bytes` bounds the file on disk and, while decoding runs, the decoded float32 samples; `max_seconds`
    bounds their duration. Nothing is opened but a regular file, so that a pipe or a device cannot block.
    What is odd but readable is told by `Clip.caveats`; NaN and infinite samples become 0.

    Raises AudioProblem, naming the file and the reason, where it is no regular file, absent, unreadable,
    empty, not audio, without a single frame, without a single finite sample, of an impossible sample rate,
    or beyond a bound; MissingExtra where only PyAV could read it and is not installed.
    """
    path = Path(path)
    name = printable(path)
    with _open_regular(path, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise AudioProblem(f"{name}: the file is empty.", _ANEW)
        if size > max_bytes:
            raise _too_big(name, max_bytes)
        try:
            with open_reader(file, size, name) as reader:
                return _collect(reader, path, name, max_seconds, max_bytes)
        except NotReadable as error:
            raise AudioProblem(f"{name}: {error}.", error.remedy or _CONVERT) from error


def _open_regular(path: Path, name: str) -> BinaryIO:
    """Open `path` for reading if it is a regular file, looking before and after."""
    try:
        _refuse_special(os.stat(path), name)
        # Should the file be replaced by a pipe in between, O_NONBLOCK keeps the call from waiting.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        why, remedy = _why(error)
        raise AudioProblem(f"{name}: {why}.", remedy) from error
    try:
        _refuse_special(os.fstat(descriptor), name)
    except AudioProblem:
        os.close(descriptor)
        raise
    # Unbuffered: libsndfile reads from the same descriptor, and a buffer would have moved its position.
    return cast(BinaryIO, os.fdopen(descriptor, "rb", buffering=0))


def _refuse_special(status: os.stat_result, name: str) -> None:
    """Raise AudioProblem for anything but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "something special")
        raise AudioProblem(f"{name}: this is {kind}, not a regular file.", _NO_FILE)


def _why(error: OSError | ValueError) -> tuple[str, str]:
    """The reason in words why a file could not be opened, and what to do."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file", "Check the path; a link must lead to a file that exists."
    if isinstance(error, PermissionError):
        return "no permission to read it", "Have its owner allow you to read it (chmod, chown)."
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "its symbolic links go round in a circle", "Remove them, or name the recording itself."
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be opened ({error.strerror})", "Check the path."
    return f"it cannot be opened ({error})", "Check the path."


def _too_big(name: str, max_bytes: int) -> AudioProblem:
    return AudioProblem(
        f"{name}: more than {max_bytes / 2**20:,.0f} MiB, on disk or decoded.",
        "Cut it into shorter files, or take the sound out of a video first.",
    )


def _collect(reader: Reader, path: Path, name: str, max_seconds: float, max_bytes: int) -> Clip:
    """Take block after block from `reader`, within the bounds, and look each one over."""
    rate, channels = reader.sample_rate, reader.channels
    if not RATES_HZ[0] <= rate <= RATES_HZ[1]:
        raise AudioProblem(
            f"{name}: its header gives a sample rate of {rate} Hz, which no recording has.",
            "Export it again at the rate at which it was recorded.",
        )
    caveats: list[ClipCaveat] = list(reader.caveats)
    max_frames = int(max_seconds * rate)
    gathered = _Gathered(channels, min(reader.announced_frames or 0, max_frames, max_bytes // (4 * channels)))
    finite = 0
    for block in _until_broken(reader, caveats):
        if gathered.frames + len(block) > max_frames:
            raise AudioProblem(
                f"{name}: longer than {max_seconds:g} s.", "Cut it into shorter files: one turn each is best."
            )
        if (gathered.frames + len(block)) * 4 * channels > max_bytes:
            raise _too_big(name, max_bytes)
        finite += _look_over(block, reader.integer, caveats)
        gathered.add(block)
    samples = gathered.samples()
    if not len(samples):
        raise AudioProblem(f"{name}: {reader.container} audio without a single frame of sound.", _ANEW)
    if not finite:
        raise AudioProblem(f"{name}: every sample is NaN or infinite.", _ANEW)
    # Lossy formats announce their length roughly, by a few of their own frames.
    allowance = 0 if reader.integer else rate // 10
    if reader.announced_frames and len(samples) + allowance < reader.announced_frames:
        caveats.append("cut_short")
    reason = downmix(samples).reason
    if reason:
        caveats.append(reason)
    return Clip(samples, rate, path, reader.container, reader.codec, tuple(dict.fromkeys(caveats)))


def _until_broken(reader: Reader, caveats: list[ClipCaveat]) -> Iterator[Samples]:
    """The reader's blocks; `cut_short` where decoding breaks off after the first one."""
    started = False
    try:
        for block in reader.blocks():
            started = started or len(block) > 0
            yield block
    except NotReadable:
        if not started:
            raise
        caveats.append("cut_short")


def _look_over(block: Samples, integer: bool, caveats: list[ClipCaveat]) -> int:
    """Set non-finite samples of `block` to 0, note what is odd; the number of finite samples."""
    good = np.isfinite(block)
    finite = int(np.count_nonzero(good))
    if finite < block.size:
        block[~good] = 0.0
        caveats.append("non_finite")
    magnitude = np.abs(block)
    if magnitude.size and float(magnitude.max()) > 1.0:
        caveats.append("over_full_scale")
    if integer and _has_run(magnitude >= _FULL_SCALE):
        caveats.append("clipped")
    return finite


def _has_run(full: np.ndarray) -> bool:
    """Are there `_CLIPPED_RUN` frames in a row, in any channel, at which `full` (frames, channels) holds?"""
    count = len(full) - _CLIPPED_RUN + 1
    if count < 1 or not full.any():
        return False
    run = full[:count].copy()
    for shift in range(1, _CLIPPED_RUN):
        run &= full[shift : shift + count]
    return bool(run.any())


class _Gathered:
    """Blocks put together in one array that grows in place: one copy in memory, not two."""

    def __init__(self, channels: int, expected_frames: int) -> None:
        self._array = np.empty((expected_frames, channels), dtype=np.float32)
        self.frames = 0

    def add(self, block: Samples) -> None:
        """Append `block` (frames, channels)."""
        end = self.frames + len(block)
        if end > len(self._array):
            # No view of the array exists outside this class before `samples` is called.
            self._array.resize((max(end, 2 * len(self._array)), self._array.shape[1]), refcheck=False)
        self._array[self.frames : end] = block
        self.frames = end

    def samples(self) -> Samples:
        """All of it. Nothing may be added afterwards."""
        self._array.resize((self.frames, self._array.shape[1]), refcheck=False)
        return self._array
