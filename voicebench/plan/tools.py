"""The tools that a model may call in a turn, each with a stated duration or a function of one's own."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from voicebench.plan.settings import Settings


class Tool(Settings):
    """A function that the model may call while it answers. Exactly one of `takes_ms` and `call` is given."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str
    parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Each argument's name and its JSON schema."""
    required: tuple[str, ...] = ()
    takes_ms: float | None = Field(None, ge=0)
    """A scripted tool: it gives `result` after so many milliseconds."""
    result: Any = None
    call: str | None = None
    """A function as `module:function`, plain or async. It gets the call's arguments by name."""
    modes: tuple[str, ...] | None = None
    """The modes that may call it, by id; None: every one of the run."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.takes_ms is None) == (self.call is None):
            raise ValueError("takes_ms, call: give exactly one of them")
        if self.call is not None and self.result is not None:
            raise ValueError("result: belongs to a scripted tool, with `takes_ms`")
        unknown = set(self.required) - set(self.parameters)
        if unknown:
            raise ValueError(f"required: not among the parameters: {', '.join(sorted(unknown))}")
        return self
