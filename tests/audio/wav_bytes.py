"""WAV files byte by byte, for headers that no library would write."""

from __future__ import annotations

import struct

import numpy as np

from tests.audio.signals import Signal

PCM = 1


def chunk(name: bytes, content: bytes, size: int | None = None, order: str = "<") -> bytes:
    """A chunk whose size field says `size`, None for the truth."""
    padding = b"\0" if len(content) % 2 and size is None else b""
    return name + struct.pack(f"{order}I", len(content) if size is None else size) + content + padding


def fmt(rate: int = 16000, channels: int = 1, order: str = "<") -> bytes:
    """A chunk that announces 16-bit PCM."""
    return chunk(
        b"fmt ",
        struct.pack(f"{order}HHIIHH", PCM, channels, rate, rate * channels * 2, channels * 2, 16),
        order=order,
    )


def riff(*chunks: bytes, size: int | None = None, name: bytes = b"RIFF") -> bytes:
    """A WAVE file of these chunks; its own size field says `size`, None for the truth."""
    body = b"WAVE" + b"".join(chunks)
    order = ">" if name == b"RIFX" else "<"
    return name + struct.pack(f"{order}I", len(body) if size is None else size) + body


def pcm(sound: Signal, order: str = "<") -> bytes:
    """16-bit samples."""
    return np.rint(sound * 32767).astype(f"{order}i2").tobytes()
