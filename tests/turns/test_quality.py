"""Word errors and right answers: texts are compared as Whisper's own evaluation does."""

from __future__ import annotations

import pytest

from voicebench.turns.quality import answers_correctly, normalized, word_errors


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("What's the CAPITAL of France?!", "what is the capital of france"),
        ("twenty-one days", "21 days"),
        ("  colour  ", "color"),
        ("", ""),
        ("...", ""),
    ],
)
def test_case_punctuation_numbers_and_spelling_do_not_count(said: str, wanted: str) -> None:
    """Upper case, punctuation, numbers in words and British spelling are made alike."""
    assert normalized(said) == wanted


def test_another_language_keeps_its_words() -> None:
    """German is not put through the English rules: its numbers and spelling stay."""
    assert normalized("Einundzwanzig Tage!", "de") == "einundzwanzig tage"


@pytest.mark.parametrize("language", ["en", "en-GB", "EN", None])
def test_english_is_known_by_any_of_its_codes(language: str | None) -> None:
    """A region or upper case in the code makes no other language of it; without a code it is English."""
    assert normalized("seven colours", language) == "7 colors"


@pytest.mark.parametrize(
    ("reference", "transcript", "errors", "words"),
    [
        ("How many legs does a spider have?", "how many legs does a spider have", 0, 7),
        ("How many legs does a spider have?", "How many eggs does a spider have?", 1, 7),
        ("two plus two", "2 + 2", 0, 2),
        ("one and only", "one only", 1, 3),
        ("yes", "yes it is", 2, 1),
        ("frozen water", "", 2, 2),
        ("frozen water", "...", 2, 2),
    ],
)
def test_errors_are_substitutions_deletions_and_insertions(
    reference: str, transcript: str, errors: int, words: int
) -> None:
    """Each wrong, lost and added word counts once, over the words of the reference."""
    found = word_errors(reference, transcript)
    assert found is not None
    assert (found.errors, found.words) == (errors, words)


@pytest.mark.parametrize("reference", [None, "", "?!", "um"])
def test_without_a_reference_there_is_no_figure(reference: str | None) -> None:
    """Nothing to compare with gives nothing, not 0 errors."""
    assert word_errors(reference, "anything at all") is None


@pytest.mark.parametrize(
    ("reply", "answers", "right"),
    [
        ("It is Paris.", ["Paris"], True),
        ("PARIS!", ["Paris"], True),
        ("There are seven days.", ["7"], True),
        ("There are 7 days.", ["seven"], True),
        ("It has eighteen.", ["eight", "8"], False),
        ("Comparison", ["Paris"], False),
        ("I do not know.", ["Paris", "Lutetia"], False),
        ("New York, of course", ["new york"], True),
        ("C++ it is", ["C++"], True),
        (None, ["Paris"], False),
        ("", ["Paris"], False),
    ],
)
def test_an_answer_counts_as_whole_words_only(reply: str | None, answers: list[str], right: bool) -> None:
    """A reply is right where it holds an acceptable answer as whole words, however it is written."""
    assert answers_correctly(reply, answers) is right


def test_a_sample_without_answers_gives_no_verdict() -> None:
    """Where nobody wrote down an answer, a reply is neither right nor wrong."""
    assert answers_correctly("It is Paris.", []) is None


def test_an_answer_of_punctuation_alone_matches_nothing() -> None:
    """An answer that the comparison leaves empty does not make every reply right."""
    assert answers_correctly("It is Paris.", ["?"]) is False
