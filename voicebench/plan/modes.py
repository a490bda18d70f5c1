"""Model modes: which provider, model and request options, at what price and published speed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from voicebench.errors import BadRequest

Status = Literal["available", "preview", "retired", "partner-only"]


class Published(BaseModel):
    """A figure and where it comes from. `assumed` marks one that nobody published."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    value: float
    source: str
    date: str = ""
    assumed: bool = False


class Price(BaseModel):
    """Dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
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
    """Request options that make the mode: speed, service tier, thinking, effort."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the `llm` plug-in: base_url, api_key_env, threads ..."""
    price: Price | None = None
    decode_rate_tok_s: Published | None = None
    ttft_ms: Published | None = None
    quality: dict[str, Published] = Field(default_factory=dict)
    context_tokens: int | None = None
    image_input: bool | None = None
    status: Status = "available"
    status_note: str = ""
    sibling: str | None = None
    """The standard mode that this one is the fast form of."""
    stand_in: str | None = None
    """The closest live mode, where this one cannot be asked live."""


@cache
def catalogue() -> dict[str, Mode]:
    """The modes that come with voicebench, by id."""
    text = files("voicebench.plan").joinpath("modes.toml").read_text("utf-8")
    rows = tomllib.loads(text)["mode"]
    return {row["id"]: Mode.model_validate(row) for row in rows}


def find_mode(mode_id: str, own: dict[str, Mode], where: str = "") -> Mode:
    """The mode of that id: the config's own first, then the catalogue.

    Raises BadRequest for an unknown one, naming the known ids.
    """
    found = own.get(mode_id) or catalogue().get(mode_id)
    if found is None:
        known = ", ".join(sorted({*own, *catalogue()}))
        raise BadRequest(
            f"{where + ': ' if where else ''}unknown mode {mode_id!r}.",
            f"Known modes: {known}. `voicebench modes` shows them.",
        )
    return found
