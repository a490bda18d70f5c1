"""The rule for where sound is present."""

from __future__ import annotations

import numpy as np
import pytest

from voicebench.audio import presence

RATE = 16000


def tone(seconds: float, level: float, rate: int = RATE) -> np.ndarray:
    """A 1 kHz sine of peak `level`."""
    return (level * np.sin(2 * np.pi * 1000 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def silence(seconds: float, rate: int = RATE) -> np.ndarray:
    """Zeros."""
    return np.zeros(round(seconds * rate), dtype=np.float32)


def test_a_tone_between_silences_is_found_at_its_edges() -> None:
    """Onset and end of a tone that begins and stops on window edges are its first and last sample."""
    samples = np.concatenate([silence(0.3), tone(0.2, 0.5), silence(0.4)])
    assert presence.first_onset(samples, RATE) == round(0.3 * RATE)
    assert presence.last_end(samples, RATE) == round(0.5 * RATE)


@pytest.mark.parametrize(("dbfs_rms", "heard"), [(-44.5, True), (-45.5, False)])
def test_the_threshold_is_minus_45_dbfs_rms(dbfs_rms: float, heard: bool) -> None:
    """A tone half a dB above -45 dBFS RMS is sound, one half a dB below is not."""
    samples = tone(0.1, presence.amplitude(dbfs_rms) * np.sqrt(2))
    assert presence.present(samples, RATE).all() == heard
    assert presence.present(samples, RATE).any() == heard


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
def test_an_edge_is_at_most_one_window_off_at_any_rate(rate: int) -> None:
    """Wherever the sound lies on the window grid, the edges found enclose it by less than 5 ms."""
    for shift in range(0, presence.window_samples(rate), 7):
        start = round(0.25 * rate) + shift
        square = np.full(round(0.2 * rate), 0.5, np.float32)
        samples = np.concatenate([np.zeros(start, np.float32), square, silence(0.2, rate)])
        onset, end = presence.first_onset(samples, rate), presence.last_end(samples, rate)
        assert onset is not None
        assert end is not None
        width = presence.window_samples(rate)
        assert start - width < onset <= start
        assert start + square.size <= end < start + square.size + width


def test_silence_and_nothing_have_no_onset_no_end_and_no_segments() -> None:
    """Neither digital silence nor an empty array is ever sound, whatever the threshold's kind."""
    for samples in (silence(1.0), silence(0.0)):
        assert presence.first_onset(samples, RATE) is None
        assert presence.last_end(samples, RATE) is None
        assert presence.segments(samples, RATE) == []
        assert not presence.present(samples, RATE, presence.threshold_for(samples, quiet=True)).any()


def test_a_partial_last_window_is_judged_by_its_own_length() -> None:
    """Sound in a last window that is cut off counts at its own level, and its end is the last sample."""
    samples = np.concatenate([silence(0.1), tone(0.0013, 0.01)])
    assert presence.last_end(samples, RATE) == samples.size
    assert presence.present(samples, RATE).size == 21


def test_windows_equal_a_plain_computation() -> None:
    """The verdicts are those of the textbook RMS, window by window."""
    random = np.random.default_rng(3)
    samples = (random.standard_normal(12345) * random.choice([0.001, 0.0056, 0.02], 12345)).astype(np.float32)
    width = presence.window_samples(RATE)
    expected = [
        np.sqrt(np.mean(samples[start : start + width].astype(np.float64) ** 2)) > 10 ** (-45 / 20)
        for start in range(0, samples.size, width)
    ]
    assert presence.present(samples, RATE).tolist() == expected


def test_a_quiet_channel_is_judged_against_its_own_peak() -> None:
    """A tone of peak -50 dBFS is found when the channel is known to be quiet, and only then."""
    samples = np.concatenate([silence(0.1), tone(0.1, presence.amplitude(-50)), silence(0.1)])
    assert presence.first_onset(samples, RATE) is None
    threshold = presence.threshold_for(samples, quiet=True)
    assert threshold == pytest.approx(presence.amplitude(-90))
    assert presence.first_onset(samples, RATE, threshold) == round(0.1 * RATE)


def test_a_loud_channel_keeps_the_fixed_threshold() -> None:
    """The relative threshold never lies above -45 dBFS."""
    assert presence.threshold_for(tone(0.1, 1.0), quiet=True) == pytest.approx(presence.amplitude(-45))


@pytest.mark.parametrize(("gap_s", "count"), [(0.495, 1), (0.5, 2), (0.7, 2)])
def test_half_a_second_of_silence_separates_segments(gap_s: float, count: int) -> None:
    """Stretches of sound less than 0.5 s apart are one segment, those further apart are two."""
    samples = np.concatenate([silence(0.2), tone(0.1, 0.3), silence(gap_s), tone(0.2, 0.3), silence(0.1)])
    found = presence.segments(samples, RATE)
    assert len(found) == count
    assert found[0][0] == round(0.2 * RATE)
    assert found[-1][1] == round((0.5 + gap_s) * RATE)
    if count == 2:
        assert found[0][1] == round(0.3 * RATE)
        assert found[1][0] == round((0.3 + gap_s) * RATE)


def test_long_recordings_are_judged_without_a_copy_in_double_precision() -> None:
    """Beyond its verdicts the rule needs a small part of the memory of the samples themselves."""
    import tracemalloc

    samples = np.zeros(10_000_000, dtype=np.float32)
    tracemalloc.start()
    try:
        presence.present(samples, RATE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < samples.nbytes / 4
