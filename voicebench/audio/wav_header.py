"""WAV headers whose length is not that of the file, as a pipe or a crashed recorder leaves them behind."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO, Literal

Order = Literal["little", "big"]
Trust = Literal["right", "wrong", "trailing"]

_UNKNOWN = 0xFFFF_FFFF
_MAX_CHUNKS = 10_000
_FIXED_SIZE = (1, 3, 6, 7, 0xFFFE)
"""Format tags whose samples have a fixed size: PCM, float, A-law, mu-law, extensible."""


@dataclass(frozen=True)
class WavLength:
    """What the header's length is worth.

    `trust`: `right`; `wrong` (unknown or wrong: the sound goes to the end of the file); `trailing` (right,
    but bytes that belong to nothing follow). Where it is wrong, `patch` is the right length as it should
    stand at the byte `at`. `contradiction` says where the header does not agree with itself on how many bytes
    a frame has, so that nobody can know the sound's speed; empty where it does.
    """

    trust: Trust
    at: int = 0
    patch: bytes = b""
    contradiction: str = ""


def inspect_wav(file: BinaryIO, file_size: int) -> WavLength:
    """Read the chunks of a RIFF, RIFX or RF64 WAVE `file`; what is no such file, or has no data, is `right`.

    RF64 keeps its lengths as 64 bits in a chunk `ds64`; the 32 bits in the data chunk then say "unknown".
    """
    file.seek(0)
    riff = file.read(12)
    if riff[:4] not in (b"RIFF", b"RIFX", b"RF64") or riff[8:12] != b"WAVE":
        return WavLength("right")
    order: Order = "big" if riff[:4] == b"RIFX" else "little"
    riff_end = 8 + int.from_bytes(riff[4:8], order)
    size_at, size_bytes, long_size = 0, 4, 0
    position, contradiction = 12, ""
    for _ in range(_MAX_CHUNKS):
        file.seek(position)
        head = file.read(24)
        if len(head) < 8:
            break
        declared = int.from_bytes(head[4:8], order)
        start = position + 8
        if head[:4] == b"ds64" and len(head) == 24:
            riff_end = 8 + int.from_bytes(head[8:16], order)
            size_at, size_bytes, long_size = position + 16, 8, int.from_bytes(head[16:24], order)
        if head[:4] == b"fmt " and len(head) == 24:
            contradiction = _contradiction(head[8:], order)
        if head[:4] == b"data":
            if size_bytes == 4 or declared != _UNKNOWN:
                size_at, size_bytes, long_size = position + 4, 4, declared
            trust = _trust(file, start, long_size, riff_end, file_size, order)
            left = min(file_size - start, 256**size_bytes - 2)
            return WavLength(trust, size_at, left.to_bytes(size_bytes, order), contradiction)
        position = start + declared + declared % 2
    return WavLength("right")


def _contradiction(fields: bytes, order: Order) -> str:
    """What does not fit in the fields of a format chunk, empty where all can be right.

    It tells the size of a frame as channels x bits, as bytes a frame and by the bytes a second. The first is
    taken where the second is not given or the third agrees with it.
    """
    tag, channels, bytes_a_frame, bits = (int.from_bytes(fields[at : at + 2], order) for at in (0, 2, 12, 14))
    rate, bytes_a_second = (int.from_bytes(fields[at : at + 4], order) for at in (4, 8))
    expected = channels * -(-bits // 8)
    if tag not in _FIXED_SIZE or not expected or bytes_a_frame in (0, expected):
        return ""
    if bytes_a_second == rate * expected:
        return ""
    return f"{channels} x {bits} bits, but {bytes_a_frame} bytes a frame"


def _trust(file: BinaryIO, start: int, declared: int, riff_end: int, file_size: int, order: Order) -> Trust:
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


def _chunks_follow(file: BinaryIO, position: int, file_size: int, order: Order) -> bool:
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
