"""Which mode is to answer: `rule(transcript) -> label`, before the model is asked.

A rule is a kind of the `route` plug point, whose plug-in builds such a function from its settings; or any
function, named as `module:function`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pydantic import Field

from voicebench.plan import registry
from voicebench.plan.config import PluginSpec, Settings, validated
from voicebench.plan.registry import Plugin
from voicebench.stages.dotted import function_at

Rule = Callable[[str], str]

SIMPLE, HARD = "simple", "hard"


class WordCount(Settings):
    """How long a simple question is."""

    at_most: int = Field(ge=0)
    """With so many words a transcript is still simple."""


class Keywords(Settings):
    """Which words make a question hard."""

    hard: tuple[str, ...] = Field(min_length=1)


def build_words(settings: WordCount) -> Rule:
    """`simple` for at most so many words, else `hard`."""

    def rule(transcript: str) -> str:
        return SIMPLE if len(transcript.split()) <= settings.at_most else HARD

    return rule


def build_keywords(settings: Keywords) -> Rule:
    """`hard` where one of the words stands in the transcript, whole and in any case, else `simple`."""
    words = "|".join(re.escape(word) for word in settings.hard)
    found = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)

    def rule(transcript: str) -> str:
        return HARD if found.search(transcript) else SIMPLE

    return rule


def rule_of(spec: PluginSpec, where: str) -> Rule:
    """The rule that a configuration names. Raises BadRequest where there is none such."""
    if ":" in spec.kind:
        found: Rule = function_at(spec, where)
        return found
    plugin = registry.find("route", spec.kind, where)
    built: Rule = plugin.build(validated(plugin.settings, spec.settings, f"{where}, rule ({spec.kind})"))
    return built


WORDS = Plugin(settings=WordCount, build=build_words, title="number of words")
KEYWORDS = Plugin(settings=Keywords, build=build_keywords, title="words that make it hard")
