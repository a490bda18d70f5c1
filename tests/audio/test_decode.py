"""The front door for audio files: what is read, and as what."""

from __future__ import annotations

import os
import struct
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.audio.signals import burst, lag_samples, rms
from tests.audio.wav_bytes import chunk, fmt, pcm, riff
from voicebench.audio.decode import decode, mono
from voicebench.errors import AudioProblem, MissingExtra, VoicebenchError

RATE = 16000
UNKNOWN = 0xFFFF_FFFF

# (name, format, subtype, the largest error that the coding may make)
PLAIN = [
    ("a.wav", "WAV", "PCM_U8", 0.01),
    ("a.wav", "WAV", "PCM_16", 1e-4),
    ("a.wav", "WAV", "PCM_24", 1e-6),
    ("a.wav", "WAV", "PCM_32", 1e-6),
    ("a.wav", "WAV", "FLOAT", 0.0),
    ("a.wav", "WAV", "DOUBLE", 1e-7),
    ("a.wav", "WAV", "ULAW", 0.02),
    ("a.wav", "WAV", "ALAW", 0.02),
    ("a.wav", "WAV", "IMA_ADPCM", 0.4),
    ("a.wav", "WAVEX", "PCM_24", 1e-6),
    ("a.wav", "RF64", "PCM_16", 1e-4),
    ("a.w64", "W64", "PCM_16", 1e-4),
    ("a.aiff", "AIFF", "PCM_24", 1e-6),
    ("a.au", "AU", "PCM_16", 1e-4),
    ("a.caf", "CAF", "PCM_16", 1e-4),
    ("a.flac", "FLAC", "PCM_24", 1e-6),
]
LOSSY = [("a.ogg", "OGG", "VORBIS"), ("a.opus", "OGG", "OPUS"), ("a.mp3", "MP3", "MPEG_LAYER_III")]


@pytest.mark.parametrize(("name", "container", "codec", "error"), PLAIN)
def test_every_plain_format_is_read(
    tmp_path: Path, name: str, container: str, codec: str, error: float
) -> None:
    """The samples come back within the coding's own precision, with rate, container and coding named."""
    sound = burst()
    soundfile.write(tmp_path / name, sound, RATE, format=container, subtype=codec)
    clip = decode(tmp_path / name)
    assert (clip.sample_rate, clip.channels) == (RATE, 1)
    assert clip.samples.dtype == np.float32
    assert (clip.container, clip.codec) == (container, codec)
    assert np.max(np.abs(clip.samples[: sound.size, 0] - sound)) <= error
    assert clip.frames == sound.size or codec == "IMA_ADPCM"
    assert clip.caveats == ()


@pytest.mark.parametrize(("name", "container", "codec"), LOSSY)
def test_lossy_formats_are_read_in_one_piece_and_in_time(
    tmp_path: Path, name: str, container: str, codec: str
) -> None:
    """A long lossy file has no gap, no shift and no change of level anywhere."""
    sound = np.tile(burst(48000), 6)
    soundfile.write(tmp_path / name, sound, 48000, format=container, subtype=codec)
    clip = decode(tmp_path / name)
    assert (clip.sample_rate, clip.frames) == (48000, sound.size)
    for second in range(6):
        part = slice(second * 48000, (second + 1) * 48000)
        assert abs(lag_samples(clip.samples[part, 0], sound[part])) <= 2
        assert rms(clip.samples[part, 0]) == pytest.approx(rms(sound[part]), rel=0.1)
    assert "cut_short" not in clip.caveats


def test_reading_in_blocks_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    """An mp3 decoded block by block equals the same mp3 decoded in one go, sample for sample."""
    soundfile.write(tmp_path / "a.mp3", np.tile(burst(44100), 3), 44100)
    at_once, _ = soundfile.read(tmp_path / "a.mp3", dtype="float32")
    assert np.array_equal(mono(decode(tmp_path / "a.mp3")), at_once)


@pytest.mark.parametrize("name", ["m4a", "mp4", "webm", "mka", "3gp"])
def test_what_libsndfile_cannot_read_is_read_by_pyav(tmp_path: Path, name: str) -> None:
    """AAC and Opus in mp4, 3gp, Matroska and WebM come back in time and at their level."""
    av = pytest.importorskip("av")
    sound = burst(48000)
    path = tmp_path / f"a.{name}"
    codec = "libopus" if name == "webm" else "aac"
    with av.open(str(path), "w", format={"m4a": "mp4", "mka": "matroska"}.get(name, name)) as container:
        stream = container.add_stream(codec, rate=48000, layout="mono")
        frame = av.AudioFrame.from_ndarray(sound[np.newaxis], format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 48000, 0
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    clip = decode(path)
    assert (clip.sample_rate, clip.channels) == (48000, 1)
    assert clip.frames == pytest.approx(48000, abs=2100)
    # Matroska does not hold AAC's priming of 1024 samples.
    assert abs(lag_samples(mono(clip), sound)) <= (1024 if name == "mka" else 10)
    assert rms(mono(clip)) == pytest.approx(rms(sound), rel=0.1)


def test_amr_of_a_telephone_is_read(tmp_path: Path) -> None:
    """Fifty frames of AMR are one second at 8 kHz."""
    pytest.importorskip("av")
    (tmp_path / "a.amr").write_bytes(b"#!AMR\n" + 50 * (b"\x3c" + bytes(31)))
    clip = decode(tmp_path / "a.amr")
    assert (clip.sample_rate, clip.frames, clip.channels) == (8000, 8000, 1)


def test_the_content_counts_and_not_the_name(tmp_path: Path) -> None:
    """An mp3 named .wav and a wav named .gsm (a raw format by its name) are what they are."""
    sound = burst()
    soundfile.write(tmp_path / "a.mp3", sound, RATE)
    (tmp_path / "a.mp3").rename(tmp_path / "a.wav")
    assert decode(tmp_path / "a.wav").container == "MP3"
    (tmp_path / "b.gsm").write_bytes(riff(fmt(), chunk(b"data", pcm(sound))))
    assert decode(tmp_path / "b.gsm").frames == sound.size


@pytest.mark.parametrize(
    "name", ["-i", "$(x).wav", "a;b.wav", "☃ é.wav", "a\nb.wav", "%2e%2e.wav", "'\".wav"]
)
def test_names_are_only_names(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read whatever it is called, also by its bare name."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(riff(fmt(), chunk(b"data", pcm(burst()))))
    assert decode(Path(name)).frames == RATE


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_name_that_is_not_utf8_is_read_and_told(tmp_path: Path) -> None:
    """A name with a stray byte is read; an error about it can be written as UTF-8."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.wav"))
    path.write_bytes(riff(fmt(), chunk(b"data", pcm(burst()))))
    assert decode(path).frames == RATE
    path.write_bytes(b"")
    with pytest.raises(AudioProblem) as caught:
        decode(path)
    assert "a\\xff.wav" in str(caught.value)
    str(caught.value).encode("utf-8")


LIES = {
    "unknown": riff(fmt(), chunk(b"data", pcm(burst()), size=UNKNOWN), size=UNKNOWN),
    "unknown, odd chunks before": riff(
        fmt(), chunk(b"LIST", b"abc"), chunk(b"data", pcm(burst()), size=UNKNOWN), size=UNKNOWN
    ),
    "zero": riff(fmt(), chunk(b"data", pcm(burst()), size=0), size=0),
    "zero in the data chunk only": riff(fmt(), chunk(b"data", pcm(burst()), size=0)),
    "zero as of a fresh header": riff(fmt(), chunk(b"data", pcm(burst()), size=0), size=36),
    "the largest signed number": riff(fmt(), chunk(b"data", pcm(burst()), size=0x7FFF_FFFF)),
    "a little too large": riff(fmt(), chunk(b"data", pcm(burst()), size=2 * RATE + 1000)),
    "too small": riff(fmt(), chunk(b"data", pcm(burst()), size=RATE)),
    "big-endian": riff(
        fmt(order=">"), chunk(b"data", pcm(burst(), ">"), size=UNKNOWN, order=">"), name=b"RIFX"
    ),
    "64 bits": riff(
        chunk(b"ds64", struct.pack("<QQQI", 1 << 40, 1 << 40, 1 << 39, 0)),
        fmt(),
        chunk(b"data", pcm(burst()), size=UNKNOWN),
        name=b"RF64",
    ),
    "64 bits, zero": riff(
        chunk(b"ds64", struct.pack("<QQQI", 0, 0, 0, 0)),
        fmt(),
        chunk(b"data", pcm(burst()), size=UNKNOWN),
        name=b"RF64",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_wav_whose_length_is_wrong_is_read_to_its_end(tmp_path: Path, lie: str) -> None:
    """Whatever length the header claims, all sound there is comes back, with a caveat."""
    (tmp_path / "a.wav").write_bytes(LIES[lie])
    clip = decode(tmp_path / "a.wav")
    assert clip.caveats == ("wav_length",)
    assert clip.frames == RATE
    assert np.max(np.abs(mono(clip) - burst())) < 1e-4


@pytest.mark.parametrize(
    ("after", "caveats"),
    [
        (chunk(b"LIST", b"INFO and so on"), ()),
        (b"TAG" + bytes(125), ()),
        (b"\x80\x01\x7f\xff" * 100, ("trailing_bytes",)),
    ],
)
def test_what_follows_the_sound_is_not_sound(tmp_path: Path, after: bytes, caveats: tuple[str, ...]) -> None:
    """Chunks, tags and junk behind a right length are left out; junk is told."""
    (tmp_path / "a.wav").write_bytes(riff(fmt(), chunk(b"data", pcm(burst()))) + after)
    clip = decode(tmp_path / "a.wav")
    assert clip.frames == RATE
    assert clip.caveats == caveats


@pytest.mark.parametrize("name", ["a.flac", "a.mp3", "a.ogg"])
def test_a_recording_that_stops_early_is_marked(tmp_path: Path, name: str) -> None:
    """Of a file that was cut in half, the first part is read, with a caveat or, in ogg, as a shorter file."""
    soundfile.write(tmp_path / name, np.tile(burst(), 20), RATE)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    clip = decode(tmp_path / name)
    assert 5 * RATE < clip.frames < 15 * RATE
    assert lag_samples(mono(clip)[:RATE], burst()) == 0
    assert clip.caveats == (() if name == "a.ogg" else ("cut_short",))


def test_samples_that_are_no_numbers_become_silence(tmp_path: Path) -> None:
    """NaN and infinity are set to 0, the rest stays, and the clip says so."""
    sound = burst()
    sound[8000], sound[8001] = np.nan, np.inf
    soundfile.write(tmp_path / "a.wav", sound, RATE, subtype="FLOAT")
    clip = decode(tmp_path / "a.wav")
    assert "non_finite" in clip.caveats
    assert not clip.samples[8000:8002].any()
    assert clip.samples[7999, 0] == sound[7999]


def test_samples_beyond_full_scale_stay_and_are_told(tmp_path: Path) -> None:
    """A float file that goes to 1.5 keeps its samples, with a caveat."""
    soundfile.write(tmp_path / "a.wav", burst(level=1.5), RATE, subtype="FLOAT")
    clip = decode(tmp_path / "a.wav")
    assert float(np.max(np.abs(clip.samples))) == pytest.approx(1.5)
    assert clip.caveats == ("over_full_scale",)


@pytest.mark.parametrize(("drive", "caveats"), [(1.0, ()), (3.0, ("clipped",))])
def test_an_overdriven_recording_is_told(tmp_path: Path, drive: float, caveats: tuple[str, ...]) -> None:
    """Runs at full scale are clipping; one peak that touches it is not."""
    soundfile.write(tmp_path / "a.wav", np.clip(burst(level=drive), -1, 1), RATE, subtype="PCM_16")
    assert decode(tmp_path / "a.wav").caveats == caveats


def test_channels_that_cancel_are_told(tmp_path: Path) -> None:
    """Anti-phase stereo carries its caveat, and its mono form is the full voice."""
    soundfile.write(tmp_path / "a.flac", np.stack([burst(), -burst()], axis=1), RATE)
    clip = decode(tmp_path / "a.flac")
    assert clip.caveats == ("antiphase",)
    assert rms(mono(clip)) == pytest.approx(rms(burst()), rel=0.01)


@pytest.mark.parametrize("name", ["a.flac", "a.wav"])
def test_the_duration_is_bounded_while_decoding(tmp_path: Path, name: str) -> None:
    """Ten minutes are refused at the bound of two seconds, without ten minutes' memory."""
    soundfile.write(tmp_path / name, np.zeros(600 * 8000, np.float32), 8000)
    tracemalloc.start()
    try:
        with pytest.raises(AudioProblem, match=r"longer than 2 s"):
            decode(tmp_path / name, max_seconds=2)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_the_bound_itself_is_allowed(tmp_path: Path) -> None:
    """A file of exactly the longest duration is read."""
    soundfile.write(tmp_path / "a.wav", burst(), RATE)
    assert decode(tmp_path / "a.wav", max_seconds=1.0, max_bytes=4 * RATE).frames == RATE


def test_the_bytes_are_bounded_on_disk_and_decoded(tmp_path: Path) -> None:
    """A small file that unpacks to more than the bound is refused, and so is a file that is larger itself."""
    soundfile.write(tmp_path / "a.flac", np.zeros(600 * 8000, np.float32), 8000)
    assert (tmp_path / "a.flac").stat().st_size < 1_000_000
    with pytest.raises(AudioProblem, match="more than"):
        decode(tmp_path / "a.flac", max_bytes=1_000_000)
    soundfile.write(tmp_path / "b.wav", burst(), RATE)
    with pytest.raises(AudioProblem, match="more than"):
        decode(tmp_path / "b.wav", max_bytes=1000)


def test_a_header_that_promises_everything_costs_nothing(tmp_path: Path) -> None:
    """A claim of 2 GB before one second of sound does not reserve memory for 2 GB."""
    (tmp_path / "a.wav").write_bytes(LIES["the largest signed number"])
    tracemalloc.start()
    try:
        decode(tmp_path / "a.wav")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_missing_extra_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyAV an m4a says which file needs which extra; a wav does not need it."""
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "a.m4a").write_bytes(b"\0\0\0\x18ftypM4A " + bytes(100))
    with pytest.raises(MissingExtra, match=r"a\.m4a") as caught:
        decode(tmp_path / "a.m4a")
    assert caught.value.extra == "av"
    soundfile.write(tmp_path / "a.wav", burst(), RATE)
    assert decode(tmp_path / "a.wav").frames == RATE


def test_broken_files_are_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    """300 files with damaged bytes, seeded: each is a clip or an error in words that names it."""
    random = np.random.default_rng(11)
    originals = []
    for name, container, codec in [("a.wav", "WAV", "PCM_16"), ("a.flac", "FLAC", "PCM_16"), *LOSSY]:
        soundfile.write(tmp_path / name, burst(), RATE, format=container, subtype=codec)
        originals.append((tmp_path / name).read_bytes())
    read = named = 0
    for number in range(300):
        data = bytearray(originals[number % len(originals)])
        for at in random.integers(0, 150, random.integers(1, 6)):
            data[at] = random.choice([0, 255, 127, 128, int(random.integers(256))])
        path = tmp_path / "broken.bin"
        path.write_bytes(data[: int(random.integers(1, len(data)))] if number % 3 == 0 else data)
        try:
            clip = decode(path, max_seconds=60, max_bytes=1 << 24)
        except VoicebenchError as error:
            named += "broken.bin" in error.what
        else:
            read += 1
            assert clip.frames > 0
            assert np.isfinite(clip.samples).all()
    assert read + named == 300
    assert 50 < read < 250


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Reading and refusing a hundred files leaves as many open files as before."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list its descriptors")
    soundfile.write(tmp_path / "a.wav", burst(), RATE)
    (tmp_path / "lie.wav").write_bytes(LIES["unknown"])
    (tmp_path / "no.wav").write_bytes(b"no sound")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(33):
        decode(tmp_path / "a.wav")
        decode(tmp_path / "lie.wav")
        with pytest.raises(AudioProblem):
            decode(tmp_path / "no.wav")
    assert len(os.listdir("/proc/self/fd")) == before
