"""The one place that cuts text into tokens: the o200k vocabulary, bundled with `bpe-openai` (no download)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that can stand in an event, and the number of tokens it is made of.

    `tokens` is 1 except where one character spans several tokens (emoji, rare scripts): a piece never ends
    inside a character.
    """

    text: str
    tokens: int


@lru_cache(maxsize=1)
def _encoding() -> Any:
    """The o200k encoder. Loading takes about half a second, so it happens at first use only."""
    with warnings.catch_warnings():
        # The library opens its data with a call that Python 3.11 and 3.12 deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

    return bpe_openai.get_encoding("o200k_base")


def count(text: str) -> int:
    """The number of o200k tokens in `text`; 0 for empty text. Text that looks like a special token is plain
    text."""
    return len(_encoding().encode_ordinary(text)) if text else 0


@lru_cache(maxsize=256)
def cut(text: str) -> tuple[Piece, ...]:
    """`text` as pieces whose texts join to it and whose tokens sum to `count(text)`."""
    if not text:
        return ()
    encoding = _encoding()
    pieces: list[Piece] = []
    held, tokens = b"", 0
    for token in encoding.encode_ordinary(text):
        held += encoding.decode_single_token_bytes(token)
        tokens += 1
        try:
            piece = held.decode("utf-8")
        except UnicodeDecodeError:
            continue
        pieces.append(Piece(piece, tokens))
        held, tokens = b"", 0
    if held:
        raise AssertionError(f"the tokens of {text!r} do not end on a character")
    return tuple(pieces)


def running_counts(texts: list[str]) -> list[int]:
    """Cumulative o200k tokens after each of `texts`, read as one growing text; never falling.

    A recorded delta is not a token: only the tokens of the text so far are well defined, and the last count
    equals `count` of the whole.
    """
    counts: list[int] = []
    so_far, whole = "", count("".join(texts))
    for text in texts:
        so_far += text
        counts.append(min(max(count(so_far), counts[-1] if counts else 0), whole))
    if counts:
        counts[-1] = whole
    return counts


def take(pieces: tuple[Piece, ...], tokens: int) -> tuple[Piece, ...]:
    """The first pieces that hold at most `tokens` tokens together."""
    taken: list[Piece] = []
    room = tokens
    for piece in pieces:
        if piece.tokens > room:
            break
        taken.append(piece)
        room -= piece.tokens
    return tuple(taken)
