"""What tells a good reply from a less good one: `score(transcript, reply) -> float`, more is better.

A scorer is a kind of the `scorer` plug point, whose plug-in builds such a function from its settings; or any
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

Scorer = Callable[[str, str], float]


class KeywordSettings(Settings):
    """Which words a good reply holds."""

    words: tuple[str, ...] = Field(min_length=1)


def build_keywords(settings: KeywordSettings) -> Scorer:
    """The share of the words that the reply holds, whole and in any case: 0 to 1."""
    wanted = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE) for word in settings.words]

    def score(transcript: str, reply: str) -> float:
        return sum(1 for word in wanted if word.search(reply)) / len(wanted)

    return score


def scorer_of(spec: PluginSpec, where: str) -> Scorer:
    """The scorer that a configuration names. Raises BadRequest where there is none such."""
    if ":" in spec.kind:
        found: Scorer = function_at(spec, where)
        return found
    plugin = registry.find("scorer", spec.kind, where)
    built: Scorer = plugin.build(validated(plugin.settings, spec.settings, f"{where}, scorer ({spec.kind})"))
    return built


KEYWORDS = Plugin(settings=KeywordSettings, build=build_keywords, title="words that a reply should hold")
