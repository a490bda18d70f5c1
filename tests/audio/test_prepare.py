"""From a sample to what is spoken: 16 kHz mono, and where its speech ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voicebench.audio.manifest import Sample
from voicebench.audio.prepare import PIPELINE_RATE, prepare
from voicebench.errors import AudioProblem
from voicebench.turns.timeline import Anchor


def recording(folder: Path, rate: int = 16_000, speech_s: float = 1.0, channels: int = 1) -> Path:
    """0.2 s of silence, a tone, 0.5 s of silence."""
    wave = 0.4 * np.cos(2 * np.pi * 300 * np.arange(round(speech_s * rate)) / rate)
    mono = np.concatenate((np.zeros(rate // 5), wave, np.zeros(rate // 2)))
    path = folder / "a.wav"
    soundfile.write(path, np.stack([mono] * channels, axis=1), rate)
    return path


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (16_000, 1), (44_100, 2), (48_000, 1)])
def test_any_recording_becomes_16_khz_mono(tmp_path: Path, rate: int, channels: int) -> None:
    """Whatever the file's rate and channels, what is spoken lasts as long and is as loud."""
    made = prepare(Sample(id="a", path=recording(tmp_path, rate, channels=channels), segments=((0.2, 1.2),)))
    assert made.pcm.dtype == np.int16
    assert made.pcm.ndim == 1
    assert made.duration_s == pytest.approx(1.7, abs=0.002)
    assert made.pcm.size == round(made.duration_s * PIPELINE_RATE)
    middle = made.pcm[PIPELINE_RATE // 2 : PIPELINE_RATE].astype(np.float64)
    assert np.std(middle) == pytest.approx(0.4 * 32768 / np.sqrt(2), rel=0.01)


def test_an_annotated_end_is_taken_as_it_stands(tmp_path: Path) -> None:
    """The manifest's last segment is where the speech ends."""
    made = prepare(Sample(id="a", path=recording(tmp_path), segments=((0.2, 0.5), (0.9, 1.2))))
    assert (made.speech_end_s, made.anchor, made.has_speech) == (1.2, Anchor.ANNOTATED, True)


def test_an_end_that_nobody_wrote_down_is_found(tmp_path: Path) -> None:
    """Without an annotation the recording itself says where the sound ends, and the anchor says so."""
    made = prepare(Sample(id="a", path=recording(tmp_path)))
    assert made.anchor is Anchor.WAVEFORM
    assert made.has_speech is True
    assert made.speech_end_s == pytest.approx(1.2, abs=0.03)


def test_silence_has_no_end_of_speech(tmp_path: Path) -> None:
    """Where nobody speaks there is no end of speech, whether the manifest says so or the sound does."""
    path = tmp_path / "s.wav"
    soundfile.write(path, np.zeros(16_000), 16_000)
    for sample in (Sample(id="s", path=path, segments=()), Sample(id="s", path=path)):
        made = prepare(sample)
        assert made.speech_end_s is None
        assert made.has_speech is False


def test_a_transcript_of_nothing_says_that_nobody_speaks(tmp_path: Path) -> None:
    """Sound that is known to be no speech has no end of speech."""
    made = prepare(Sample(id="a", path=recording(tmp_path), transcript=""))
    assert (made.speech_end_s, made.has_speech) == (None, False)


def test_an_annotation_that_cannot_belong_to_the_file_is_refused(tmp_path: Path) -> None:
    """Speech that is said to end after the recording would make each latency wrong: it is an error."""
    with pytest.raises(AudioProblem, match=r"a: speech is annotated until 9 s.*1\.700 s"):
        prepare(Sample(id="a", path=recording(tmp_path), segments=((0.2, 9.0),)))


def test_what_is_odd_about_a_file_is_kept(tmp_path: Path) -> None:
    """A caveat of the decoder comes with the sample."""
    path = tmp_path / "loud.wav"
    wave = np.clip(4 * np.sin(2 * np.pi * 300 * np.arange(16_000) / 16_000), -1, 1)
    soundfile.write(path, wave, 16_000)
    assert "clipped" in prepare(Sample(id="loud", path=path, segments=((0.0, 1.0),))).caveats
