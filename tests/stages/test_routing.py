"""Which mode answers a turn, by what was said."""

from __future__ import annotations

from typing import Any

import pytest

from voicebench.errors import BadRequest
from voicebench.plan.config import Config, PluginSpec
from voicebench.stages.route_rules import rule_of
from voicebench.stages.routing import RouteSettings, check, picked


def rule(**spec: Any) -> Any:
    """The rule that a configuration's keys name."""
    return rule_of(PluginSpec.model_validate(spec), "test")


def by_length(transcript: str) -> str:
    """A rule of one's own."""
    return "long" if len(transcript) > 3 else "short"


def test_by_number_of_words() -> None:
    """Up to the limit it is simple."""
    count = rule(kind="words", at_most=3)
    assert [count(text) for text in ("", "one two three", "one two three four")] == [
        "simple",
        "simple",
        "hard",
    ]


def test_by_keywords() -> None:
    """A hard word counts whole and in any case."""
    words = rule(kind="keywords", hard=["why", "compare"])
    assert [words(text) for text in ("Why?", "the whys", "Compare them", "When")] == [
        "hard",
        "simple",
        "hard",
        "simple",
    ]


def test_by_a_function_of_ones_own() -> None:
    """`module:function` tells the label, which leads to a mode."""
    own = rule(kind=f"{__name__}:by_length")
    assert picked(own, {"long": "a", "short": "b"}, "hi") == ("short", "b")
    with pytest.raises(BadRequest, match="'long', which leads to no mode"):
        picked(own, {"short": "b"}, "hello")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kind": "word"}, "words"),
        ({"kind": "words"}, "at_most"),
        ({"kind": "keywords", "hard": []}, "hard"),
        ({"kind": "nowhere:rule"}, "cannot be imported"),
    ],
)
def test_a_rule_that_is_none_is_refused(spec: dict[str, Any], said: str) -> None:
    """The refusal names what is wrong."""
    with pytest.raises(BadRequest) as refused:
        check(RouteSettings(rule=PluginSpec.model_validate(spec), to={"simple": "a"}))
    assert said in str(refused.value) + refused.value.remedy


def test_a_route_is_a_mode_made_of_its_choices() -> None:
    """Each mode is in it once, and its ids are checked."""
    entry = {
        "id": "route/a",
        "rule": {"kind": "words", "at_most": 5},
        "to": {"simple": "emulated/gpt-5.3-codex-spark", "hard": "emulated/opus-4.6"},
        "sibling": "emulated/opus-4.6",
    }
    mode = Config.model_validate({"modes": ["route/a"], "routes": [entry]}).own["route/a"]
    assert [one.id for one in mode.members] == ["emulated/gpt-5.3-codex-spark", "emulated/opus-4.6"]
    assert (mode.kind, mode.sibling) == ("emulated", "emulated/opus-4.6")
    wrong = {**entry, "to": {"simple": "emulated/none"}}
    with pytest.raises(BadRequest, match="routes, route/a: unknown mode"):
        _ = Config.model_validate({"modes": ["route/a"], "routes": [wrong]}).own
