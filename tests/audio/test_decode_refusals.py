"""The front door for audio files: what is refused, and in which words."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.audio.signals import burst
from tests.audio.wav_bytes import chunk, fmt, pcm, riff
from voicebench.audio.decode import decode
from voicebench.errors import AudioProblem

ID3_ONLY = b"ID3\x04\0\0\0\0\0\x10" + bytes(16)

REFUSED = {
    "empty": (b"", "empty"),
    "text": (b"What is the capital of France?\n", "not an audio file"),
    "zeros": (bytes(5000), "not an audio file"),
    "a header without sound": (riff(fmt(), chunk(b"data", b"")), "without a single frame"),
    "a header without sound but with tags": (
        riff(fmt(), chunk(b"data", b""), chunk(b"LIST", b"INFO")),
        "without a single frame",
    ),
    "half a header": (riff(fmt())[:20], "wav"),
    "a cut mp3 tag": (ID3_ONLY, "mp3"),
    "an ogg page of junk": (b"OggS" + bytes(range(256)), "ogg"),
    "a rate of 1 Hz": (riff(fmt(rate=1), chunk(b"data", pcm(burst()))), "1 Hz"),
    "a rate of 2 GHz": (riff(fmt(rate=2_000_000_000), chunk(b"data", pcm(burst()))), "2000000000 Hz"),
    "a playlist": (b"#EXTM3U\n#EXTINF:1\n/etc/hostname\n", "not an audio file"),
    "a list of files": (b"ffconcat version 1.0\nfile other.wav\n", "not an audio file"),
    "a video without sound": (b"\x1a\x45\xdf\xa3" + bytes(50), "matroska"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_holds_no_sound_is_refused_by_name(tmp_path: Path, case: str) -> None:
    """The error names the file and the reason, and is one that a person can read."""
    content, reason = REFUSED[case]
    path = tmp_path / "clip ☃.wav"
    path.write_bytes(content)
    with pytest.raises(AudioProblem) as caught:
        decode(path)
    assert "clip ☃.wav" in caught.value.what
    assert reason in caught.value.what


def test_only_nan_is_refused(tmp_path: Path) -> None:
    """A file in which no sample is a number holds no sound."""
    soundfile.write(tmp_path / "a.wav", np.full(800, np.nan), 16000, subtype="FLOAT")
    with pytest.raises(AudioProblem, match="NaN"):
        decode(tmp_path / "a.wav")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A missing file, a path through a file, a broken link and a circle of links each say what they are."""
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for name, reason in [
        ("gone.wav", "no such file"),
        ("file/a.wav", "cannot be opened"),
        ("broken", "no such file"),
        ("circle", "circle"),
        ("nul\0.wav", "cannot be opened"),
    ]:
        with pytest.raises(AudioProblem, match=reason):
            decode(tmp_path / name)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder named like a wav is called a folder."""
    (tmp_path / "a.wav").mkdir()
    with pytest.raises(AudioProblem, match="a folder"):
        decode(tmp_path / "a.wav")


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system forbids reading, the error says so."""
    path = tmp_path / "a.wav"
    soundfile.write(path, burst(), 16000)
    if os.geteuid() == 0:

        def forbid(*_: object, **__: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("voicebench.audio.decode.os.open", forbid)
    else:
        path.chmod(0)
    with pytest.raises(AudioProblem, match="permission"):
        decode(path)


def refused_in_time(path: Path) -> str:
    """The words in which `path` is refused; fails if that takes 20 s, as an open pipe would take for ever."""
    said: list[str] = []

    def attempt() -> None:
        try:
            decode(path)
        except AudioProblem as error:
            said.append(error.what)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "decode hangs"
    return said[0]


def test_a_named_pipe_does_not_hang(tmp_path: Path) -> None:
    """A FIFO without a writer is refused at once, also behind a link."""
    os.mkfifo(tmp_path / "a.wav")
    (tmp_path / "b.wav").symlink_to("a.wav")
    assert "named pipe" in refused_in_time(tmp_path / "a.wav")
    assert "named pipe" in refused_in_time(tmp_path / "b.wav")


def test_a_pipe_that_takes_a_file_s_place_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO that appears between the look and the opening is refused as well."""
    (tmp_path / "file").write_bytes(b"x")
    regular = os.stat(tmp_path / "file")
    os.mkfifo(tmp_path / "a.wav")
    monkeypatch.setattr("voicebench.audio.decode.os.stat", lambda _: regular)
    assert "named pipe" in refused_in_time(tmp_path / "a.wav")


def test_devices_and_sockets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a regular file is opened."""
    assert "a device" in refused_in_time(Path("/dev/zero"))
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.wav")
        assert "a socket" in refused_in_time(Path("s.wav"))
