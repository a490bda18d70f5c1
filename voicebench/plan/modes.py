"""Model modes: which provider, model and request options, at what price and published speed."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from voicebench.errors import BadRequest
from voicebench.plan.tools import Tool

Status = Literal["available", "preview", "retired", "partner-only"]

NOT_ASKABLE: frozenset[Status] = frozenset({"retired", "partner-only"})
"""A live mode of such a status cannot be asked."""


class Published(BaseModel):
    """A figure and where it comes from. `assumed` marks one that nobody published."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    value: float
    source: str
    date: str = ""
    """When the figure was published or read, ISO 8601."""
    assumed: bool = False


class Price(BaseModel):
    """Dollars per million tokens, for prompts of the length of a voice turn."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float
    output: float
    cache_read: float | None = None
    """Prompt tokens read from the provider's cache. None: not known."""
    cache_write: float | None = None
    """Prompt tokens written to it, for its shortest lifetime. None: not known."""
    source: str = ""
    date: str = ""


class Mode(BaseModel):
    """One row of the comparison."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """`provider/name`, as `--mode` takes it."""
    kind: Literal["live", "local", "emulated"]
    provider: str
    api: str
    """The kind of the `llm` plug point that speaks to it."""
    model: str
    options: dict[str, Any] = Field(default_factory=dict)
    """Request options that make the mode, by one name for all providers: speed, service_tier, effort,
    thinking, verbosity. Any other goes into the request as it is."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the `llm` plug-in: base_url, api_key_env, threads ..."""
    tokenizer: str | None = None
    """The vocabulary that cuts this model's text into its own tokens; None where none is at hand."""
    emulation: dict[str, Any] = Field(default_factory=dict)
    """For an emulated mode: fields of the emulator's timing script beside rate and time to first token, e.g.
    jitter_ms, tokens_per_event, or `replay`, the file of a recorded stream. `fault` plants one of the
    emulator's faults in every reply."""
    price: Price | None = None
    decode_rate_tok_s: Published | None = None
    """Output tokens a second once text flows."""
    ttft_ms: Published | None = None
    """From the request to the first token of the answer."""
    quality: dict[str, Published] = Field(default_factory=dict)
    """Benchmark to score, as published."""
    context_tokens: int | None = None
    image_input: bool | None = None
    source: str = ""
    """Where status, context window and image input are told."""
    date: str = ""
    status: Status = "available"
    status_note: str = ""
    attempts: int = Field(1, ge=1, le=10)
    """Calls for one request, at most: where the provider is busy or the connection breaks before any text, it
    is asked again. 1: no retry. A turn that needed more than one stays out of the medians."""
    tools: tuple[Tool, ...] = ()
    """What the model may call while it answers."""
    members: tuple[Mode, ...] = ()
    """The modes that this one is made of: all are asked at once, or one of them in each turn."""
    sibling: str | None = None
    """The standard mode that this one is the fast form of."""
    emulated_as: str | None = None
    """The row that replays this one's published speed."""
    stand_in: str | None = None
    """The closest live mode, where this one cannot be asked live."""


@cache
def catalogue() -> dict[str, Mode]:
    """The modes that come with voicebench, by id."""
    text = files("voicebench.plan").joinpath("modes.toml").read_text("utf-8")
    rows = tomllib.loads(text)["mode"]
    return {row["id"]: Mode.model_validate(row) for row in rows}


def with_members(modes: Iterable[Mode]) -> list[Mode]:
    """The modes and those that they are made of, each id once."""
    found: dict[str, Mode] = {}
    for mode in modes:
        for one in (mode, *mode.members):
            found.setdefault(one.id, one)
    return list(found.values())


def find_mode(mode_id: str, own: dict[str, Mode], where: str = "") -> Mode:
    """The mode of that id, to be run: the config's own first, then the catalogue.

    Raises BadRequest for an unknown one, naming the known ids, and for a live one that is retired or open to
    partners only, naming the row that replays it and the closest one that can be asked.
    """
    found = own.get(mode_id) or catalogue().get(mode_id)
    place = f"{where}: " if where else ""
    if found is None:
        ids = sorted({*own, *catalogue()})
        near = difflib.get_close_matches(mode_id, ids, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise BadRequest(
            f"{place}unknown mode {mode_id!r}.{hint}",
            f"Known modes: {', '.join(ids)}. `voicebench modes` shows them.",
        )
    if found.kind == "live" and found.status in NOT_ASKABLE:
        why = f"{found.status}. {found.status_note}".rstrip()
        raise BadRequest(f"{place}the mode {found.id!r} cannot be asked live: {why}", _instead(found))
    return found


def _instead(mode: Mode) -> str:
    """What to run in place of a mode that cannot be asked."""
    told = []
    if mode.emulated_as is not None:
        told.append(f"--mode {mode.emulated_as} replays its published speed on this machine.")
    if mode.stand_in is not None:
        told.append(f"The closest live mode is {mode.stand_in}.")
    told.append("A mode of your own under `own_modes` in a config may ask for it all the same.")
    return " ".join(told)
