"""Files that hold no sound, and things that are no files: each with words of why it is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile

from tests.audio.wav_bytes import chunk, fmt, riff
from tests.odd_audio.corpus import DATA, IN_32, by_libsndfile, wav


@dataclass(frozen=True)
class Bad:
    """A file that is refused: its name, what makes it, and words of the reason."""

    name: str
    write: Callable[[Path], object]
    reason: str
    root_too: bool = field(default=True)
    """Is the reason one for the superuser as well?"""


def _linked_pipe(path: Path) -> None:
    """A link to a pipe."""
    os.mkfifo(path.with_suffix(".p"))
    path.symlink_to(path.with_suffix(".p"))


def _unreadable(path: Path) -> None:
    """A recording that nobody may read."""
    by_libsndfile(path)
    path.chmod(0)


def _video_only(path: Path) -> None:
    """Pictures without a sound track."""
    import av

    with av.open(str(path), "w", format="mp4") as file:
        video = file.add_stream("mpeg4", rate=5)
        video.width = video.height = 32
        file.mux(video.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        file.mux(video.encode(None))


def _text(name: str, content: bytes, reason: str) -> Bad:
    """A file of these bytes."""
    return Bad(name, lambda path: path.write_bytes(content), reason)


BAD: tuple[Bad, ...] = (
    _text("empty.wav", b"", "the file is empty"),
    _text("four bytes.wav", b"RIFF", "not an audio file"),
    _text("half a header.wav", riff(fmt(), chunk(b"data", DATA))[:20], "wav"),
    _text("header only.wav", riff(fmt(), chunk(b"data", b"")), "without a single frame"),
    _text("no data.wav", riff(fmt()), "wav"),
    _text("1 hz.wav", riff(fmt(rate=1), chunk(b"data", DATA)), "1 Hz"),
    _text("2 ghz.wav", riff(fmt(rate=2_000_000_000), chunk(b"data", DATA)), "2000000000 Hz"),
    _text("no channels.wav", riff(fmt(channels=0), chunk(b"data", DATA)), "wav"),
    _text("24 bits in 4 bytes.wav", wav(1, 1, 16_000, 4, 24, IN_32), "contradicts itself"),
    _text("24 bits unsaid.wav", wav(1, 1, 16_000, 4, 24, IN_32, a_second=0), "contradicts itself"),
    _text("stereo in 2 bytes.wav", wav(1, 2, 16_000, 2, 16, DATA), "contradicts itself"),
    _text("0 hz.wav", wav(1, 1, 0, 2, 16, DATA), "wav"),
    _text("letter.wav", b"What is the capital of France?\n" * 40, "not an audio file"),
    _text("error page.mp3", b"<!DOCTYPE html><title>404 Not Found</title>", "not an audio file"),
    _text("photo.wav", b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(500), "not an audio file"),
    _text("archive.flac", b"PK\x03\x04" + bytes(500), "not an audio file"),
    _text("zeros.wav", bytes(5_000), "not an audio file"),
    _text("cut tag.mp3", b"ID3\x04\0\0\0\0\0\x10" + bytes(16), "mp3"),
    _text("junk.ogg", b"OggS" + bytes(range(256)), "ogg"),
    _text("junk.flac", b"fLaC" + bytes(200), "flac"),
    _text("junk.m4a", b"\0\0\0\x18ftypM4A " + bytes(100), "mov"),
    _text("junk.webm", b"\x1a\x45\xdf\xa3" + bytes(50), "matroska"),
    _text("playlist.wav", b"#EXTM3U\n#EXTINF:1\n/etc/hostname\n", "not an audio file"),
    _text("pointer.wav", b"version 1\noid sha256:00\nsize 99\n", "not an audio file"),
    Bad("video only.mp4", _video_only, "without a sound track"),
    Bad("nan.wav", lambda path: soundfile.write(path, np.full(800, np.nan), 16_000, "FLOAT"), "NaN"),
    Bad("folder.wav", lambda path: path.mkdir(), "a folder"),
    Bad("pipe.wav", os.mkfifo, "a named pipe"),
    Bad("loop.wav", lambda path: path.symlink_to(path.name), "circle"),
    Bad("nowhere.wav", lambda path: path.symlink_to("gone.wav"), "no such file"),
    Bad("pipe behind a link.wav", _linked_pipe, "a named pipe"),
    Bad("gone.wav", lambda path: None, "no such file"),
    Bad("$(touch x).wav", lambda path: path.write_bytes(b"x"), "not an audio file"),
    Bad("\x1b[2Jclear.wav", lambda path: path.write_bytes(b""), "empty"),
    Bad("unreadable.wav", _unreadable, "no permission", root_too=False),
)
