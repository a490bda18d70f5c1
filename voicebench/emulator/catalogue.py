"""The timing scripts that the emulator knows from the start, and how a request's model name finds one.

Speeds are the published ones. No vendor published a time to first token for these four: 200 ms is assumed
(100 ms for Spark, for which half is claimed), so that between the two Opus modes only the rate differs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from voicebench.emulator.timing import TimingScript
from voicebench.errors import BadRequest

SEED_SCRIPTS: tuple[TimingScript, ...] = (
    TimingScript(
        name="opus-4.6",
        headers_ms=50.0,
        preamble_ms=60.0,
        first_text_ms=200.0,
        rate_tok_s=65.0,
        aliases=("claude-opus-4-6",),
        variants={"fast": "opus-4.6-fast"},
    ),
    TimingScript(
        name="opus-4.6-fast",
        headers_ms=50.0,
        preamble_ms=60.0,
        first_text_ms=200.0,
        rate_tok_s=170.0,
        served_speed="fast",
    ),
    TimingScript(
        name="gpt-5.3-codex",
        headers_ms=50.0,
        preamble_ms=60.0,
        first_text_ms=200.0,
        rate_tok_s=1000.0 / 15.0,
    ),
    TimingScript(
        name="gpt-5.3-codex-spark",
        headers_ms=25.0,
        preamble_ms=30.0,
        first_text_ms=100.0,
        rate_tok_s=1000.0,
    ),
)


class Catalogue:
    """The scripts of one emulator by name and alias."""

    def __init__(self, scripts: Iterable[TimingScript] = ()) -> None:
        """The seed scripts and `scripts`, which may replace them. Raises `BadRequest` where names clash."""
        self._scripts = {script.name: script for script in SEED_SCRIPTS}
        self._scripts.update((script.name, script) for script in scripts)
        self._names: dict[str, TimingScript] = dict(self._scripts)
        for script in self._scripts.values():
            for alias in script.aliases:
                taken = self._names.get(alias)
                if taken is not None and taken is not script:
                    raise BadRequest(
                        f"timing script {script.name!r}: its alias {alias!r} already names {taken.name!r}."
                    )
                self._names[alias] = script
            for asked, served in script.variants.items():
                if served not in self._scripts:
                    raise BadRequest(
                        f"timing script {script.name!r}: variant {asked!r} names the unknown {served!r}.",
                        f"Known: {', '.join(self._scripts)}.",
                    )

    def names(self) -> list[str]:
        """Every model name that is answered, scripts first, then aliases."""
        return list(self._names)

    def find(self, model: str, asked: Iterable[str | None] = ()) -> TimingScript | None:
        """The script for a model name, or for the first of the `asked` speeds and tiers that it has a
        variant for.

        None where the name is unknown.
        """
        script = self._names.get(model)
        if script is not None:
            for choice in asked:
                if choice is not None and choice in script.variants:
                    return self._scripts[script.variants[choice]]
        return script


def load(path: Path) -> list[TimingScript]:
    """The scripts in a `.json` or `.toml` file: `{"scripts": {name: {field: value, ...}}}`.

    A script may say `"like": NAME` to start from a seed script or one that stands earlier in the file. Raises
    `BadRequest` that names the file, script, field and value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path}: cannot be read: {error}.") from None
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(
            f"{path}: is not {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}.",
            "Scripts are read from files that end in .json or .toml.",
        ) from None
    try:
        return from_dict(data, path.parent)
    except BadRequest as error:
        raise BadRequest(f"{path}: {error.what}", error.remedy) from None


def from_dict(data: Any, folder: Path | None = None) -> list[TimingScript]:
    """The scripts in plain data, of the shape that `load` reads. Raises `BadRequest`."""
    rows = data.get("scripts") if isinstance(data, Mapping) else None
    if not isinstance(rows, Mapping) or not rows:
        raise BadRequest(
            "there are no scripts.", 'Expected {"scripts": {"my-model": {"first_text_ms": 120}}}.'
        )
    known = {script.name: script for script in SEED_SCRIPTS}
    scripts: list[TimingScript] = []
    for name, row in rows.items():
        if not isinstance(row, Mapping):
            raise BadRequest(f"timing script {name!r}: expected fields, found {row!r}.")
        values = dict(row)
        base = values.pop("like", None)
        if base is not None:
            if base not in known:
                raise BadRequest(
                    f"timing script {name!r}: like names {base!r}, which is unknown.",
                    f"Known here: {', '.join(known)}.",
                )
            values = {**known[base].to_dict(), "aliases": [], **values}
        script = TimingScript.from_dict({**values, "name": name}, folder)
        known[name] = script
        scripts.append(script)
    return scripts
