"""WAV headers whose length is not that of the file, as a pipe or a crashed recorder leaves them behind."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO, Literal

_LARGEST = 0xFFFF_FFFE
_MAX_CHUNKS = 10_000


@dataclass(frozen=True)
class WavLength:
    """What the header's length is worth.

    `trust`: `right`; `wrong` (unknown or wrong: the sound goes to the end of the file); `trailing` (right,
    but bytes that belong to nothing follow). `size_at` is where the data chunk's size stands in the file,
    `size` what it should say; `order` is the header's byte order.
    """

    trust: Literal["right", "wrong", "trailing"]
    size_at: int = 0
    size: int = 0
    order: Literal["little", "big"] = "little"


def inspect_wav(file: BinaryIO, file_size: int) -> WavLength:
    """Read the chunks of a RIFF or RIFX WAVE `file`; what is no such file, or has no data, is `right`."""
    file.seek(0)
    riff = file.read(12)
    if riff[:4] not in (b"RIFF", b"RIFX") or riff[8:12] != b"WAVE":
        return WavLength("right")
    order: Literal["little", "big"] = "little" if riff[:4] == b"RIFF" else "big"
    riff_end = 8 + int.from_bytes(riff[4:8], order)
    position = 12
    for _ in range(_MAX_CHUNKS):
        file.seek(position)
        head = file.read(8)
        if len(head) < 8:
            break
        declared = int.from_bytes(head[4:8], order)
        start = position + 8
        if head[:4] == b"data":
            trust = _trust(file, start, declared, riff_end, file_size, order)
            return WavLength(trust, position + 4, min(file_size - start, _LARGEST), order)
        position = start + declared + declared % 2
    return WavLength("right")


def _trust(
    file: BinaryIO, start: int, declared: int, riff_end: int, file_size: int, order: Literal["little", "big"]
) -> Literal["right", "wrong", "trailing"]:
    """Hold the declared length of the data chunk, which begins at `start`, against what follows it."""
    left = file_size - start
    if declared > left:
        return "wrong"
    after = start + declared + declared % 2
    if after >= file_size or _chunks_follow(file, after, file_size, order):
        return "right"
    if declared == 0 or riff_end >= file_size:
        return "wrong"
    return "trailing"


def _chunks_follow(file: BinaryIO, position: int, file_size: int, order: Literal["little", "big"]) -> bool:
    """Do the bytes from `position` on look like a further chunk or a tag, and not like sound?"""
    file.seek(position)
    head = file.read(8)
    if head[:3] in (b"TAG", b"ID3") or head == b"APETAGEX":
        return True
    if len(head) < 8 or not all(0x20 <= byte < 0x7F for byte in head[:4]):
        return False
    return position + 8 + int.from_bytes(head[4:8], order) <= file_size


class Patched(io.RawIOBase):
    """A readable file in which `patch` stands at the byte `at`, whatever the disk says. `file` stays open."""

    def __init__(self, file: BinaryIO, at: int, patch: bytes) -> None:
        super().__init__()
        self._file, self._at, self._patch = file, at, patch
        file.seek(0)

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As any file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As any file."""
        return self._file.tell()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """As any file, with the patch laid over it."""
        start = self._file.tell()
        data = bytearray(self._file.read(len(buffer)))
        first, last = max(start, self._at), min(start + len(data), self._at + len(self._patch))
        if first < last:
            data[first - start : last - start] = self._patch[first - self._at : last - self._at]
        buffer[: len(data)] = data
        return len(data)
