"""The account of what was played: instants to the sample, sound by the 5 ms rule, and nothing after a cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from voicebench.audio.played import Played
from voicebench.clock import NS_PER_MS, NS_PER_S

RATES = (8_000, 16_000, 22_050, 24_000, 48_000)
START = 7_000_000_123
"""An instant that is no round number, as a monotonic clock's are none."""


def tone(ms: float, rate: int, level: float = 0.3) -> NDArray[np.int16]:
    """So many ms of 440 Hz that begin at full level."""
    count = round(rate * ms / 1000)
    wave = level * np.cos(2 * np.pi * 440 * np.arange(count) / rate)
    return (wave * 32767).astype(np.int16)


def zeros(ms: float, rate: int) -> NDArray[np.int16]:
    """So many ms of silence."""
    return np.zeros(round(rate * ms / 1000), dtype=np.int16)


def played_in_chunks(samples: NDArray[np.int16], rate: int, start_ns: int, chunk: int) -> Played:
    """The samples, written in chunks of `chunk` samples long before each is due."""
    played = Played()
    for begin in range(0, samples.size, chunk):
        played.write(samples[begin : begin + chunk], rate, start_ns)
    return played


@pytest.mark.parametrize("rate", RATES)
def test_leading_silence_is_not_sound(rate: int) -> None:
    """With 300 ms of zeros before its tone, audio written at 100 ms is heard at 400 ms."""
    samples = np.concatenate((zeros(300, rate), tone(50, rate)))
    played = played_in_chunks(samples, rate, 100 * NS_PER_MS, rate // 100)
    assert played.runs[0].start_ns == 100 * NS_PER_MS
    first = played.first_sound(0)
    assert first is not None
    assert abs(first - 400 * NS_PER_MS) <= 5 * NS_PER_MS


@given(
    st.sampled_from(RATES),
    st.integers(0, 6_000),
    st.integers(300, 3_000),
    st.integers(1, 2_000),
)
def test_an_onset_is_the_edge_of_its_window(rate: int, silent: int, loud: int, chunk: int) -> None:
    """However the audio is chunked, sound begins at the start of the first 5 ms window that holds enough."""
    wave = np.full(loud, 20_000, dtype=np.int16)
    samples = np.concatenate((np.zeros(silent, dtype=np.int16), wave))
    played = played_in_chunks(samples, rate, START, chunk)
    width = max(1, round(rate * 0.005))
    first = played.first_sound(0)
    assert first is not None
    earliest = START + (silent // width) * width * NS_PER_S // rate
    # A window that holds a single loud sample in hundreds is below the threshold: then the next one counts.
    assert first in (earliest, earliest_of_next(silent, width, rate))
    assert played.cursor_ns == START + samples.size * NS_PER_S // rate


def earliest_of_next(silent: int, width: int, rate: int) -> int:
    """The start of the window after the one in which the sound begins."""
    return START + (silent // width + 1) * width * NS_PER_S // rate


@given(st.sampled_from(RATES), st.integers(1, 400), st.integers(0, 500_000))
def test_a_run_goes_on_where_it_ends_without_a_gap(rate: int, chunks: int, early_ns: int) -> None:
    """Audio that comes in time is one run, whose end is exact to the sample and does not drift."""
    played = Played()
    size = rate // 100
    for number in range(chunks):
        due = START + number * size * NS_PER_S // rate
        played.write(np.zeros(size, dtype=np.int16), rate, due - early_ns if number else due)
    assert len(played.runs) == 1
    assert played.cursor_ns == START + chunks * size * NS_PER_S // rate


def test_audio_that_comes_late_begins_a_new_run() -> None:
    """A gap is a gap: what comes 30 ms after the end sounds when it comes, not before."""
    rate = 16_000
    played = Played()
    played.write(tone(20, rate), rate, START)
    late = START + 50 * NS_PER_MS
    played.write(tone(20, rate), rate, late)
    assert [run.start_ns for run in played.runs] == [START, late]
    assert played.sounds() == [(START, START + 20 * NS_PER_MS), (late, late + 20 * NS_PER_MS)]
    assert played.first_sound(START + 25 * NS_PER_MS) == late
    assert played.cursor_ns == late + 20 * NS_PER_MS


def test_the_silence_of_audio_that_came_late_is_counted() -> None:
    """What the reply waited for its next audio is told, before its first sound and after a cut nothing is."""
    played = Played()
    played.write(zeros(10, 16_000), 16_000, START)
    played.write(tone(100, 16_000), 16_000, START + 30 * NS_PER_MS)
    first = played.first_sound(START)
    assert first is not None
    assert played.waited_ns(first) == 0
    played.write(tone(50, 16_000), 16_000, START + 160 * NS_PER_MS)
    assert played.waited_ns(first) == 30 * NS_PER_MS
    played.flush(START + 170 * NS_PER_MS)
    played.write(tone(50, 16_000), 16_000, START + 400 * NS_PER_MS)
    assert played.waited_ns(first) == 30 * NS_PER_MS


def test_audio_at_another_rate_follows_what_is_there() -> None:
    """A change of rate makes a new run that begins where the old one ends."""
    played = Played()
    played.write(tone(20, 16_000), 16_000, START)
    played.write(tone(20, 24_000), 24_000, START)
    assert [run.start_ns for run in played.runs] == [START, START + 20 * NS_PER_MS]


@given(st.sampled_from(RATES), st.integers(-5_000_000, 150_000_000))
def test_a_flush_cuts_what_had_not_sounded(rate: int, after_ns: int) -> None:
    """After an interruption nothing is left that would have sounded later, and all that sounded stays."""
    played = played_in_chunks(tone(100, rate), rate, START, rate // 100)
    whole = played.runs[0].count
    at = START + after_ns
    played.flush(at)
    left = sum(run.count for run in played.runs)
    sounded = sum(1 for index in range(whole) if START + index * NS_PER_S / rate < at)
    assert abs(left - sounded) <= 1
    one_sample = NS_PER_S // rate + 1
    for run in played.runs:
        assert run.end_ns < at + one_sample
        assert sum(piece.size for piece in run.pieces) == run.count
    for _, end in played.sounds():
        assert end < at + one_sample
    assert played.cursor_ns <= max(at, START)


def test_a_sound_that_was_cut_before_it_began_never_was() -> None:
    """A window whose loud part lies behind the cut holds no sound."""
    rate = 16_000
    quiet_then_loud = np.concatenate((zeros(4, rate), tone(20, rate)))
    played = played_in_chunks(quiet_then_loud, rate, START, quiet_then_loud.size)
    assert played.first_sound(0) == START
    played.flush(START + 3 * NS_PER_MS)
    assert played.first_sound(0) is None
    assert played.last_sound() is None


def test_a_sound_that_was_cut_in_its_first_window_was_heard() -> None:
    """Two and a half loud milliseconds are a sound, which ends where it was cut."""
    rate = 16_000
    played = played_in_chunks(tone(20, rate), rate, START, 160)
    cut = START + 5 * NS_PER_MS // 2
    played.flush(cut)
    assert played.sounds() == [(START, cut)]


def test_what_comes_after_a_flush_is_a_run_of_its_own() -> None:
    """The next reply begins when it comes, not where the interrupted one would have ended."""
    rate = 24_000
    played = played_in_chunks(tone(500, rate), rate, START, 240)
    at = START + 100 * NS_PER_MS
    played.flush(at)
    again = START + 180 * NS_PER_MS
    played.write(tone(20, rate), rate, again)
    assert played.runs[-1].start_ns == again
    assert played.first_sound(at + NS_PER_MS) == again


def test_a_flush_before_anything_sounded_leaves_nothing() -> None:
    """A reply that was interrupted before its first sample has no sound at all."""
    played = played_in_chunks(tone(100, 16_000), 16_000, START, 160)
    played.flush(START)
    assert played.runs == []
    assert played.first_sound(0) is None


def test_the_first_sound_is_looked_for_within_bounds() -> None:
    """Sound outside the asked stretch is not found; one that still lasts counts from its beginning on."""
    rate = 16_000
    samples = np.concatenate((tone(50, rate), zeros(100, rate), tone(50, rate)))
    played = played_in_chunks(samples, rate, START, 160)
    second = START + 150 * NS_PER_MS
    assert played.first_sound(0) == START
    assert played.first_sound(START + 20 * NS_PER_MS) == START + 20 * NS_PER_MS
    assert played.first_sound(START + 50 * NS_PER_MS) == second
    assert played.first_sound(START + 50 * NS_PER_MS, second) is None
    assert played.first_sound(START + 50 * NS_PER_MS, second + 1) == second
    assert played.first_sound(START + 200 * NS_PER_MS) is None
    assert played.last_sound() == START + 200 * NS_PER_MS
    assert played.last_sound(before_ns=second) == START + 50 * NS_PER_MS


def test_a_whisper_below_the_threshold_is_silence() -> None:
    """A tone at -50 dBFS is no sound, one at -40 dBFS is."""
    rate = 24_000
    for level_db, heard in ((-50, False), (-40, True)):
        played = played_in_chunks(tone(50, rate, 10 ** (level_db / 20) * 2**0.5), rate, START, 240)
        assert (played.first_sound(0) is not None) is heard


def test_nothing_played_has_no_instants() -> None:
    """An account without audio answers with nothing, not with 0."""
    played = Played()
    played.flush(START)
    assert played.sounds() == []
    assert played.first_sound(0) is None
    assert played.last_sound() is None
