"""Which of several replies is taken, and when: from streams of known arrival."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pydantic import ValidationError

from voicebench.clock import NS_PER_MS
from voicebench.errors import BadRequest
from voicebench.plan.config import Clause, Config, PluginSpec
from voicebench.stages.candidate_choice import clause_ns, complete_text
from voicebench.stages.candidates import CandidateSettings, check, decide, released
from voicebench.stages.scorers import scorer_of
from voicebench.turns.stream import StreamLog, StreamStatus

NATURAL = Clause(rule="natural", least_words=2)


def stream(*pieces: tuple[float, str], end_ms: float | None = None, status: StreamStatus = "ok") -> StreamLog:
    """A stream asked at 0 whose text comes at these milliseconds; without an end it is still running."""
    log = StreamLog(0, deltas=[(round(at * NS_PER_MS), text) for at, text in pieces])
    if end_ms is not None:
        log.end(round(end_ms * NS_PER_MS), status)
    return log


def settings(take: str, **more: Any) -> CandidateSettings:
    """A set's settings with a slot of 400 ms."""
    given = {"take": take, "slot_ms": 400.0, "drain_s": 1.0, "scorer": None, **more}
    return CandidateSettings.model_validate(given)


def taken(take: str, streams: list[StreamLog], at_ms: float, words: tuple[str, ...] = (), **more: Any) -> Any:
    """The index that is taken at an instant, and by what; None: none yet."""
    scorer = scorer_of(PluginSpec(kind="keywords", words=list(words)), "test") if words else None
    found = decide(settings(take, **more), streams, 0, round(at_ms * NS_PER_MS), "Where?", scorer)
    return None if found is None else (found.index, found.by)


def test_a_clause_is_complete_when_the_next_sentence_begins_or_the_reply_ends() -> None:
    """By pipecat's rule a full stop alone completes nothing."""
    running = stream((10, "It is Paris."), (30, " On the"))
    assert clause_ns(running, Clause()) == 30 * NS_PER_MS
    assert clause_ns(stream((10, "It is Paris.")), Clause()) is None
    assert clause_ns(stream((10, "It is Paris."), end_ms=12), Clause()) == 12 * NS_PER_MS
    assert clause_ns(stream((10, "It is"), end_ms=12, status="truncated"), Clause()) is None
    assert clause_ns(stream((10, "Well, yes,"), (20, " it is")), NATURAL) == 10 * NS_PER_MS


def test_the_first_complete_clause_is_taken() -> None:
    """Not the first text, and not before it is complete."""
    early = stream((50, "Let me think about"), (300, " that. It"))
    later = stream((100, "Paris. It"), (400, " is"))
    assert taken("first_clause", [early, stream()], 250) == (0, "first_clause")
    assert taken("first_clause", [early, later], 110) == (1, "first_clause")
    assert taken("first_clause", [stream((50, "Let me think")), stream()], 60) is None


def test_a_candidate_that_fails_is_passed_over() -> None:
    """One that failed is not waited for, and is taken only where all have ended without a clause."""
    failed = stream(end_ms=5, status="overloaded")
    assert taken("first_clause", [failed, stream((80, "Yes. It"))], 90) == (1, "first_clause")
    assert taken("first_clause", [failed, stream()], 90) is None
    assert taken("first_clause", [failed, stream(end_ms=20)], 90) == (1, "none_complete")
    assert taken("longest_by_slot", [failed, stream(end_ms=9, status="failed")], 90) == (0, "none_complete")


def test_the_longest_complete_text_is_taken_at_the_slot_end() -> None:
    """What is not complete by then does not count, however long it is."""
    short = stream((100, "Paris."), end_ms=120)
    long = stream((100, "It is Paris, on the river Seine."), (350, " Its"), (600, " tower"))
    open_end = stream((100, "It is the old and beautiful capital of the French on the river Seine"))
    assert taken("longest_by_slot", [short, long, open_end], 399) is None
    assert taken("longest_by_slot", [short, long, open_end], 400) == (1, "longest_by_slot")
    late = stream((100, "Well"), (410, ", that is a very long story indeed. It"))
    assert taken("longest_by_slot", [short, late], 500) == (0, "longest_by_slot")
    ended = stream((100, "It is Paris."), end_ms=130)
    assert taken("longest_by_slot", [short, ended], 140) == (1, "longest_by_slot")


def test_without_a_complete_text_the_next_complete_clause_is_taken() -> None:
    """After the slot's end nobody waits for more than a first clause."""
    late = stream((390, "It is"))
    assert taken("longest_by_slot", [late, stream()], 401) is None
    late.deltas.append((450 * NS_PER_MS, " Paris. It"))
    assert taken("longest_by_slot", [late, stream()], 451) == (0, "first_clause")


def test_the_best_by_score_is_taken_and_of_equals_the_first() -> None:
    """The scorer sees complete text only."""
    plain = stream((50, "It is a city."), end_ms=60)
    good = stream((90, "It is Paris."), end_ms=99)
    assert taken("scorer", [plain, good], 400, words=("paris", "seine")) == (1, "scorer")
    assert taken("scorer", [good, good], 400, words=("paris",)) == (0, "scorer")
    unsaid = stream((50, "Hm. It is Paris"))
    assert taken("scorer", [plain, unsaid], 400, words=("paris",)) == (0, "scorer")


def test_a_planted_best_of_three_is_found() -> None:
    """In 300 drawn sets, in any order and at any speed, the scorer picks the one that holds the answer."""
    draw = random.Random(11)
    hits = 0
    for number in range(300):
        fillers = ["I do not know that one.", f"Parisian streets, {number} of them."]
        texts = [*fillers, f"The city is Paris, as {number} people told me."]
        draw.shuffle(texts)
        best = next(index for index, text in enumerate(texts) if " Paris," in text)
        streams = []
        for text in texts:
            at, pieces = draw.uniform(20, 200), []
            for word in text.split(" "):
                pieces.append((at, word + " "))
                at += draw.uniform(0.5, 20)
            streams.append(stream(*pieces, end_ms=at))
        found = taken("scorer", streams, 400, words=("Paris",))
        hits += found == (best, "scorer")
    assert hits >= 297


def test_what_was_held_arrives_when_it_is_let_go() -> None:
    """Text from before the choice is one delta at that instant; what comes later keeps its own."""
    deltas = [(10, "It"), (20, " is"), (30, " so")]
    assert released(deltas, 20) == [(20, "It is"), (30, " so")]
    assert released(deltas, 5) == deltas
    assert released([], 5) == []


def test_complete_text_is_cut_at_the_last_sentence() -> None:
    """A sentence counts when the next one has begun, the whole when the reply has ended in time."""
    log = stream((10, "One. Two. Thr"), (50, "ee."), end_ms=60)
    assert complete_text(log, 20 * NS_PER_MS) == "One. Two."
    assert complete_text(log, 60 * NS_PER_MS) == "One. Two. Three."


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ({"kind": "keyword"}, "keywords"),
        ({"kind": "keywords"}, "words"),
        ({"kind": "no_such_module:score"}, "cannot be imported"),
        ({"kind": "os:sep"}, "is no function"),
        ({"kind": "math:sqrt", "words": []}, "takes no settings"),
    ],
)
def test_a_scorer_that_is_none_is_refused(kind: dict[str, Any], said: str) -> None:
    """The refusal names what is wrong."""
    with pytest.raises(BadRequest) as refused:
        check(settings("scorer", scorer=kind))
    assert said in str(refused.value) + refused.value.remedy


def test_a_function_of_ones_own_scores() -> None:
    """`module:function` is called with the transcript and the reply."""
    assert scorer_of(PluginSpec(kind=f"{__name__}:own_score"), "test")("a", "bcd") == 13.0


def own_score(transcript: str, reply: str) -> float:
    """10 for each character of the transcript and 1 for each of the reply."""
    return 10.0 * len(transcript) + len(reply)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"candidates": ["emulated/opus-4.6"], "take": "first_clause"}, "at least two"),
        ({"candidates": ["emulated/opus-4.6"], "times": 2, "take": "scorer"}, "scorer"),
        ({"candidates": ["emulated/opus"], "times": 2, "take": "first_clause"}, "emulated/opus-4.6"),
        ({"candidates": ["set/b"], "times": 2, "take": "first_clause"}, "unknown mode"),
    ],
)
def test_a_set_that_cannot_be_is_refused(entry: dict[str, Any], said: str) -> None:
    """Too few members, a scorer too few, an unknown member and a set of sets are told."""
    with pytest.raises((BadRequest, ValidationError)) as refused:
        _ = Config.model_validate({"modes": ["set/a"], "sets": [{"id": "set/a", **entry}]}).own
    assert said in str(refused.value)


def test_a_set_is_a_mode_made_of_its_candidates() -> None:
    """It is emulated as soon as one member is, and has no price of its own."""
    config = Config.model_validate(
        {
            "modes": ["set/a"],
            "attempts_per_mode": {"emulated/opus-4.6": 2},
            "sets": [
                {
                    "id": "set/a",
                    "candidates": ["emulated/opus-4.6", "local/smollm2-135m"],
                    "times": 2,
                    "take": "first_clause",
                }
            ],
        }
    )
    mode = config.own["set/a"]
    assert (mode.kind, mode.price) == ("emulated", None)
    assert [one.id for one in mode.members] == ["emulated/opus-4.6"] * 2 + ["local/smollm2-135m"] * 2
    assert mode.members[0].attempts == 2
