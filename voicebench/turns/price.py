"""What a request cost: the provider's token counts at the mode's published prices."""

from __future__ import annotations

from voicebench.plan.modes import Price
from voicebench.turns.records import Usage

TOKENS = 1_000_000
"""Prices are for so many tokens."""


def usd_of(price: Price | None, usage: Usage | None) -> float | None:
    """The cost in US dollars: (input - read - written) * input price + read * cache read price + written *
    cache write price + output * output price, each per million tokens.

    None where the price or the counts are not known, and where tokens went through the cache at a price that
    is not known.
    """
    if price is None or usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    plain = max(0, usage.input_tokens - read - written)
    parts = (
        (plain, price.input),
        (read, price.cache_read),
        (written, price.cache_write),
        (usage.output_tokens, price.output),
    )
    total = 0.0
    for tokens, dollars in parts:
        if tokens and dollars is None:
            return None
        total += tokens * (dollars or 0.0)
    return total / TOKENS
