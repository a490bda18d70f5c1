"""Every odd recording comes at its own speed, or is refused in words that name it and say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.audio.test_decode_refusals import refused_in_time
from tests.odd_audio.corpus import END_S, GOOD, HERTZ, ONSET_S, SECONDS, Good, Sound
from tests.odd_audio.refused import BAD, Bad
from voicebench.audio.decode import decode, mono
from voicebench.audio.manifest import Sample
from voicebench.audio.names import printable
from voicebench.audio.prepare import PIPELINE_RATE, prepare
from voicebench.audio.presence import first_onset, last_end
from voicebench.errors import AudioProblem


def names(cases: Sequence[Good | Bad]) -> list[str]:
    """Their file names as a terminal may show them."""
    return [printable(case.name) for case in cases]


def hertz_of(sound: Sound, rate: int) -> float:
    """The strongest frequency, by a Hann window and the peak of a padded spectrum."""
    size = 1 << 20
    spectrum = np.abs(np.fft.rfft((sound - sound.mean()) * np.hanning(sound.size), size))
    return float(np.argmax(spectrum)) * rate / size


def test_the_corpus_is_large_and_every_file_in_it_another_one() -> None:
    """At least 70 files are read and 30 refused, no two of one name."""
    assert len(GOOD) >= 70
    assert len(BAD) >= 30
    named = {case.name for case in GOOD} | {case.name for case in BAD}
    assert len(named) == len(GOOD) + len(BAD)


def test_the_recordings_differ_in_their_bytes(tmp_path: Path) -> None:
    """Links and names apart, the corpus holds at least 60 different recordings."""
    contents = set()
    for case in GOOD:
        case.write(tmp_path / case.name)
        contents.add((tmp_path / case.name).read_bytes())
    assert len(contents) >= 60


@pytest.mark.parametrize("case", GOOD, ids=names(GOOD))
def test_a_recording_comes_at_its_own_speed(tmp_path: Path, case: Good) -> None:
    """Rate and channels are the file's; the tone has its pitch within 1 %, begins and ends where it does, and
    the whole is as long as it is, within 1 %, in the file's own rate and as the pipeline is given it."""
    path = tmp_path / case.name
    case.write(path)
    clip = decode(path)
    assert (clip.sample_rate, clip.channels) == (case.rate, case.channels)
    if case.caveats is not None:
        assert clip.caveats == case.caveats
    assert clip.duration_s == pytest.approx(case.seconds, abs=max(0.01 * case.seconds, case.slack_s))
    made = prepare(Sample(id="a", path=path))
    assert made.duration_s == pytest.approx(clip.duration_s, rel=0.01)
    assert made.caveats[: len(clip.caveats)] == clip.caveats
    assert set(case.prepared) <= set(made.caveats)
    assert ("dc_offset" in made.caveats) == ("dc_offset" in case.prepared)
    at_rest = mono(clip) - np.float32(np.median(mono(clip)))
    spoken = made.pcm.astype(np.float32) / np.float32(32768.0)
    end_s = min(END_S, made.duration_s) if case.slack_s < 0.5 else made.duration_s
    for sound, rate in ((at_rest, case.rate), (spoken, PIPELINE_RATE)):
        onset, end = first_onset(sound, rate, 0.1), last_end(sound, rate, 0.1)
        assert onset is not None
        assert end is not None
        slack = 0.06 if case.slack_s > 0.05 else 0.011
        assert onset / rate == pytest.approx(ONSET_S, abs=slack)
        if case.slack_s < 0.5:
            assert end / rate == pytest.approx(end_s, abs=slack)
        middle = slice(round((ONSET_S + 0.05) * rate), round((ONSET_S + 0.25) * rate))
        assert hertz_of(sound[middle], rate) == pytest.approx(HERTZ, rel=0.01)
        assert np.std(sound[middle]) > 0.05, "the tone is not cancelled"
    assert made.has_speech is True
    if case.slack_s < 0.05:
        assert made.speech_end_s == pytest.approx(end_s, abs=0.03)


@contextmanager
def as_anyone(case: Bad) -> Iterator[None]:
    """As a user whom the rights of files bind, where the superuser runs the tests."""
    if case.root_too or os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("case", BAD, ids=names(BAD))
def test_what_holds_no_sound_is_refused_by_name_with_a_remedy(tmp_path: Path, case: Bad) -> None:
    """The error comes at once, names the file so that no terminal obeys it, and says why and what to do."""
    path = tmp_path / case.name
    case.write(path)
    with as_anyone(case):
        told = refused_in_time(path)
        with pytest.raises(AudioProblem) as caught:
            decode(path)
    assert caught.value.what == told
    assert printable(path) in told
    assert told.isprintable()
    assert case.reason in told
    assert len(caught.value.remedy) > 10


@pytest.mark.parametrize("offset", [0.02, -0.3, 0.9])
def test_a_constant_offset_is_not_heard_as_speech(tmp_path: Path, offset: float) -> None:
    """Of a silent recording with a DC offset the pipeline is given silence, and nobody speaks in it."""
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.full(16_000, offset), 16_000, subtype="PCM_16")
    made = prepare(Sample(id="a", path=tmp_path / "a.wav"))
    assert (made.has_speech, made.speech_end_s) == (False, None)
    assert not made.pcm.any()
    assert "dc_offset" in made.caveats
    assert made.duration_s == SECONDS
