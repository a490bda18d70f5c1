"""What every part of a configuration is made of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A part of the configuration: immutable, finite numbers only, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PluginSpec(BaseModel):
    """A kind of a plug point; every other key is a setting of that kind."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str

    @property
    def settings(self) -> dict[str, Any]:
        """The keys beside `kind`."""
        return dict(self.model_extra or {})
