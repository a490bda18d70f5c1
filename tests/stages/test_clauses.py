"""When the first piece of a reply may be spoken."""

from __future__ import annotations

import pytest

from voicebench.plan.config import Clause
from voicebench.stages.clauses import aggregator, ready

NATURAL = Clause(rule="natural")
WORDS = Clause(rule="words", most_words=4)


def first_piece(text: str, rule: Clause) -> str | None:
    """The first piece that goes when `text` comes character by character; None where none goes."""
    for end in range(1, len(text) + 1):
        count = ready(text[:end], rule)
        if count is not None:
            return text[:count]
    return None


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("Of course, the capital is Paris.", "Of course,"),
        ("The capital is Paris.", "The capital is Paris."),
        ("Yes, it is. Anything else?", "Yes, it is."),
        ("It costs 3.50 dollars, I think.", "It costs 3.50 dollars,"),
        ("About 1,000 people; maybe more.", "About 1,000 people;"),
        ("Ask Dr. Miller about it, please.", "Ask Dr. Miller about it,"),
        ("It is “blue”! Really.", "It is “blue”!"),
        ("no break at all", None),
    ],
)
def test_a_natural_break_lets_the_first_piece_go(text: str, piece: str | None) -> None:
    """The first piece goes at the first break that is one: no number, no abbreviation, not after one word."""
    assert first_piece(text, NATURAL) == piece


def test_without_a_break_the_words_rule_cuts_after_so_many_words() -> None:
    """`words` cuts after the stated number of words, and goes earlier at a break."""
    assert first_piece("one two three four five six", WORDS) == "one two three four"
    assert first_piece("one two, three four five", WORDS) == "one two,"


def test_the_sentence_rule_leaves_it_to_pipecat() -> None:
    """`sentence` lets nothing go early and brings no aggregator of ours."""
    assert first_piece("Of course, the capital is Paris.", Clause(rule="sentence")) is None
    assert aggregator(Clause(rule="sentence")) is None


async def test_all_of_a_reply_is_spoken_once_and_in_order() -> None:
    """What goes early and what follows are together the whole reply, and the next reply begins anew."""
    pieces = aggregator(NATURAL)
    for _ in range(2):
        spoken = []
        for word in ["Of", " course,", " it", " is", " Paris.", " It", " lies", " on", " the", " Seine."]:
            spoken += [piece.text async for piece in pieces.aggregate(word)]
        rest = await pieces.flush()
        assert spoken[0] == "Of course,"
        assert " ".join([*spoken, rest.text]) == "Of course, it is Paris. It lies on the Seine."


async def test_an_interrupted_reply_leaves_nothing_behind() -> None:
    """After an interruption nothing of the old reply is spoken with the new one."""
    pieces = aggregator(NATURAL)
    assert [piece async for piece in pieces.aggregate("A half said")] == []
    await pieces.handle_interruption()
    assert [piece.text async for piece in pieces.aggregate("Good day, friend")] == ["Good day,"]


def test_a_cut_without_a_break_comes_before_a_word_that_begins_a_phrase() -> None:
    """The last such word in the second half of the words is where a pause is heard least."""
    rule = Clause(rule="words", most_words=10)
    long = "That's a classic example of a mathematical concept that has been debated"
    assert ready(long[: long.index(" been")], rule) is None
    count = ready(long, rule)
    assert count is not None
    assert long[:count] == "That's a classic example of a mathematical concept"
    plain = "one two three four five six seven eight nine ten eleven"
    assert ready(plain, rule) == len("one two three four five six seven eight nine ten")
    assert ready("The first month of the year is January.", rule) == len(
        "The first month of the year is January."
    )
