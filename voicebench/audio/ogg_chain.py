"""Ogg files of several recordings one after the other, as radio streams and `cat` make them."""

from __future__ import annotations

from typing import BinaryIO

_PAGE = b"OggS"
_HEAD = 27
_FIRST = 2
"""Of the flags: this page begins a stream."""
_LONGEST_PAGE = _HEAD + 255 + 255 * 255


def is_chained(file: BinaryIO, size: int) -> bool:
    """Does another recording follow the first one? Then libsndfile reads the first alone.

    The streams of one recording, sound and pictures, all begin in its first pages: the last page of the file
    belongs to one of them, or to a recording that follows.
    """
    begun, position = set(), 0
    while True:
        file.seek(position)
        head = file.read(_HEAD)
        if len(head) < _HEAD or head[:4] != _PAGE or not head[5] & _FIRST:
            break
        begun.add(head[14:18])
        sizes = file.read(head[26])
        position += _HEAD + len(sizes) + sum(sizes)
    file.seek(max(0, size - _LONGEST_PAGE))
    tail = file.read(_LONGEST_PAGE)
    last = tail.rfind(_PAGE)
    serial = tail[last + 14 : last + 18]
    return bool(begun) and last >= 0 and len(serial) == 4 and serial not in begun
