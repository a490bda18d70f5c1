"""Was the person understood, and is the answer right? Beside every speed stands what it is worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from voicebench.turns.records import Wer


@cache
def _normalizer(language: str) -> Callable[[str], str]:
    """Whisper's own text normaliser: the English one for English, the basic one elsewhere."""
    if language.split("-")[0].lower() == "en":
        from whisper_normalizer.english import EnglishTextNormalizer

        english: Callable[[str], str] = EnglishTextNormalizer()
        return english
    from whisper_normalizer.basic import BasicTextNormalizer

    basic: Callable[[str], str] = BasicTextNormalizer()
    return basic


_PLUS = re.compile(r"(?<=\d)\s*\+\s*(?=\d)")


def normalized(text: str, language: str | None = None) -> str:
    """`text` as Whisper's evaluation compares it: lower case, no punctuation, numbers as digits.

    The English normaliser keeps a spoken plus and drops a written one, so a sign between digits is first
    written as the word. Text without a letter or digit is empty: the normaliser would leave its full stops.
    """
    if not any(character.isalnum() for character in text):
        return ""
    return _normalizer(language or "en")(_PLUS.sub(" plus ", text)).strip()


def word_errors(reference: str | None, transcript: str, language: str | None = None) -> Wer | None:
    """Word errors of a transcript: substitutions + deletions + insertions over the reference's words.

    Both are normalised first. None where there is no reference or it has no words.
    """
    if reference is None:
        return None
    wanted = normalized(reference, language)
    if not wanted:
        return None
    import jiwer

    heard = normalized(transcript, language)
    words = len(wanted.split())
    if not heard:
        return Wer(errors=words, words=words)
    result = jiwer.process_words(wanted, heard)
    return Wer(errors=result.substitutions + result.deletions + result.insertions, words=words)


def answers_correctly(
    reply: str | None, acceptable: Sequence[str], language: str | None = None
) -> bool | None:
    """Does the reply hold one of the acceptable answers as whole words? None where none is given."""
    if not acceptable:
        return None
    said = normalized(reply or "", language)
    for answer in acceptable:
        wanted = normalized(answer, language)
        if wanted and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", said):
            return True
    return False
