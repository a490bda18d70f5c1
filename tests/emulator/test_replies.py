"""What the emulated models say, and how it is cut into tokens."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicebench.emulator import replies
from voicebench.emulator.tokens import count, cut, running_counts, take


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("What is the capital city of France?", "Paris"),
        ("Tell me, how many days are in a week?", "seven"),
        ("What color is a clear daytime sky?", "blue"),
        ("Do you know what two plus two is?", "four"),
        ("How many legs does a spider have?", "eight"),
        ("What is the opposite of the word hot?", "cold"),
        ("How many months are there in a year?", "twelve"),
        ("What do we call frozen water?", "ice"),
        ("Please tell me what color fresh grass is.", "green"),
        ("Which planet is called the red planet?", "Mars"),
        ("What is the first month of the year?", "January"),
        ("Which day comes after Monday?", "Tuesday"),
        ("What is the largest ocean on Earth?", "Pacific"),
        ("How many hours are there in a day?", "twenty-four"),
        ("I have three apples and two oranges. How many pieces of fruit is that?", "five"),
        ("I have a question about Japan. What is its capital city?", "Tokyo"),
        ("WHAT'S THE CAPITAL OF ITALY", "Rome"),
        ("how many minutes are there in an hour", "sixty"),
        ("Which pet animal says meow?", "cat"),
        ("I am cooking dinner for six people, please suggest a main course and a dessert.", "lasagna"),
    ],
)
def test_everyday_questions_get_their_answer(question: str, fact: str) -> None:
    """The answer fits the question's words, in one or two spoken sentences."""
    answer = replies.short_answer(question, random.Random(0))
    assert fact in answer
    assert 3 <= count(answer) <= 45


def test_other_questions_get_a_polite_answer() -> None:
    """Where no row fits there is a generic answer, and the seed says which."""
    answers = {replies.short_answer("Qwertz uiop?", random.Random(seed)) for seed in range(20)}
    assert len(answers) > 1
    assert all(answer.endswith("?") for answer in answers)


def test_a_request_for_a_long_answer_is_heard() -> None:
    """The marker phrases count in any of the texts and in any case."""
    assert replies.asks_for_long("", "Tell me AT LENGTH about tea.")
    assert replies.asks_for_long("Always give a long answer.", "Tea?")
    assert not replies.asks_for_long("Be brief.", "How long is a mile?")


def test_prose_is_seeded_and_long() -> None:
    """Prose reaches its length, ends a sentence, does not repeat a passage in 700 tokens, and follows its
    seed."""
    first, again, other = (replies.prose(700, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    text = "".join(piece.text for piece in first)
    assert count(text) >= 700
    assert text.endswith(".")
    sentences = text.split(". ")
    assert len(set(sentences)) == len(sentences)
    assert sum(piece.tokens for piece in replies.prose(5000, random.Random(3))) >= 5000


def test_prose_of_a_number_of_characters() -> None:
    """prose_characters gives exactly that many."""
    assert len(replies.prose_characters(333, random.Random(0))) == 333


@settings(deadline=None)
@given(st.text(max_size=60))
def test_pieces_join_to_the_text(text: str) -> None:
    """Pieces are whole characters that join to the text, and their tokens are its tokens."""
    pieces = cut(text)
    assert "".join(piece.text for piece in pieces) == text
    assert sum(piece.tokens for piece in pieces) == count(text)
    assert all(piece.text and piece.tokens >= 1 for piece in pieces)


def test_special_tokens_are_plain_text() -> None:
    """Text that looks like a special token is text like any other."""
    assert "".join(piece.text for piece in cut("a <|endoftext|> b")) == "a <|endoftext|> b"


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_running_counts_end_at_the_whole(texts: list[str]) -> None:
    """Cumulative counts never fall and end at the count of the joined text."""
    counts = running_counts(texts)
    assert counts == sorted(counts)
    assert len(counts) == len(texts)
    if texts:
        assert counts[-1] == count("".join(texts))


def test_taking_pieces_never_exceeds_the_tokens() -> None:
    """A character of several tokens that does not fit whole is left out."""
    pieces = cut("👩‍👩‍👧")
    assert pieces[0].tokens > 1
    assert take(pieces, pieces[0].tokens - 1) == ()
    assert take(pieces, 10_000) == pieces
