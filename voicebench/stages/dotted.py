"""A function of the user's own, named as `module:function` in a configuration."""

from __future__ import annotations

import importlib
from typing import Any

from voicebench.errors import BadRequest
from voicebench.plan.config import PluginSpec


def function_at(spec: PluginSpec, where: str) -> Any:
    """The function that a spec's kind names. Raises BadRequest where there is none, or settings stand by."""
    if spec.settings:
        names = ", ".join(spec.settings)
        raise BadRequest(f"{where}: {spec.kind} is a function, which takes no settings (got {names}).")
    return function_named(spec.kind, where)


def function_named(dotted: str, where: str) -> Any:
    """The function `module:function`. Raises BadRequest where it cannot be imported or called."""
    module, _, name = dotted.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        # An import runs the user's own code, which may raise anything.
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise BadRequest(
            f"{where}: {dotted!r} cannot be imported: {told}",
            "Name it as module:function, and see that the module's folder is on PYTHONPATH.",
        ) from error
    if not callable(found):
        raise BadRequest(f"{where}: {dotted!r} is no function.")
    return found
