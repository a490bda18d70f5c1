"""Single edges, for a harness: where speech ends, where the first sound is."""

from __future__ import annotations

import numpy as np
import pytest

from tests.audio.waveform_calls import RATE, edges, noise, placed, voices
from voicebench.audio.decode import decode
from voicebench.audio.manifest import Sample, load_manifest
from voicebench.audio.samples import default_folder
from voicebench.audio.waveform import first_sound, speech_end


def annotated() -> list[Sample]:
    """The project's samples with speech, on one channel."""
    return [s for s in load_manifest(default_folder()) if s.segments and s.condition != "stereo"]


@pytest.mark.parametrize("sample", annotated(), ids=lambda s: s.id)
def test_the_annotated_end_is_found_without_the_manifest(sample: Sample) -> None:
    """In each project sample the end is found to 20 ms, in a noisy one to 50 ms, and the onset likewise."""
    clip = decode(sample.path)
    sound = clip.samples[:, 0]
    end, onset = speech_end(sound, clip.sample_rate), first_sound(sound, clip.sample_rate)
    assert end is not None
    assert onset is not None
    allowed_s = 0.05 if sample.condition == "noise" else 0.02
    assert end.at_s == pytest.approx(sample.speech_end_s, abs=allowed_s)
    assert onset.at_s == pytest.approx(sample.speech_start_s, abs=allowed_s)
    assert end.certain or sample.condition == "noise"


def test_the_sample_of_silence_has_no_end() -> None:
    """A recording without speech has neither an end nor an onset."""
    (silent,) = [s for s in load_manifest(default_folder()) if not s.segments]
    clip = decode(silent.path)
    assert speech_end(clip.samples[:, 0], clip.sample_rate) is None
    assert first_sound(clip.samples[:, 0], clip.sample_rate) is None


def test_a_steady_noise_does_not_move_the_end() -> None:
    """Single sentences in noise at 20 dB keep their ends to 50 ms, nine in ten of them."""
    rng = np.random.default_rng(1)
    errors: list[float] = []
    for voice in voices():
        sound = placed([(RATE, voice)], voice.size + 2 * RATE)
        mixed = sound + noise("pink", sound.size, rng) * np.std(voice) * 0.1
        end = speech_end(np.asarray(mixed, np.float32), RATE)
        assert end is not None
        errors.append(abs(end.at_s - 1 - edges(voice)[1] / RATE))
    assert np.percentile(errors, 90) <= 0.05


def test_first_sound_looks_from_an_instant_on() -> None:
    """The first onset at or after the instant is returned, not an earlier one; None where none follows."""
    begin, end = edges(voices()[0])
    sound = placed([(RATE, voices()[0]), (6 * RATE, voices()[0])], 10 * RATE)
    for after_s, wanted_s in ((0.0, 1.0), (1 + end / RATE + 0.1, 6.0)):
        edge = first_sound(sound, RATE, after_s)
        assert edge is not None
        assert edge.at_s == pytest.approx(wanted_s + begin / RATE, abs=0.006)
        assert edge.certain
    assert first_sound(sound, RATE, 9.5) is None


def test_sound_already_there_is_not_first_and_makes_the_next_uncertain() -> None:
    """Where speech is going on at the instant, the next onset is returned, as not certain."""
    sound = placed([(RATE, voices()[0]), (6 * RATE, voices()[0])], 10 * RATE)
    edge = first_sound(sound, RATE, 1.5)
    assert edge is not None
    assert (round(edge.at_s), edge.certain, edge.reason) == (6, False, "already_sounding")


def test_an_end_at_the_recordings_end_is_not_certain() -> None:
    """Speech that the recording cuts off has an end, but not a certain one."""
    sound = placed([(RATE, voices()[0])], RATE + edges(voices()[0])[1] - 4000)
    edge = speech_end(sound, RATE)
    assert edge is not None
    assert (edge.certain, edge.reason) == (False, "recording_ends")
