"""The prompts of `voicebench slot`: everyday questions that want a long spoken answer."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class SlotPrompt:
    """One prompt; its id stands as the sample in the records."""

    id: str
    text: str


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(files("voicebench.plan").joinpath("prompts.toml").read_text("utf-8"))


def slot_prompts() -> tuple[SlotPrompt, ...]:
    """All prompts, in their order."""
    return tuple(SlotPrompt(row["id"], row["text"]) for row in _file()["prompt"])


def slot_system_prompt() -> str:
    """What the model is told beside the prompt."""
    return str(_file()["system"])
