"""The two libraries that read audio files, behind one face: blocks of float32 frames.

This is the only file that imports soundfile or PyAV, and it does so when a file is opened.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from voicebench.audio.clip import ClipCaveat, Samples
from voicebench.audio.ogg_chain import is_chained
from voicebench.audio.wav_header import Patched, inspect_wav
from voicebench.errors import MissingExtra

BLOCK_FRAMES = 4096
"""Frames asked for at a time; where decoding breaks, what is lost of the sound before is less than this."""
_UNKNOWN_FRAMES = 1 << 62
MAX_CHANNELS = 64


class NotReadable(Exception):
    """A library gives up on a file; the text says why, without the file's name and the final stop."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


class Contradictory(NotReadable):
    """A header that does not agree with itself: what any library makes of it may have the wrong speed."""


class Reader(Protocol):
    """An opened audio file. `announced_frames` is what the header promises, None where it says nothing
    that could be held against the file; `integer`: the coding has a full scale that it cannot exceed."""

    sample_rate: int
    channels: int
    container: str
    codec: str
    integer: bool
    announced_frames: int | None
    caveats: tuple[ClipCaveat, ...]

    def blocks(self) -> Iterator[Samples]:
        """The sound in order, in blocks of (frames, channels). Raises NotReadable where decoding breaks."""
        ...


def sniff(head: bytes) -> str | None:
    """The container by its first bytes (32 are enough), as FFmpeg names its demuxer; None if unknown."""
    if head[4:8] == b"ftyp":
        return "mov"
    if head[:4] in (b"RIFF", b"RIFX", b"RF64") and head[8:12] == b"WAVE":
        return "wav"
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "aiff"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "aac"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "mp3"
    return None


_MAGIC = (
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"ID3", "mp3"),
    (b".snd", "au"),
    (b"caff", "caf"),
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"#!AMR", "amr"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
)
_WITH_DURATION = frozenset({"mov", "matroska"})
"""Containers of PyAV's whose header holds a duration; elsewhere FFmpeg guesses it from the bit rate."""
_ONLY_AV = frozenset({"mov", "matroska", "amr", "asf", "aac"})


@contextmanager
def open_reader(file: BinaryIO, size: int, name: str) -> Iterator[Reader]:
    """Open `file` (`size` bytes) with the library that can read it. `name` is for MissingExtra's text.

    Raises NotReadable for what is not audio or what both libraries give up on.
    """
    file.seek(0)
    kind = sniff(file.read(32))
    refusal: NotReadable | None = None
    if kind not in _ONLY_AV:
        try:
            reader = _SoundfileReader(file, size, kind)
        except Contradictory:
            raise
        except NotReadable as error:
            refusal = error
        else:
            with reader.handle:
                yield reader
            return
    if kind is None:
        raise NotReadable(
            "not an audio file, as far as its content says",
            "Readable are wav, flac, ogg, opus, mp3, aiff, au, and with the extra `av` m4a, mp4, webm, amr.",
        )
    try:
        av = importlib.import_module("av")
    except ImportError:
        if refusal is not None:
            raise refusal from None
        raise MissingExtra("av", "av", f"Reading {name} (a {kind} file)") from None
    file.seek(0)
    with _AvReader.open(av, file, kind, refusal) as av_reader:
        yield av_reader


class _SoundfileReader:
    """libsndfile."""

    def __init__(self, file: BinaryIO, size: int, kind: str | None) -> None:
        import soundfile

        class Straight(soundfile.SoundFile):  # type: ignore[misc]
            """Reads from start to end. The base class seeks after each block, which glitches in mp3."""

            def seekable(self) -> bool:
                return False

        length = inspect_wav(file, size)
        if length.contradiction:
            raise Contradictory(
                f"its wav header contradicts itself ({length.contradiction}): its speed cannot be known",
                "Export it again, or name its coding:  ffmpeg -f s16le -ar RATE -ac CHANNELS -i FILE NEW.wav",
            )
        self.caveats: tuple[ClipCaveat, ...] = ()
        source: Any = file.fileno()
        if length.trust == "wrong":
            self.caveats = ("wav_length",)
            source = Patched(file, length.at, length.patch)
        elif length.trust == "trailing" or (kind == "ogg" and is_chained(file, size)):
            self.caveats = ("trailing_bytes",)
        file.seek(0)
        self._errors = (soundfile.SoundFileError,)
        try:
            self.handle = Straight(source, closefd=False)
        except self._errors as error:
            raise NotReadable(_broken(kind, error)) from error
        self.sample_rate = int(self.handle.samplerate)
        self.channels = int(self.handle.channels)
        self.container = str(self.handle.format)
        self.codec = str(self.handle.subtype)
        self.integer = self.codec not in ("FLOAT", "DOUBLE", "VORBIS", "OPUS", "MPEG_LAYER_III")
        frames = int(self.handle.frames)
        self.announced_frames = frames if 0 < frames < _UNKNOWN_FRAMES else None

    def blocks(self) -> Iterator[Samples]:
        """See Reader."""
        while True:
            try:
                block = self.handle.read(BLOCK_FRAMES, dtype="float32", always_2d=True)
            except self._errors as error:
                raise NotReadable(f"decoding breaks off ({_reason(error)})") from error
            if not len(block):
                return
            yield block


def _reason(error: BaseException) -> str:
    """What libsndfile says, without the descriptor's number and the final stop."""
    return str(getattr(error, "error_string", error)).removeprefix("Error : ").strip().rstrip(".")


def _broken(kind: str | None, error: BaseException) -> str:
    """Why libsndfile did not open a file. It names a missing file where its mp3 decoder finds no sound."""
    what = f"its {kind} data cannot be decoded" if kind else "not an audio file that can be decoded"
    return what if kind == "mp3" else f"{what} ({_reason(error)})"


class _AvFile:
    """`file` for PyAV: FFmpeg is told of an impossible seek, where Python's exception would go to stderr."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.tell = file.read, file.tell
        self._seek = file.seek

    def seek(self, offset: int, whence: int = 0) -> int:
        """As any file's, but -1 where it fails."""
        try:
            return self._seek(offset, whence)
        except (OSError, ValueError, OverflowError):
            return -1


class _AvReader:
    """PyAV: FFmpeg's demuxers and decoders, the demuxer named, so that no playlist can name other files."""

    integer = False

    def __init__(self, av: Any, container: Any, stream: Any, kind: str) -> None:
        self._av, self._container, self._stream = av, container, stream
        context = stream.codec_context
        self.sample_rate = int(context.sample_rate or 0)
        self.channels = len(context.layout.channels) if context.layout else 0
        self.container = kind
        self.codec = str(context.name)
        self.announced_frames = self._announced() if kind in _WITH_DURATION else None
        self.caveats: tuple[ClipCaveat, ...] = ()

    def _announced(self) -> int | None:
        """The duration in the header as frames. The container's own counts only where it is all sound."""
        if self._stream.duration and self._stream.time_base:
            return int(self._stream.duration * self._stream.time_base * self.sample_rate)
        if self._container.duration and len(self._container.streams) == 1:
            return int(self._container.duration * self.sample_rate / 1_000_000)
        return None

    @classmethod
    @contextmanager
    def open(cls, av: Any, file: BinaryIO, kind: str, refusal: NotReadable | None) -> Iterator[_AvReader]:
        """Open `file` as the container `kind`. Raises NotReadable, `refusal` where there was one before."""
        try:
            container = av.open(_AvFile(file), mode="r", format=kind, metadata_errors="replace")
        except Exception as error:  # PyAV lets errors of many kinds out, its own and Python's
            raise refusal or NotReadable(f"its {kind} header is broken ({_av_reason(error)})") from error
        with container:
            if not container.streams.audio:
                raise NotReadable(f"a {kind} file without a sound track")
            if container.streams.audio[0].codec_context is None:
                raise refusal or NotReadable(f"a {kind} file whose sound is in an unknown coding")
            reader = cls(av, container, container.streams.audio[0], kind)
            if not 0 < reader.channels <= MAX_CHANNELS:
                raise refusal or NotReadable(f"a {kind} file whose header gives {reader.channels} channels")
            yield reader

    def blocks(self) -> Iterator[Samples]:
        """See Reader."""
        try:
            # One sample format, rate and layout throughout, whatever the stream changes to on its way.
            # Interleaved: PyAV miscounts the planes of planar frames with many channels.
            to_float = self._av.AudioResampler(
                format="flt", layout=self._stream.codec_context.layout.name, rate=self.sample_rate
            )
            for frame in self._container.decode(self._stream):
                for even in to_float.resample(frame):
                    yield self._frames(even)
            for even in to_float.resample(None):
                yield self._frames(even)
        except NotReadable:
            raise
        except Exception as error:  # as above
            raise NotReadable(f"decoding breaks off ({_av_reason(error)})") from error

    def _frames(self, frame: Any) -> Samples:
        """An interleaved float frame of PyAV as (frames, channels)."""
        found = int(frame.layout.nb_channels)
        if found != self.channels:
            raise NotReadable(f"{self.channels} channels in its header, {found} in its sound")
        return cast(Samples, np.array(frame.to_ndarray(), dtype=np.float32).reshape(-1, found))


def _av_reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error).strip().rstrip(".")
