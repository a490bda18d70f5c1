"""Did the provider serve what was asked? Speeds and service tiers, by the names that vendors use for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voicebench.plan.modes import Mode

CHECKED = ("speed", "service_tier")
"""The options whose served value a provider tells."""

SAME_TIER = {"priority": "fast"}
"""Tiers with two names: OpenAI's `priority` is called `fast` from GPT-6 on."""

LEFT_TO_THE_PROVIDER = frozenset({"auto", "standard_only"})
"""Asking for one of these names no tier: whatever is served was asked for."""


def asked_not_served(mode: Mode, asked: Mapping[str, Any], served: Mapping[str, Any]) -> bool:
    """Was another speed or tier served than was asked for?

    `asked` are the request's options, with the mode's own where the request does not tell; `served` is what
    the provider said. An option that was not asked for, was left to the provider, or of which the provider
    said nothing is no difference: see `not_told` for the last.
    """
    return any(
        served.get(name) is not None and _name(served[name]) != _name(wanted)
        for name, wanted in _wanted(mode, asked).items()
    )


def not_told(mode: Mode, asked: Mapping[str, Any], served: Mapping[str, Any]) -> bool:
    """Was a speed or tier asked for of which the provider did not say whether it was served?"""
    return any(served.get(name) is None for name in _wanted(mode, asked))


def _wanted(mode: Mode, asked: Mapping[str, Any]) -> dict[str, str]:
    """The speeds and tiers that were asked for by name."""
    found = {name: asked.get(name, mode.options.get(name)) for name in CHECKED}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, str) and value not in LEFT_TO_THE_PROVIDER
    }


def _name(value: Any) -> str:
    told = str(value).lower()
    return SAME_TIER.get(told, told)
