"""The plug points: which kinds of ASR, LLM, TTS, turn detector, scorer and route there are.

A built-in is a row `kind -> "module:object"`; another package adds one by an entry point in the group
`voicebench.<point>`. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from pydantic import BaseModel

from voicebench.errors import BadRequest, MissingExtra, MissingKey

POINTS = ("asr", "llm", "tts", "turn", "scorer", "route")

BUILT_IN: dict[str, dict[str, str]] = {
    "asr": {
        "whisper": "voicebench.stages.asr_whisper:PLUGIN",
        "pipecat": "voicebench.stages.any_pipecat:ASR",
        "scripted": "voicebench.stages.scripted:ASR",
    },
    "llm": {
        "anthropic": "voicebench.stages.llm_anthropic:PLUGIN",
        "openai-chat": "voicebench.stages.llm_openai:CHAT",
        "openai-responses": "voicebench.stages.llm_responses:HTTP",
        "openai-responses-ws": "voicebench.stages.llm_responses_ws:WEBSOCKET",
        "llama-cpp": "voicebench.stages.llm_local:PLUGIN",
        "candidates": "voicebench.stages.candidates:PLUGIN",
        "route": "voicebench.stages.routing:PLUGIN",
        "pipecat": "voicebench.stages.any_pipecat:LLM",
        "scripted": "voicebench.stages.scripted:LLM",
    },
    "tts": {
        "piper": "voicebench.stages.tts_piper:PLUGIN",
        "pipecat": "voicebench.stages.any_pipecat:TTS",
        "tone": "voicebench.stages.scripted:TTS",
    },
    "turn": {
        "smart_turn": "voicebench.stages.turn:SMART_TURN",
        "speech_timeout": "voicebench.stages.turn:SPEECH_TIMEOUT",
        "vad": "voicebench.stages.turn:VAD_ONLY",
        "asr": "voicebench.stages.turn:ASR_TURN",
    },
    "scorer": {"keywords": "voicebench.stages.scorers:KEYWORDS"},
    "route": {
        "words": "voicebench.stages.route_rules:WORDS",
        "keywords": "voicebench.stages.route_rules:KEYWORDS",
    },
}


@dataclass(frozen=True)
class Needs:
    """What a plug-in wants to be there before anything is loaded."""

    libraries: tuple[tuple[str, str], ...] = ()
    """(import name, extra that brings it)."""
    keys: tuple[str, ...] = ()
    """Environment variables that must hold a key."""
    models: tuple[str, ...] = ()
    """Ids of the model catalogue that must be in the cache."""


@dataclass(frozen=True)
class Plugin:
    """One kind of a plug point."""

    settings: type[BaseModel]
    """The settings it takes, a frozen model that refuses unknown fields."""
    build: Callable[..., Any]
    """Makes the service from its settings; the arguments depend on the plug point."""
    needs: Callable[[Any], Needs] = field(default=lambda settings: Needs())
    """What these settings want to be there."""
    check: Callable[[Any], None] = field(default=lambda settings: None)
    """Refuses settings that name something which is not there; asked when libraries and keys are."""
    ask: Callable[..., Any] | None = None
    """For a language model: makes what asks it without a pipeline; None where it speaks in one only."""
    by_segment: Callable[[Any], bool | None] = field(default=lambda settings: None)
    """For an ASR: does it transcribe whole segments of speech? None: only the built service tells."""
    load: Callable[..., object] | None = None
    """Loads into what the run shares, where that takes long, before `build` asks for it; takes what `build`
    takes up to and with it. None where there is nothing to load."""
    retries: bool = False
    """For a language model: are requests made through a tap that can make them again?"""
    title: str = ""


def kinds(point: str) -> list[str]:
    """The known kinds of a plug point, built-in and added, sorted."""
    added = [entry.name for entry in entry_points(group=f"voicebench.{point}")]
    return sorted({*BUILT_IN[point], *added})


def find(point: str, kind: str, where: str = "") -> Plugin:
    """The plug-in of that kind.

    Raises BadRequest for an unknown kind, naming the known ones, and for an added one that cannot be loaded.
    `where` says which file and key asked for it.
    """
    target = BUILT_IN[point].get(kind)
    try:
        if target is not None:
            module, _, name = target.partition(":")
            found = getattr(importlib.import_module(module), name)
        else:
            for entry in entry_points(group=f"voicebench.{point}", name=kind):
                found = entry.load()
                break
            else:
                raise _unknown(point, kind, where)
    except BadRequest:
        raise
    except Exception as error:
        # An import runs another package's code, which may raise anything.
        raise BadRequest(f"{where or point}: the kind {kind!r} cannot be loaded: {error}") from error
    if not isinstance(found, Plugin):
        raise BadRequest(
            f"{where or point}: the entry point {kind!r} holds {type(found).__name__}, not a Plugin.",
            "It must name a voicebench.plan.registry.Plugin.",
        )
    return found


def _unknown(point: str, kind: str, where: str) -> BadRequest:
    known = kinds(point)
    near = difflib.get_close_matches(kind, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return BadRequest(
        f"{where + ': ' if where else ''}unknown kind of {point}: {kind!r}.{hint}",
        f"Known kinds: {', '.join(known)}.",
    )


def require(needs: Needs, what: str, environment: dict[str, str] | Any) -> None:
    """Check libraries and keys. Raises MissingExtra or MissingKey, naming `what` wants them."""
    for library, extra in needs.libraries:
        if not _importable(library):
            raise MissingExtra(library, extra, what)
    for variable in needs.keys:
        if not environment.get(variable, "").strip():
            raise MissingKey(variable, what)


def _importable(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False
