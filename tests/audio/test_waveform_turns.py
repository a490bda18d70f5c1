"""Turn-taking: from two speakers' utterances to turns, interruptions, overlaps and silences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audio.waveform_calls import RATE, clean_call, echo, late, measured, noise, placed, voices
from voicebench.audio.waveform import Segment, Turn, conversation
from voicebench.audio.waveform.turntaking import (
    find_interruptions,
    find_overlaps,
    find_silences,
    find_turns,
)

Spans = list[tuple[float, float]]


def said(*spans: tuple[float, float]) -> list[Segment]:
    """Certain utterances from (start, end) in seconds."""
    return [Segment(start, end, -20.0, True) for start, end in spans]


def told(user: Spans, agent: Spans, duration_s: float = 60.0) -> list[tuple[float, float | None]]:
    """The turns as (user's end, latency in ms)."""
    turns = find_turns(said(*user), said(*agent), duration_s)
    return [
        (t.user_end_s, None if t.voice_to_voice_ms is None else round(t.voice_to_voice_ms)) for t in turns
    ]


def only(user: Spans, agent: Spans, duration_s: float = 60.0) -> Turn:
    """The one turn there is."""
    (turn,) = find_turns(said(*user), said(*agent), duration_s)
    return turn


def test_a_turn_is_the_users_speech_and_the_reply() -> None:
    """The latency runs from the user's last sound to the agent's first; a greeting before makes no turn."""
    turn = only([(2.0, 4.0)], [(0.0, 1.5), (4.7, 6.0), (6.8, 9.0)])
    assert (turn.user_start_s, turn.user_end_s, turn.agent_onset_s, turn.agent_end_s) == (2.0, 4.0, 4.7, 9.0)
    assert turn.voice_to_voice_ms == pytest.approx(700)
    assert turn.certain
    assert not turn.interrupted


def test_a_pause_of_the_users_does_not_end_the_turn() -> None:
    """Utterances with the agent silent between them are one turn, which ends with the last."""
    assert told([(0, 2), (3, 4)], [(4.5, 6)]) == [(4, 500)]


def test_a_long_silence_of_both_ends_a_turn_without_reply() -> None:
    """After more than three seconds without a reply the user's next words are a turn of their own."""
    turns = find_turns(said((0, 2), (6, 7)), said((7.5, 9)), 60)
    assert [t.voice_to_voice_ms for t in turns] == [None, 500]
    assert turns[0].reasons == ("no_reply",)
    assert turns[0].certain


def test_the_last_turn_without_reply_cannot_be_told() -> None:
    """Where the recording ends after the user's words, whether a reply was due is uncertain."""
    turn = only([(0, 2)], [], 8)
    assert (turn.agent_onset_s, turn.voice_to_voice_ms, turn.certain) == (None, None, False)
    assert turn.reasons == ("no_reply", "recording_ends")


def test_an_agent_that_begins_early_has_a_negative_latency() -> None:
    """A reply that begins before the user's end and goes on has a negative latency, and is a cut-in."""
    user, agent = said((0, 3)), said((2.6, 6))
    (turn,) = find_turns(user, agent, 60)
    assert turn.voice_to_voice_ms == pytest.approx(-400)
    (cut_in,) = find_interruptions(user, agent)
    assert (cut_in.by, cut_in.at_s) == ("agent", 2.6)
    assert cut_in.stop_ms == pytest.approx(400)


def test_a_false_start_is_no_reply() -> None:
    """An agent that stops again while the user speaks on has not replied; its later words are the reply."""
    user, agent = said((0, 5)), said((2, 2.5), (5.8, 8))
    (turn,) = find_turns(user, agent, 60)
    assert turn.voice_to_voice_ms == pytest.approx(800)
    assert turn.certain
    (cut_in,) = find_interruptions(user, agent)
    assert (cut_in.by, cut_in.stop_ms) == ("agent", None)


def test_a_comma_in_an_early_reply_does_not_hide_its_onset() -> None:
    """First words that end before the user does belong to the reply where it goes on within half a second."""
    assert told([(0, 3)], [(2.5, 2.95), (3.35, 6)]) == [(3, -500)]
    assert only([(0, 3)], [(2.5, 2.9), (3.6, 6)]).reasons == ("false_start",)


def test_a_reply_to_half_a_sentence_is_interrupted() -> None:
    """Where the user goes on and the agent stops, that turn is interrupted and the next has its own reply."""
    user, agent = said((0, 2), (3.0, 5)), said((2.6, 3.4), (5.8, 8))
    first, second = find_turns(user, agent, 60)
    assert (first.interrupted, second.interrupted) == (True, False)
    assert second.voice_to_voice_ms == pytest.approx(800)
    (broken,) = find_interruptions(user, agent)
    assert (broken.by, broken.at_s) == ("user", 3.0)
    assert broken.stop_ms == pytest.approx(400)


def test_turns_that_overlap_a_little_are_not_interrupted() -> None:
    """A user who begins in the last 150 ms of the agent's words has not interrupted it."""
    user, agent = said((0, 2), (4.85, 6)), said((2.5, 5), (6.5, 8))
    assert [t.interrupted for t in find_turns(user, agent, 60)] == [False, False]
    assert find_interruptions(user, agent) == ()


def test_words_that_the_agent_passes_over_are_no_turn() -> None:
    """A listener's "mm-hm", over which the agent speaks on, makes neither turn nor interruption."""
    user, agent = said((0, 2), (5, 5.3)), said((2.5, 9))
    assert told([(0, 2), (5, 5.3)], [(2.5, 9)]) == [(2, 500)]
    assert find_interruptions(user, agent) == ()
    assert [(o.start_s, o.end_s, o.began) for o in find_overlaps(user, agent)] == [(5, 5.3, "user")]


def test_words_near_the_agents_end_are_uncertain() -> None:
    """Where the agent spoke on for a moment after the user's words, what it answers is uncertain."""
    turn = only([(4.0, 4.4)], [(1.0, 5.0), (5.6, 8.0)])
    assert turn.voice_to_voice_ms == pytest.approx(1200)
    assert turn.reasons == ("agent_spoke_on",)
    assert not turn.certain


def test_an_agent_that_speaks_on_over_the_user_is_no_interruption() -> None:
    """Speech of both for longer than two seconds is an overlap: nobody yielded."""
    user, agent = said((0, 2), (4, 7)), said((2.5, 6.5), (7.5, 9))
    assert find_interruptions(user, agent) == ()
    assert [o.duration_s for o in find_overlaps(user, agent)] == [2.5]


def test_doubt_about_a_segment_is_doubt_about_its_turn() -> None:
    """A turn takes over its user's and its agent's reasons, and adds their uncertainties."""
    user = [Segment(0, 2, -20, False, "drowned", 5, 110)]
    agent = [Segment(2.5, 4, -20, False, "echo_suspect", 30, 5)]
    (turn,) = find_turns(user, agent, 60)
    assert turn.reasons == ("agent_echo_suspect", "user_drowned")
    assert (turn.certain, turn.uncertainty_ms) == (False, 140)


def test_silences_are_told_longest_first() -> None:
    """Silences lie between sounds, longest first, each with who broke it; short ones are left out."""
    found = find_silences(said((1, 2), (9, 10)), said((2.5, 4), (4.1, 6)))
    assert [(s.start_s, s.end_s, s.before) for s in found] == [(6, 9, "user"), (2, 2.5, "agent")]


spans = st.lists(st.floats(0.01, 3), min_size=0, max_size=24).map(
    lambda steps: [(float(a), float(b)) for a, b in np.cumsum(steps)[: len(steps) // 2 * 2].reshape(-1, 2)]
)


@given(user=spans, agent=spans)
def test_turns_hold_together_whatever_is_said(user: Spans, agent: Spans) -> None:
    """Turns come in order without sharing speech, and each latency is its onset less its end."""
    turns = find_turns(said(*user), said(*agent), 100)
    assert all(a.user_end_s < b.user_start_s for a, b in itertools.pairwise(turns))
    ends = {end for _, end in user}
    starts = {start for start, _ in agent}
    for turn in turns:
        assert turn.user_end_s in ends
        if turn.agent_onset_s is None:
            assert turn.voice_to_voice_ms is None
        else:
            assert turn.agent_onset_s in starts
            assert turn.agent_onset_s > turn.user_start_s
            assert turn.voice_to_voice_ms == (turn.agent_onset_s - turn.user_end_s) * 1000
            assert turn.agent_end_s is not None
            assert turn.agent_end_s > turn.user_end_s


@given(user=spans, agent=spans)
def test_overlaps_last_as_long_as_both_speak(user: Spans, agent: Spans) -> None:
    """The overlaps' total is the time during which both speak."""
    overlaps = find_overlaps(said(*user), said(*agent))
    both = sum(max(0.0, min(ue, ae) - max(us, as_)) for us, ue in user for as_, ae in agent)
    assert sum(o.duration_s for o in overlaps) == pytest.approx(both)


def test_a_shift_of_the_recording_changes_no_latency() -> None:
    """A call recorded from earlier on has the same turns, later by as much."""
    user, agent, _ = clean_call(3)
    lead = np.zeros(200 * 80, np.float32)
    first = conversation(user, agent, RATE).turns
    second = conversation(np.concatenate([lead, user]), np.concatenate([lead, agent]), RATE).turns
    assert [t.voice_to_voice_ms for t in second] == pytest.approx([t.voice_to_voice_ms for t in first])
    assert [t.user_end_s - 1 for t in second] == pytest.approx([t.user_end_s for t in first])


def test_half_the_level_hardly_changes_a_latency() -> None:
    """A call at half its level has the same turns to 20 ms."""
    user, agent, _ = clean_call(4)
    first = [t.voice_to_voice_ms for t in conversation(user, agent, RATE).turns]
    half = [t.voice_to_voice_ms for t in conversation(user * np.float32(0.5), agent, RATE).turns]
    assert half == pytest.approx(first, abs=20)


def test_an_echo_alone_makes_no_turn() -> None:
    """Where the user says nothing, the agent's echo on that channel is no user."""
    _, agent, _ = clean_call(5)
    found = conversation(late(agent, 1600) * np.float32(0.1), agent, RATE)
    assert found.turns == ()
    assert "agent_heard_on_user_channel" in [c.code for c in found.caveats]


def test_an_echo_that_no_filter_describes_is_still_suspected() -> None:
    """An echo whose delay wanders is known by the course of its level, and what is left is uncertain."""
    _, agent, _ = clean_call(6)
    parts = np.array_split(agent, 8)
    wandering = np.concatenate([late(part, 400 + 80 * i) for i, part in enumerate(parts)])
    found = conversation(wandering * np.float32(0.1), agent, RATE)
    assert "user_echo_suspect" in [c.code for c in found.caveats]
    assert not any(turn.certain for turn in found.turns)


def test_a_user_who_talks_over_the_agents_echo_is_heard() -> None:
    """A real user in the middle of the agent's echo is found, with the right edges, and nothing else."""
    _, agent, _ = clean_call(7)
    first = conversation(np.zeros_like(agent), agent, RATE).agent.segments[0]
    at = round((first.start_s + 0.5) * RATE)
    user = placed([(at, voices()[1])], agent.size)
    quiet, _, _ = echo(user, agent, np.random.default_rng(0))
    wanted = conversation(user, agent, RATE).user.segments
    got = conversation(quiet, agent, RATE).user.segments
    times = [[(s.start_s, s.end_s) for s in part] for part in (got, wanted)]
    assert len(got) == len(wanted)
    assert np.allclose(times[0], times[1], atol=0.02)


@pytest.mark.parametrize("gain", [1.0, 0.3, -1.0])
def test_one_sound_on_both_channels_cannot_be_told_apart(gain: float) -> None:
    """A mixed-down call has no turns, whatever its levels or polarity, and the caveat says why."""
    user, agent, _ = clean_call(8)
    mixed = user + agent + np.asarray(noise("white", user.size, np.random.default_rng(0)) * 1e-3, np.float32)
    found = conversation(mixed, mixed * np.float32(gain), RATE)
    assert found.turns == ()
    assert "channels_alike" in [c.code for c in found.caveats]


def test_nobody_speaking_is_told() -> None:
    """A call of silence has no turns, is silent from end to end, and says so of both channels."""
    found = conversation(np.zeros(3 * RATE, np.float32), np.zeros(3 * RATE, np.float32), RATE)
    assert (found.turns, found.overlaps, found.silences) == ((), (), ())
    assert found.leading_silence_s == found.duration_s == 3
    assert [c.code for c in found.caveats] == ["user_silent", "agent_silent"]


def test_channels_of_different_lengths_are_refused() -> None:
    """Two recordings of different lengths are no call on one clock."""
    with pytest.raises(ValueError, match="differ in length"):
        conversation(np.zeros(80, np.float32), np.zeros(81, np.float32), RATE)


def test_the_same_call_gives_the_same_answer() -> None:
    """Measuring is deterministic."""
    assert measured(echo, 2) == measured(echo, 2)
