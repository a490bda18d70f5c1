"""What a request costs, from the provider's counts and the published price."""

from __future__ import annotations

import pytest

from voicebench.plan.modes import Price
from voicebench.turns.price import usd_of
from voicebench.turns.records import Usage

PRICE = Price(input=5, output=25, cache_read=0.5, cache_write=6.25)
UNKNOWN_CACHE = Price(input=5, output=25)


@pytest.mark.parametrize(
    ("price", "usage", "usd"),
    [
        (PRICE, Usage(input_tokens=1000, output_tokens=200), 0.01),
        (
            PRICE,
            Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=600, cache_write_tokens=400),
            0.0028,
        ),
        (PRICE, Usage(input_tokens=0, output_tokens=100, reasoning_tokens=60), 0.0025),
        (UNKNOWN_CACHE, Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=0), 0.005),
        (UNKNOWN_CACHE, Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=600), None),
        (UNKNOWN_CACHE, Usage(input_tokens=1000, output_tokens=0, cache_write_tokens=1), None),
        (PRICE, Usage(input_tokens=1000), None),
        (PRICE, Usage(output_tokens=1000), None),
        (PRICE, None, None),
        (None, Usage(input_tokens=1000, output_tokens=200), None),
    ],
)
def test_tokens_at_their_prices(price: Price | None, usage: Usage | None, usd: float | None) -> None:
    """Cached tokens have their own price, reasoning is output; what is not known leaves the cost empty."""
    assert usd_of(price, usage) == (None if usd is None else pytest.approx(usd))
