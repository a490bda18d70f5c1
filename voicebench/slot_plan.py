"""What a slot run is asked to do: modes, prompts, number of requests, checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicebench import emulated
from voicebench.errors import BadRequest
from voicebench.models.resolve import resolve_llm
from voicebench.plan import registry
from voicebench.plan.config import Config, PluginSpec, validated
from voicebench.plan.modes import Mode, find_mode
from voicebench.plan.plan import PlannedTurn, expand
from voicebench.plan.prompts import slot_prompts
from voicebench.plan.registry import Plugin
from voicebench.slot_streams import replay_mode

SEED_MODES = (
    "emulated/opus-4.6",
    "emulated/opus-4.6-fast",
    "emulated/gpt-5.3-codex",
    "emulated/gpt-5.3-codex-spark",
)
"""What is compared where no mode is named."""


@dataclass(frozen=True)
class SlotPlan:
    """All that a run needs, checked: nothing has been started yet."""

    config: Config
    modes: tuple[Mode, ...]
    requests: int
    turns: tuple[PlannedTurn, ...]
    plugins: Mapping[str, Plugin]
    model_ids: tuple[str, ...] = ()
    where: str = "command line"


def slot_config(
    base: Config,
    *,
    modes: Sequence[str] | None,
    slots_ms: Sequence[float] | None,
    max_tokens: int,
    system_prompt: str,
    replays: Sequence[Path] = (),
    seed: int | None = None,
) -> Config:
    """The configuration of a slot run: `base` with what the command line says instead.

    Without `modes` the four seed modes and the replays; a mode of `replays` is added to the config's own.
    Raises BadRequest for a value that is not allowed, or a mode that is named twice.
    """
    replayed = [replay_mode(path) for path in replays]
    named = [*(modes or (() if replayed else SEED_MODES)), *(mode.id for mode in replayed)]
    if len(set(named)) < len(named):
        raise BadRequest("A mode is named twice.", "Name each --mode and --replay once.")
    changes: dict[str, Any] = {
        "modes": named,
        "own_modes": [*base.model_dump()["own_modes"], *(mode.model_dump() for mode in replayed)],
        "conversation": {"system_prompt": system_prompt, "max_tokens": max_tokens},
    }
    if slots_ms:
        changes["slots_ms"] = tuple(dict.fromkeys(slots_ms))
    if seed is not None:
        changes["seed"] = seed
    return validated(Config, {**base.model_dump(), **changes}, "command line")


def make_slot_plan(
    config: Config, requests: int, *, where: str = "command line", variables: Mapping[str, str] | None = None
) -> SlotPlan:
    """Check the request and expand it: each of the config's modes gets `requests` measured ones.

    Raises BadRequest, MissingExtra, MissingKey or ModelFileProblem. Opens no connection.
    """
    modes = tuple(find_mode(mode_id, config.own, where) for mode_id in config.modes)
    emulated.check(modes)
    found = os.environ if variables is None else variables
    plugins: dict[str, Plugin] = {}
    wanted: list[str] = []
    for mode in emulated.placed(modes):
        plugin = registry.find("llm", mode.api, f"mode {mode.id}")
        if plugin.ask is None:
            raise BadRequest(
                f"{where}: the mode {mode.id} speaks in a pipeline only ({plugin.title}).",
                "Measure it with `voicebench batch`.",
            )
        settings = settings_of(plugin, mode)
        needs = plugin.needs(settings)
        registry.require(needs, f"The mode {mode.id} ({plugin.title})", found)
        plugin.check(settings)
        plugins[mode.id] = plugin
        wanted.extend(needs.models)
        if mode.api == "llama-cpp":
            source = resolve_llm(mode.settings.get("model") or mode.model)
            wanted.extend([source.model_id] if source.model_id else [])
    prompts = [prompt.id for prompt in slot_prompts()]
    repeats = -(-requests // len(prompts))
    turns = expand(config.modes, prompts, repeats=repeats, seed=config.seed)
    return SlotPlan(
        config=config,
        modes=modes,
        requests=requests,
        turns=tuple(turns[: requests * len(modes)]),
        plugins=plugins,
        model_ids=tuple(dict.fromkeys(wanted)),
        where=where,
    )


def settings_of(plugin: Plugin, mode: Mode) -> Any:
    """The mode's settings, checked. Raises BadRequest."""
    spec = PluginSpec(kind=mode.api, **mode.settings)
    return validated(plugin.settings, spec.settings, f"mode {mode.id}, llm ({mode.api})")
