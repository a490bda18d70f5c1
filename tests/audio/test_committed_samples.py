"""The project's own audio samples: what the manifest says of them is true of the files."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.audio.signals import Signal, rms
from voicebench.audio import presence
from voicebench.audio.clip import Clip
from voicebench.audio.decode import decode, mono
from voicebench.audio.samples import Sample, find_samples, load_manifest

FOLDER = Path(__file__).parents[2] / "audio_samples"
SAMPLES = load_manifest(FOLDER)
BY_CONDITION = {sample.condition: sample for sample in SAMPLES}
CLEAN = [sample for sample in SAMPLES if sample.condition == "clean"]
PEAK = 0.6
LOSSY = {".mp3", ".opus"}


@cache
def clip_of(sample: Sample) -> Clip:
    """The decoded sample."""
    return decode(sample.path)


def active_dbfs(samples: Signal, rate: int, threshold: float) -> float:
    """The level over the windows in which sound is present by `threshold`."""
    width = presence.window_samples(rate)
    active = np.repeat(presence.present(samples, rate, threshold), width)[: samples.size]
    return float(20 * np.log10(rms(samples[active])))


def edges(samples: Signal, rate: int, threshold: float | None = None) -> list[float]:
    """Starts and ends of the segments found, in seconds."""
    return [edge / rate for segment in presence.segments(samples, rate, threshold) for edge in segment]


def annotated_edges(sample: Sample) -> list[float]:
    """Starts and ends of the annotated segments, in seconds."""
    return [edge for segment in sample.segments or () for edge in segment]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_every_sample_decodes_and_fits_its_annotation(sample: Sample) -> None:
    """No caveat but those of its condition, and no speech beyond its end."""
    clip = clip_of(sample)
    assert clip.caveats == ()
    assert sample.misfit(clip.duration_s, tolerance_s=0.0) is None
    assert sample.language == "en"
    assert sample.anchor == "annotated"
    assert sample.has_speech == bool(sample.transcript)


@pytest.mark.parametrize(
    "sample",
    [s for s in SAMPLES if s.condition not in ("noise", "quiet", "silence")],
    ids=lambda sample: sample.id,
)
def test_the_segments_are_those_of_the_rule(sample: Sample) -> None:
    """The rule finds the annotated edges in the file: within 10 ms, in lossy ones within 15 ms."""
    clip = clip_of(sample)
    allowed = 0.015 if sample.path.suffix in LOSSY else 0.010
    samples = clip.samples[:, 0]
    assert float(np.max(np.abs(samples))) == pytest.approx(PEAK, rel=0.15)
    assert edges(samples, clip.sample_rate) == pytest.approx(annotated_edges(sample), abs=allowed)


def test_the_segments_of_the_quiet_one_are_those_before_it_was_turned_down() -> None:
    """With the threshold turned down like the voice, the rule finds the annotated edges."""
    sample = BY_CONDITION["quiet"]
    clip = clip_of(sample)
    samples = mono(clip)
    gain = float(np.max(np.abs(samples))) / PEAK
    threshold = presence.amplitude(presence.THRESHOLD_DBFS) * gain
    assert edges(samples, clip.sample_rate, threshold) == pytest.approx(annotated_edges(sample), abs=0.010)
    assert active_dbfs(samples, clip.sample_rate, threshold) == pytest.approx(-35, abs=0.5)


def test_the_noisy_one_has_10_db_between_speech_and_noise() -> None:
    """The noise of the lead-in and the tail lies 10 dB below the speech, and the speech is where it says."""
    sample = BY_CONDITION["noise"]
    clip = clip_of(sample)
    samples, rate = mono(clip), clip.sample_rate
    ((start, end),) = sample.segments or ()
    noise = np.concatenate([samples[: round(start * rate)], samples[round(end * rate) :]])
    speech = samples[round(start * rate) : round(end * rate)]
    # Most windows of a short question are active, some are the gaps between its words.
    difference = 10 * np.log10((rms(speech) ** 2 - rms(noise) ** 2) / rms(noise) ** 2)
    assert 7.5 <= difference <= 11


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.has_speech], ids=lambda sample: sample.id)
def test_silence_leads_and_follows(sample: Sample) -> None:
    """0.4 s before the first sound and 0.5 s after the last, to within a window."""
    assert sample.speech_start_s == pytest.approx(0.4, abs=0.005)
    assert clip_of(sample).duration_s - (sample.speech_end_s or 0) == pytest.approx(0.5, abs=0.005)


def test_there_are_enough_of_all_kinds() -> None:
    """At least 20 samples: every condition, format and rate, several voices, most of them Piper's."""
    assert len(SAMPLES) >= 20
    assert len(CLEAN) >= 10
    assert set(BY_CONDITION) >= {
        *("clean", "short", "long", "pause", "noise", "telephone", "quiet", "stereo", "silence")
    }
    assert {sample.path.suffix for sample in SAMPLES} >= {".wav", ".flac", ".opus", ".mp3"}
    rates = {clip_of(sample).sample_rate for sample in SAMPLES}
    assert rates >= {8000, 16000, 22050, 24000, 44100, 48000}
    voices = {sample.voice for sample in SAMPLES if sample.has_speech}
    assert len(voices) >= 3
    assert sum((s.voice or "").startswith("piper") for s in SAMPLES) > len(SAMPLES) / 2


def test_the_clean_ones_are_short_questions_with_an_answer() -> None:
    """1.3 to 2.5 s of speech, and a reply that can be checked and does not stand in the question."""
    for sample in CLEAN:
        length = (sample.speech_end_s or 0) - (sample.speech_start_s or 0)
        assert 1.3 <= length <= 2.5, sample.id
        assert sample.answers, sample.id
        words = (sample.transcript or "").lower()
        assert not any(answer.lower() in words.split() for answer in sample.answers), sample.id


def test_the_pauses_are_as_long_as_they_are_said_to_be() -> None:
    """One sample pauses 0.7 s and one 1.3 s between its two segments."""
    pauses = [
        later[0] - earlier[1]
        for sample in SAMPLES
        if sample.condition == "pause"
        for earlier, later in pairwise(sample.segments or ())
    ]
    assert sorted(pauses) == pytest.approx([0.7, 1.3], abs=0.005)


def test_the_other_conditions_hold() -> None:
    """One word, twelve seconds, a telephone's band, two channels, and nobody there."""
    assert BY_CONDITION["short"].transcript == "Yes."
    ((start, end),) = BY_CONDITION["long"].segments or ()
    assert end - start == pytest.approx(12, abs=0.5)

    telephone = clip_of(BY_CONDITION["telephone"])
    assert (telephone.sample_rate, telephone.codec) == (8000, "ULAW")
    power = np.abs(np.fft.rfft(mono(telephone))) ** 2
    frequencies = np.fft.rfftfreq(telephone.frames, 1 / telephone.sample_rate)
    outside = power[(frequencies < 250) | (frequencies > 3450)].sum()
    assert 10 * np.log10(outside / power.sum()) < -30

    stereo = clip_of(BY_CONDITION["stereo"])
    assert stereo.channels == 2
    assert rms(stereo.samples[:, 0]) == pytest.approx(2 * rms(stereo.samples[:, 1]), rel=0.01)

    silence = clip_of(BY_CONDITION["silence"])
    assert silence.duration_s == pytest.approx(4.0)
    assert BY_CONDITION["silence"].segments == ()
    assert BY_CONDITION["silence"].transcript == ""
    assert presence.first_onset(mono(silence), silence.sample_rate) is None


def test_the_folder_holds_what_the_manifest_lists_and_is_small() -> None:
    """No recording is without an entry, and all of them together stay below 6 MB."""
    assert find_samples([FOLDER]) == SAMPLES
    sounds = {path for path in FOLDER.iterdir() if path.suffix in {".wav", ".flac", ".opus", ".mp3"}}
    assert sounds == {sample.path for sample in SAMPLES}
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 6_000_000
