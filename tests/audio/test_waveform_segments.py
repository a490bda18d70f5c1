"""What is taken for speech on one channel, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.audio.waveform_calls import RATE, Sound, edges, late, noise, placed, voices
from voicebench.audio.waveform import Analysis, segments

WINDOW = 80


def spoken(*starts_s: float, length_s: float = 9.0, voice: int = 0) -> Sound:
    """One sentence at each start, in silence."""
    return placed([(round(s * RATE), voices()[voice]) for s in starts_s], round(length_s * RATE))


def spans(found: Analysis) -> list[tuple[float, float]]:
    """The segments as (start, end) in seconds."""
    return [(s.start_s, s.end_s) for s in found.segments]


def truth(*starts_s: float, voice: int = 0) -> list[tuple[float, float]]:
    """Where the sentences of `spoken` sound."""
    begin, end = edges(voices()[voice])
    return [(s + begin / RATE, s + end / RATE) for s in starts_s]


def near(
    found: list[tuple[float, float]], wanted: list[tuple[float, float]], within_s: float = 0.006
) -> bool:
    """Are there as many segments, each with both edges near?"""
    return len(found) == len(wanted) and bool(np.allclose(found, wanted, atol=within_s))


def burst(at_s: float, length_ms: float, level: float, size: int, seed: int = 1) -> Sound:
    """A swelling burst of noise in silence, as a breath or a click is."""
    count = round(length_ms * RATE / 1000)
    shape = np.hanning(count + 2)[1:-1] * np.random.default_rng(seed).standard_normal(count) * level
    return placed([(round(at_s * RATE), np.asarray(shape, np.float32))], size)


def test_the_edges_are_those_of_the_presence_rule() -> None:
    """In a clean recording each sentence is one certain segment from first to last sounding window."""
    found = segments(spoken(0.5, 4.0), RATE)
    assert near(spans(found), truth(0.5, 4.0))
    assert all(s.certain and s.reason == "" for s in found.segments)
    assert not found.noisy
    assert found.caveats == ()


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 44_100, 48_000])
def test_any_sample_rate_gives_the_same_times(rate: int) -> None:
    """Bursts of known edges are found to a window at every usual sample rate."""
    at = np.arange(round(3 * rate)) / rate
    tone = np.where((at >= 0.7) & (at < 1.5), 0.3 * np.sin(2 * np.pi * 300 * at), 0)
    assert near(spans(segments(np.asarray(tone, np.float32), rate)), [(0.7, 1.5)], 0.006)


@pytest.mark.parametrize(("gap_s", "count"), [(0.25, 1), (0.5, 2)])
def test_short_pauses_stay_inside_an_utterance(gap_s: float, count: int) -> None:
    """A pause of 250 ms is inside an utterance, one of 500 ms parts two; another bridge can be asked."""
    begin, end = edges(voices()[0])
    second = 0.5 + (end - begin) / RATE + gap_s
    sound = spoken(0.5, second)
    assert len(segments(sound, RATE).segments) == count
    assert len(segments(sound, RATE, bridge_ms=(gap_s + 0.1) * 1000).segments) == 1


@pytest.mark.parametrize(
    ("disturbance", "reason"),
    [
        (lambda n: burst(7.5, 40, 0.1, n), "click"),
        (lambda n: burst(7.0, 350, 0.02, n), "breath"),
        (lambda n: burst(6.5, 2000, 0.012, n), "breath"),
    ],
    ids=["click", "breath", "rustling"],
)
def test_what_is_no_speech_is_dropped_and_counted(disturbance: Callable[[int], Sound], reason: str) -> None:
    """An isolated click, breath or rustling makes no segment, and is counted by its reason."""
    sound = spoken(0.5, 4.0)
    found = segments(sound + disturbance(sound.size), RATE)
    assert near(spans(found), truth(0.5, 4.0))
    assert found.dropped == {reason: 1}


def test_a_loud_click_after_the_end_does_not_prolong_it() -> None:
    """A loud click 100 ms after the last word is no part of it."""
    sound = spoken(0.5)
    end_s = truth(0.5)[0][1]
    assert near(spans(segments(sound + burst(end_s + 0.1, 4, 0.8, sound.size), RATE)), truth(0.5))


@pytest.mark.parametrize(
    "sound",
    [
        np.zeros(0),
        np.zeros(1),
        np.zeros(RATE),
        np.ones(RATE) * 0.3,
        0.3 * np.sin(np.arange(4 * RATE) * 0.3),
        0.05 * noise("white", 4 * RATE, np.random.default_rng(1)),
        0.05 * noise("pink", 4 * RATE, np.random.default_rng(2)),
        np.full(RATE, 1e-6),
    ],
    ids=["empty", "one sample", "silence", "offset", "tone", "white", "pink", "faint"],
)
def test_without_speech_there_is_no_segment_but_a_caveat(sound: NDArray[np.float64]) -> None:
    """Silence, a constant, a constant tone and noise hold no speech, and the analysis says so."""
    found = segments(np.asarray(sound, np.float32), RATE)
    assert found.segments == ()
    assert [c.code for c in found.caveats] in (["silent"], ["no_speech"])
    assert found.snr_db is None


@pytest.mark.parametrize("rise_db", [-60, -40])
def test_a_background_that_rises_midway_is_not_taken_for_speech(rise_db: float) -> None:
    """Where noise sets in halfway, sentences before and after it are still found, and nothing else."""
    sound = spoken(0.5, 4.0, 22.0, 26.0, length_s=32)
    rng = np.random.default_rng(3)
    sound[16 * RATE :] += rng.standard_normal(16 * RATE).astype(np.float32) * 10 ** (rise_db / 20)
    assert near(spans(segments(sound, RATE)), truth(0.5, 4.0, 22.0, 26.0), 0.06)


def test_a_noise_gate_is_recognised() -> None:
    """Where a gate lets noise through around the speech only, no edge is certain and a caveat says why."""
    sound = spoken(0.5, 4.0, 8.0, length_s=12)
    open_ = np.convolve(np.abs(sound) > 0.003, np.ones(8001), "same") > 0
    hiss = noise("white", sound.size, np.random.default_rng(5)) * 10 ** (-42 / 20) * open_
    found = segments(np.asarray(sound + hiss, np.float32), RATE)
    assert len(found.segments) == 3
    assert {(s.certain, s.reason) for s in found.segments} == {(False, "gated_noise")}
    assert [c.code for c in found.caveats] == ["gated_noise"]


def test_bursts_of_a_steady_tone_are_certain() -> None:
    """A tone in place of a voice, steady from its beginning to its end, is no gated noise."""
    at = np.arange(9 * RATE) / RATE
    tone = np.where(at % 3 < 1.5, 0.3 * np.sin(2 * np.pi * 440 * at), 0)
    found = segments(np.asarray(np.roll(tone, RATE), np.float32), RATE)
    assert near(spans(found), [(1.0, 2.5), (4.0, 5.5), (7.0, 8.5)])
    assert all(s.certain for s in found.segments)


@pytest.mark.parametrize("hertz", [0.05, 20.0])
def test_drift_and_rumble_move_no_edge(hertz: float) -> None:
    """A slow drift or a rumble as loud as the voice leaves the edges where they are."""
    sound = spoken(0.5, 4.0)
    sound += (0.08 * np.sin(2 * np.pi * hertz * np.arange(sound.size) / RATE)).astype(np.float32)
    assert near(spans(segments(sound, RATE)), truth(0.5, 4.0), 0.025)


def test_noise_is_told_and_widens_the_uncertainty() -> None:
    """In noise the analysis says so, and each segment states how far its edges may be off."""
    sound = spoken(0.5, 4.0)
    hiss = noise("white", sound.size, np.random.default_rng(4)) * 0.02
    found = segments(np.asarray(sound + hiss, np.float32), RATE)
    assert found.noisy
    assert [c.code for c in found.caveats] == ["noisy"]
    assert found.floor_dbfs == pytest.approx(-34, abs=1)
    assert all(s.end_uncertainty_ms > 20 for s in found.segments)
    assert near(spans(found), truth(0.5, 4.0), 0.08)


@pytest.mark.parametrize("voice", range(8))
def test_a_recording_that_is_all_speech_is_not_silently_cut(voice: int) -> None:
    """Speech without silence around it is found to its end, or the end is called uncertain."""
    begin, end = edges(voices()[voice])
    tight = voices()[voice][begin:end]
    found = segments(tight, RATE, bridge_ms=1000).segments
    assert found[0].start_s <= 0.03
    last = found[-1]
    assert last.end_s >= tight.size / RATE - 0.03 or not last.certain


@settings(max_examples=15, deadline=None)
@given(shift=st.integers(0, 400))
def test_a_shift_by_whole_windows_shifts_every_edge_by_as_much(shift: int) -> None:
    """A recording that begins some windows later has the same segments, that much later."""
    sound = spoken(0.5, 4.0, length_s=10)
    moved = late(sound, shift * WINDOW)
    wanted = [(a + shift * 0.005, b + shift * 0.005) for a, b in spans(segments(sound, RATE))]
    assert np.allclose(spans(segments(moved, RATE)), wanted, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(gain=st.floats(0.05, 1.6))
def test_the_level_hardly_moves_an_edge(gain: float) -> None:
    """The same recording at another level has the same segments to 50 ms, and below full level to 10 ms."""
    quieter = spans(segments(spoken(0.5, 4.0) * np.float32(gain), RATE))
    assert near(quieter, truth(0.5, 4.0), 0.01 if gain <= 1 else 0.05)


@settings(max_examples=10, deadline=None)
@given(sign=st.sampled_from([-1.0, 1.0]), offset=st.floats(-0.3, 0.3))
def test_polarity_and_offset_change_nothing(sign: float, offset: float) -> None:
    """A turned-over recording, or one with a constant offset, has the same segments."""
    sound = np.asarray(spoken(0.5, 4.0) * sign + offset, np.float32)
    assert near(spans(segments(sound, RATE)), truth(0.5, 4.0))


@pytest.mark.parametrize(
    ("sound", "rate"),
    [(np.zeros((8, 2)), RATE), (np.zeros(8), 0), (np.array([0.0, np.nan]), RATE), (np.array([np.inf]), RATE)],
    ids=["two channels", "no rate", "nan", "infinite"],
)
def test_what_cannot_be_measured_is_refused(sound: NDArray[np.float64], rate: int) -> None:
    """Several channels in one array, a rate of 0 and samples that are no numbers raise ValueError."""
    with pytest.raises(ValueError, match=r"channel|rate|finite"):
        segments(np.asarray(sound, np.float32), rate)
