"""Odd recordings, made file by file: each holds a tone at a known place."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from tests.audio.wav_bytes import chunk, fmt, pcm, riff

HERTZ = 440.0
ONSET_S, END_S, SECONDS = 0.2, 0.7, 1.0
"""Where the tone begins and ends, and how long the recording is."""

Sound = NDArray[np.float32]


def question(rate: int, seconds: float = SECONDS, level: float = 0.5) -> Sound:
    """Silence, half a second of tone, silence."""
    time = np.arange(round(seconds * rate)) / rate
    wave = level * np.sin(2 * np.pi * HERTZ * time)
    return np.where((time >= ONSET_S) & (time < END_S), wave, 0.0).astype(np.float32)


@dataclass(frozen=True)
class Good:
    """A file that is read: its name, what writes it, and what is to be found in it."""

    name: str
    write: Callable[[Path], object]
    rate: int = 16_000
    channels: int = 1
    seconds: float = SECONDS
    caveats: tuple[str, ...] | None = ()
    """None: any."""
    prepared: tuple[str, ...] = ()
    """Caveats that come with its preparation for the pipeline."""
    slack_s: float = 0.01
    """By how much its length may differ: lossy formats add what fills their last frame."""


def by_libsndfile(
    path: Path,
    *,
    rate: int = 16_000,
    channels: int = 1,
    format: str = "WAV",
    subtype: str = "PCM_16",
    endian: str | None = None,
    change: Callable[[Sound], Sound] = lambda sound: sound,
) -> None:
    """By libsndfile, the same sound in all channels; `change` takes and gives (frames, channels)."""
    sound = change(np.stack([question(rate)] * channels, axis=1))
    soundfile.write(path, sound, rate, format=format, subtype=subtype, endian=endian)


def _by(name: str, rate: int = 16_000, channels: int = 1, **more: Any) -> Good:
    """A file that libsndfile writes; what is no argument of `by_libsndfile` describes it."""
    told = {key: more.pop(key) for key in ("seconds", "caveats", "prepared", "slack_s") if key in more}
    return Good(name, partial(by_libsndfile, rate=rate, channels=channels, **more), rate, channels, **told)


def _raw(name: str, content: bytes, **more: Any) -> Good:
    """A file of these bytes."""
    return Good(name, lambda path: path.write_bytes(content), **more)


def _av(
    path: Path, *, container: str, codec: str, rate: int = 48_000, picture: bool = False, **options: str
) -> None:
    """By FFmpeg; with a `picture`, a video stream comes first."""
    import av

    with av.open(str(path), "w", format=container, options=options) as file:
        stream = file.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        stream.bit_rate = 96_000
        if picture:
            video = file.add_stream("mpeg4", rate=5)
            video.width = video.height = 32
            for number in range(5):
                image = av.VideoFrame.from_ndarray(np.full((32, 32, 3), number, np.uint8), format="rgb24")
                file.mux(video.encode(image))
            file.mux(video.encode(None))
        kind = stream.codec_context.format.name
        sound = question(rate)
        data = sound if kind in ("flt", "fltp") else (sound * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(data[np.newaxis], format=kind, layout="mono")
        frame.sample_rate, frame.pts = rate, 0
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _mp3_with_tags(path: Path) -> None:
    """An ID3v2 tag with a cover of 40 kB in front, an ID3v1 tag behind."""
    by_libsndfile(path, rate=44_100, format="MP3", subtype="MPEG_LAYER_III")
    cover = b"\0image/jpeg\0\x03\0\xff\xd8\xff" + bytes(40_000)
    body = b"APIC" + struct.pack(">IH", len(cover), 0) + cover
    size = bytes(len(body) >> shift & 0x7F for shift in (21, 14, 7, 0))
    path.write_bytes(b"ID3\x03\0\0" + size + body + path.read_bytes() + b"TAG" + bytes(125))


def _half(path: Path, **more: Any) -> None:
    """The first three quarters of a file: its header promises more."""
    by_libsndfile(path, **more)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4 + 1])


def _ten_minutes(path: Path) -> None:
    """Ten minutes of silence with the tone at their beginning."""
    sound = np.zeros(600 * 8_000, np.float32)
    sound[:8_000] = question(8_000)
    soundfile.write(path, sound, 8_000, format="FLAC")


def _tagged_flac(path: Path) -> None:
    """An ID3v2 tag in front, as some taggers write it before any format."""
    by_libsndfile(path, format="FLAC")
    path.write_bytes(b"ID3\x03\0\0\0\0\x10\0" + bytes(2048) + path.read_bytes())


def _piped_flac(path: Path) -> None:
    """The number of samples in its header is 0: not known when it was written."""
    by_libsndfile(path, format="FLAC")
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    path.write_bytes(data)


def wav(
    tag: int,
    channels: int,
    rate: int,
    a_frame: int,
    bits: int,
    data: bytes,
    *,
    valid: int | None = None,
    a_second: int | None = None,
) -> bytes:
    """A WAV file with these fields in its format chunk, right or not."""
    speed = rate * a_frame if a_second is None else a_second
    fields = struct.pack("<HHIIHH", tag, channels, rate, speed, a_frame, bits)
    if valid is not None:
        fields += struct.pack("<HHI", 22, valid, 4) + b"\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    return riff(chunk(b"fmt ", fields), chunk(b"data", data))


def _two_in_one(path: Path) -> None:
    """Two Ogg recordings, one behind the other."""
    by_libsndfile(path, format="OGG", subtype="VORBIS")
    first = path.read_bytes()
    # Another serial number for its pages: libsndfile draws it at random.
    by_libsndfile(path, format="OGG", subtype="VORBIS")
    path.write_bytes(first + path.read_bytes())


def _linked(path: Path) -> None:
    """A link to a recording."""
    by_libsndfile(path.with_suffix(".hidden"))
    path.symlink_to(path.with_suffix(".hidden"))


def _opposed(sound: Sound) -> Sound:
    """Every other channel the negative of its neighbour."""
    return sound * np.where(np.arange(sound.shape[1]) % 2, np.float32(-1), np.float32(1))


def _only(channel: int, sound: Sound) -> Sound:
    """Sound in one channel, silence in all others."""
    alone = np.zeros_like(sound)
    alone[:, channel] = sound[:, channel]
    return alone


DATA = pcm(question(16_000))
IN_32 = ((question(16_000) * 8_388_607).astype("<i4") << 8).tobytes()
"""24-bit samples in the upper bytes of 32."""
_CODINGS = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
_RATES = (8_000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000)
_BLOCKS: dict[str, Any] = {"slack_s": 0.07, "caveats": None}
"""Of codings in blocks, whose last one is filled up."""
_LOSSY: dict[str, Any] = {"slack_s": 0.1, "caveats": None}

GOOD: tuple[Good, ...] = (
    *(_by(f"{coding.lower()}.wav", subtype=coding) for coding in _CODINGS),
    *(_by(f"{coding.lower()}.wav", 8_000, subtype=coding, **_BLOCKS) for coding in ("IMA_ADPCM", "MS_ADPCM")),
    *(_by(f"{coding.lower()}.wav", 8_000, subtype=coding, **_BLOCKS) for coding in ("GSM610", "G721_32")),
    *(
        _by(f"extensible {coding.lower()}.wav", 48_000, 2, format="WAVEX", subtype=coding)
        for coding in _CODINGS
    ),
    *(_by(f"{rate} hz.wav", rate, subtype="PCM_16") for rate in _RATES),
    *(_by(f"{channels} channels.wav", 48_000, channels) for channels in (2, 3, 4, 5, 6)),
    *(_by(f"{channels} channels.flac", 44_100, channels, format="FLAC") for channels in (2, 3, 6)),
    _by("rf64.wav", format="RF64"),
    _by("rf64 6 channels.wav", 48_000, 6, format="RF64", subtype="PCM_24"),
    _by("big-endian.wav", endian="BIG"),
    _by("w64.wav", format="W64"),
    _by("aiff s8.aiff", format="AIFF", subtype="PCM_S8"),
    _by("aiff s24.aif", 96_000, 2, format="AIFF", subtype="PCM_24"),
    _by("aifc little-endian.aiff", format="AIFF", endian="LITTLE"),
    _by("aifc float.aiff", 48_000, format="AIFF", subtype="FLOAT"),
    _by("aifc mu-law.aiff", 8_000, format="AIFF", subtype="ULAW"),
    _by("flac 24.flac", 96_000, format="FLAC", subtype="PCM_24"),
    _by("au mu-law.au", 8_000, format="AU", subtype="ULAW"),
    _by("alac.wav", 44_100, format="CAF", subtype="ALAC_16"),
    _by("vorbis.ogg", 44_100, 2, format="OGG", subtype="VORBIS", **_LOSSY),
    _by("opus.opus", 48_000, format="OGG", subtype="OPUS", **_LOSSY),
    _by("opus narrow.ogg", 8_000, format="OGG", subtype="OPUS", **_LOSSY),
    _by("plain.mp3", 22_050, format="MP3", subtype="MPEG_LAYER_III", **_LOSSY),
    Good("tags.mp3", _mp3_with_tags, 44_100, **_LOSSY),
    Good("aac.m4a", partial(_av, container="mp4", codec="aac", rate=44_100), 44_100, **_LOSSY),
    Good("faststart.m4a", partial(_av, container="mp4", codec="aac", movflags="faststart"), 48_000, **_LOSSY),
    Good("picture.mp4", partial(_av, container="mp4", codec="aac", picture=True), 48_000, **_LOSSY),
    Good("streamed.aac", partial(_av, container="adts", codec="aac"), 48_000, **_LOSSY),
    Good("webm.webm", partial(_av, container="webm", codec="libopus"), 48_000, **_LOSSY),
    Good("flac in.ogg", partial(_av, container="ogg", codec="flac", rate=16_000)),
    Good("pcm in.mp4", partial(_av, container="mov", codec="pcm_s16le", rate=16_000)),
    Good("no duration.webm", partial(_av, container="webm", codec="libopus", live="1"), 48_000, **_LOSSY),
    Good("wma.wma", partial(_av, container="asf", codec="wmav2", rate=44_100), 44_100, **_LOSSY),
    _by("an mp3 named.wav", 44_100, format="MP3", subtype="MPEG_LAYER_III", **_LOSSY),
    _by("a flac named.mp3", format="FLAC"),
    Good("a webm named.wav", partial(_av, container="webm", codec="libopus"), 48_000, **_LOSSY),
    _by("an ogg named.flac", 44_100, format="OGG", subtype="VORBIS", **_LOSSY),
    _raw(
        "unknown length.wav",
        riff(fmt(), chunk(b"data", DATA, 0xFFFF_FFFF), size=0xFFFF_FFFF),
        caveats=("wav_length",),
    ),
    _raw("length 0.wav", riff(fmt(), chunk(b"data", DATA, 0), size=0), caveats=("wav_length",)),
    _raw("twice the length.wav", riff(fmt(), chunk(b"data", DATA, 2 * len(DATA))), caveats=("wav_length",)),
    _raw("half the length.wav", riff(fmt(), chunk(b"data", DATA, len(DATA) // 2)), caveats=("wav_length",)),
    _raw("chunks before.wav", riff(fmt(), chunk(b"LIST", b"INFOISFT\4\0\0\0voic"), chunk(b"data", DATA))),
    _raw("half a sample more.wav", riff(fmt(), chunk(b"data", DATA)) + b"\x11", caveats=None),
    _raw(
        "piped.au",
        b".snd" + struct.pack(">IIIII", 24, 0xFFFF_FFFF, 3, 16_000, 1) + pcm(question(16_000), ">"),
    ),
    _raw("24 bits in 32.wav", wav(0xFFFE, 1, 16_000, 4, 32, IN_32, valid=24)),
    _raw("12 bits in 16.wav", wav(1, 1, 16_000, 2, 12, DATA)),
    _raw("no block size.wav", wav(1, 1, 16_000, 0, 16, DATA)),
    _raw("a wrong block size.wav", wav(1, 1, 16_000, 7, 16, DATA, a_second=32_000)),
    Good("a tag before.flac", _tagged_flac),
    Good("piped.flac", _piped_flac),
    Good("two recordings.ogg", _two_in_one, caveats=("trailing_bytes",), slack_s=0.1),
    Good("truncated.wav", _half, seconds=0.75, caveats=("wav_length",)),
    Good("truncated.flac", partial(_half, format="FLAC"), caveats=("cut_short",), slack_s=0.5),
    Good("truncated.mp3", partial(_half, format="MP3", subtype="MPEG_LAYER_III"), caveats=None, slack_s=0.5),
    _by("anti-phase.wav", 16_000, 2, change=_opposed, caveats=("antiphase",)),
    _by("anti-phase 4 channels.flac", 48_000, 4, format="FLAC", change=_opposed, caveats=("antiphase",)),
    _by("right only.wav", 44_100, 2, change=partial(_only, 1), caveats=("one_channel",)),
    _by("centre only.wav", 48_000, 6, change=partial(_only, 2), caveats=("one_channel",)),
    _by("dc offset.wav", change=lambda sound: sound + np.float32(0.2), prepared=("dc_offset",)),
    _by(
        "dc offset below.flac",
        8_000,
        2,
        format="FLAC",
        change=lambda sound: sound - np.float32(0.1),
        prepared=("dc_offset",),
    ),
    _by("clipped.wav", change=lambda sound: np.clip(sound * 8, -1, 1), caveats=("clipped",)),
    _by(
        "beyond full scale.wav", subtype="FLOAT", change=lambda sound: sound * 4, caveats=("over_full_scale",)
    ),
    Good("ten minutes.flac", _ten_minutes, 8_000, seconds=600.0),
    *(
        _by(name, format="WAV")
        for name in ("-i", "$(x).wav", "a;b.wav", "☃ é.wav", "new\nline.wav", "\x1b[31mred.wav", "a'\"`.wav")
    ),
    Good("linked.wav", _linked),
)
