"""Was another speed or tier served than was asked for?"""

from __future__ import annotations

from typing import Any

import pytest

from voicebench.plan.modes import Mode
from voicebench.plan.served import asked_not_served, not_told

MODE = Mode(id="x/y", kind="live", provider="x", api="anthropic", model="y")


@pytest.mark.parametrize(
    ("asked", "served", "differs", "silent"),
    [
        ({"speed": "fast"}, {"speed": "fast"}, False, False),
        ({"speed": "fast"}, {"speed": "standard"}, True, False),
        ({"speed": "fast"}, {"model": "y"}, False, True),
        ({}, {"speed": "standard", "service_tier": "standard"}, False, False),
        ({"service_tier": "priority"}, {"service_tier": "priority"}, False, False),
        ({"service_tier": "priority"}, {"service_tier": "fast"}, False, False),
        ({"service_tier": "fast"}, {"service_tier": "priority"}, False, False),
        ({"service_tier": "priority"}, {"service_tier": "default"}, True, False),
        ({"service_tier": "ultrafast"}, {"service_tier": "fast"}, True, False),
        ({"service_tier": "flex"}, {"service_tier": "flex"}, False, False),
        ({"service_tier": "default"}, {"service_tier": "priority"}, True, False),
        ({"service_tier": "auto"}, {"service_tier": "default"}, False, False),
        ({"service_tier": "auto"}, {}, False, False),
        ({"effort": "low"}, {"service_tier": "default"}, False, False),
        ({"speed": None}, {"speed": "standard"}, False, False),
    ],
)
def test_speeds_and_tiers_by_their_names(
    asked: dict[str, Any], served: dict[str, Any], differs: bool, silent: bool
) -> None:
    """A served speed or tier other than the asked one is a difference; two names of one tier are none."""
    assert asked_not_served(MODE, asked, served) is differs
    assert not_told(MODE, asked, served) is silent


def test_the_modes_own_options_count_where_the_request_is_not_known() -> None:
    """A stage that keeps no request is held against what the mode stands for."""
    fast = MODE.model_copy(update={"options": {"speed": "fast"}})
    assert asked_not_served(fast, {}, {"speed": "standard"})
    assert not_told(fast, {}, {})
