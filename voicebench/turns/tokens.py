"""How many tokens each text delta holds: the provider's final usage shared out over the stream.

The only truth is the usage at a stream's end; a delta may hold several tokens. The cumulative text is cut
by a tokenizer, and the counts are scaled so that their sum is the visible tokens. Where no tokenizer fits,
characters share them out. The record says which way was used.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import cache

Tokenizer = Callable[[str], int]
"""The number of tokens in a text."""


@cache
def o200k() -> Tokenizer:
    """The o200k vocabulary, shipped offline by bpe-openai."""
    with warnings.catch_warnings():
        # The library opens its data in a way that importlib.resources calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {"o200k": o200k}


def share_out(
    texts: Sequence[str], visible_tokens: int | None, tokenizer: str | None
) -> tuple[list[float], str | None, bool]:
    """The tokens of each delta, how they were counted, and whether that is an estimate.

    `visible_tokens` is the provider's count of visible output tokens, None where no usage came. `tokenizer`
    is a name in TOKENIZERS, None where none fits the model. Without text: no counts and no method. Without
    usage the counts are an estimate: the tokenizer's own, or where there is none, one token per delta.
    """
    if not texts:
        return [], None, False
    if tokenizer is not None:
        raw, method = _cumulative(texts, TOKENIZERS[tokenizer]()), tokenizer
    elif visible_tokens is None:
        return [1.0] * len(texts), "one per delta", True
    else:
        raw, method = [float(len(text)) for text in texts], "characters"
    total = sum(raw)
    if visible_tokens is None:
        return raw, method, True
    if total <= 0:
        return [visible_tokens / len(texts)] * len(texts), "evenly, scaled to usage", False
    if total == visible_tokens:
        return raw, f"{method}, equal to usage", False
    scale = visible_tokens / total
    return [count * scale for count in raw], f"{method}, scaled to usage", False


def _cumulative(texts: Sequence[str], count: Tokenizer) -> list[float]:
    """The growth of the cumulative text's token count with each delta, never negative."""
    counts: list[float] = []
    text, seen = "", 0
    for piece in texts:
        text += piece
        now = max(seen, count(text))
        counts.append(float(now - seen))
        seen = now
    return counts
