"""Small files of hours: decoding stops at the bound while it runs, whatever the coding."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voicebench.audio.decode import decode
from voicebench.errors import AudioProblem

SECONDS = 360
"""Of what the lossy ones hold."""


def _by_ffmpeg(path: Path) -> None:
    """Minutes of silence by FFmpeg, in the container that the name says."""
    av = pytest.importorskip("av")
    container, codec = {"m4a": ("mp4", "aac"), "webm": ("webm", "libopus")}[path.suffix[1:]]
    with av.open(str(path), "w", format=container) as file:
        stream = file.add_stream(codec, rate=8_000, layout="mono")
        kind = stream.codec_context.format.name
        silence = np.zeros((1, 80_000), np.float32 if kind in ("flt", "fltp") else np.int16)
        for number in range(SECONDS // 10):
            frame = av.AudioFrame.from_ndarray(silence, format=kind, layout="mono")
            frame.sample_rate, frame.pts = 8_000, number * silence.size
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


@pytest.mark.parametrize("name", ["a.m4a", "a.webm", "a wav by its name.wav"])
def test_a_small_video_file_of_much_sound_is_refused_at_the_bound(tmp_path: Path, name: str) -> None:
    """Minutes of silence in few bytes are refused at the bound as well where FFmpeg decodes them."""
    made = tmp_path / (name if name.endswith(("m4a", "webm")) else "made.m4a")
    _by_ffmpeg(made)
    path = made.rename(tmp_path / name)
    refused_at_the_bounds(path)


@pytest.mark.parametrize(("name", "subtype"), [("a.flac", "PCM_16"), ("a.opus", "OPUS"), ("a.ogg", "VORBIS")])
def test_much_sound_in_a_small_file_is_refused_at_the_bound(tmp_path: Path, name: str, subtype: str) -> None:
    """An hour (lossy: six minutes) of silence in a small file is refused at the bound."""
    path = tmp_path / name
    container = "FLAC" if name == "a.flac" else "OGG"
    with soundfile.SoundFile(path, "w", 8_000, 1, subtype, format=container) as file:
        for _ in range(6 if container == "OGG" else 60):
            file.write(np.zeros(60 * 8_000, np.float32))
    refused_at_the_bounds(path)


def refused_at_the_bounds(path: Path) -> None:
    """Hold that a small file is refused at a bound of seconds and at one of bytes, soon and in words."""
    assert path.stat().st_size < SECONDS * 8_000 * 4 / 30
    for bound in ({"max_seconds": 10.0}, {"max_bytes": 1 << 19}):
        begun = time.process_time()
        with pytest.raises(AudioProblem, match=r"longer than 10 s|more than 0 MiB") as caught:
            decode(path, **bound)
        assert path.name in caught.value.what
        assert caught.value.remedy
        assert time.process_time() - begun < 2.0
