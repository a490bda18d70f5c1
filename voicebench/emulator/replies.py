"""What the emulated models say: short everyday answers matched to the question's words, or plain prose of
any length."""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from voicebench.emulator.tokens import Piece, cut, take

LONG_REPLY_TOKENS = 800
"""A long answer runs on to the end of the passage that reaches this many tokens."""


@dataclass(frozen=True)
class _Answer:
    words: tuple[frozenset[str], ...]
    text: str


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "replies.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _answers() -> tuple[_Answer, ...]:
    return tuple(
        _Answer(tuple(frozenset(entry.split("|")) for entry in row["words"]), row["text"])
        for row in _table()["answer"]
    )


@lru_cache(maxsize=1)
def _topics() -> tuple[tuple[str, ...], ...]:
    data = tomllib.loads((files(__package__) / "prose.toml").read_text(encoding="utf-8"))
    return tuple(tuple(passages) for passages in data["topics"].values())


def asks_for_long(*texts: str) -> bool:
    """Whether one of the texts holds a phrase that asks for a long answer."""
    return any(marker in text.casefold() for text in texts for marker in _table()["long_markers"])


def short_answer(question: str, rng: random.Random) -> str:
    """One or two sentences that fit the words of `question`; a polite generic answer where none does."""
    words = set(re.findall(r"[^\W_]+", question.casefold()))
    best: _Answer | None = None
    for answer in _answers():
        if all(entry & words for entry in answer.words) and (
            best is None or len(answer.words) > len(best.words)
        ):
            best = answer
    return best.text if best else str(rng.choice(_table()["generic"]))


def unicode_answer() -> str:
    """A sentence whose characters take two, three and four bytes in UTF-8."""
    return str(_table()["unicode"])


def prose(tokens: int, rng: random.Random) -> tuple[Piece, ...]:
    """Plain prose to the end of the passage that reaches `tokens` tokens, its topics and passages in random
    order."""
    pieces: list[Piece] = []
    length = 0
    topics: list[tuple[str, ...]] = []
    while length < tokens:
        topics = topics or rng.sample(_topics(), len(_topics()))
        topic = topics.pop()
        for passage in rng.sample(topic, len(topic)):
            added = cut(f" {passage}" if pieces else passage)
            pieces.extend(added)
            length += sum(piece.tokens for piece in added)
            if length >= tokens:
                break
    return tuple(pieces)


def prose_of(tokens: int, rng: random.Random) -> tuple[Piece, ...]:
    """Plain prose of exactly `tokens` tokens; where it breaks off inside a sentence, the last token is a
    full stop."""
    pieces = take(prose(tokens, rng), tokens)
    if pieces and not pieces[-1].text.strip().endswith((".", "?", "!")):
        pieces = (*pieces[:-1], Piece(".", pieces[-1].tokens))
    return pieces


def prose_characters(characters: int, rng: random.Random) -> str:
    """Plain prose of exactly `characters` characters."""
    text = "".join(piece.text for piece in prose(max(1, characters // 2), rng))
    return text[:characters]


def reasoning(tokens: int) -> tuple[Piece, ...]:
    """Thoughts of exactly `tokens` tokens."""
    passage = cut(str(_table()["reasoning"]))
    return take(passage * (tokens // len(passage) + 1), tokens)
