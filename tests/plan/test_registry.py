"""The plug points: built-in kinds, kinds of other packages, and what a kind wants to be there."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from pydantic import BaseModel

from voicebench.errors import BadRequest, MissingExtra, MissingKey
from voicebench.plan import registry
from voicebench.plan.registry import BUILT_IN, Needs, Plugin, find, kinds, require


class _Settings(BaseModel):
    volume: int = 3


THIRD_PARTY = Plugin(settings=_Settings, build=lambda *_: "a voice", title="third party")
NO_PLUGIN = "only a text"


def added(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Let other packages offer these kinds of TTS."""

    def entry_points(*, group: str, name: str | None = None) -> EntryPoints:
        found = [EntryPoint(kind, value, "voicebench.tts") for kind, value in values.items()]
        kept = [one for one in found if one.group == group and name in (None, one.name)]
        return EntryPoints(kept)

    monkeypatch.setattr(registry, "entry_points", entry_points)


@pytest.mark.parametrize(
    ("point", "kind"), [(point, kind) for point, rows in BUILT_IN.items() for kind in rows]
)
def test_every_built_in_kind_loads(point: str, kind: str) -> None:
    """Each row of the table names a plug-in whose settings refuse an unknown key."""
    plugin = find(point, kind)
    assert plugin.settings.model_config.get("extra") == "forbid"
    assert plugin.title


@pytest.mark.parametrize(
    ("point", "kind", "near"), [("asr", "wisper", "whisper"), ("turn", "smart-turn", "smart_turn")]
)
def test_an_unknown_kind_names_the_nearest_and_all_known(point: str, kind: str, near: str) -> None:
    """A mistyped kind is refused with where it stands, what was meant and what there is."""
    with pytest.raises(BadRequest) as caught:
        find(point, kind, "c.yaml")
    said = str(caught.value)
    assert said.startswith(f"c.yaml: unknown kind of {point}: {kind!r}.")
    assert f"Did you mean {near!r}?" in said
    for known in kinds(point):
        assert known in said


def test_another_package_adds_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind offered by an entry point is listed and found like a built-in."""
    added(monkeypatch, loud=f"{__name__}:THIRD_PARTY")
    assert "loud" in kinds("tts")
    assert find("tts", "loud") is THIRD_PARTY
    with pytest.raises(BadRequest, match="unknown kind of asr"):
        find("asr", "loud")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_package_at_all:PLUGIN", "cannot be loaded"),
        (f"{__name__}:NOT_THERE", "cannot be loaded"),
        (f"{__name__}:NO_PLUGIN", "not a Plugin"),
    ],
)
def test_a_broken_kind_of_another_package_is_told(
    monkeypatch: pytest.MonkeyPatch, target: str, words: str
) -> None:
    """A package that is gone, a name that is not in it and a thing that is no plug-in end in words."""
    added(monkeypatch, loud=target)
    with pytest.raises(BadRequest, match=words) as caught:
        find("tts", "loud", "c.yaml")
    assert "loud" in str(caught.value)


def test_a_missing_library_names_the_extra_that_brings_it() -> None:
    """A library that is not installed is asked for with the command that installs it."""
    with pytest.raises(MissingExtra) as caught:
        require(Needs(libraries=(("no_such_library_here", "local"),)), "ASR (x)", {})
    assert "ASR (x) needs the Python package no_such_library_here" in str(caught.value)
    assert "[local]" in caught.value.remedy


@pytest.mark.parametrize("environment", [{}, {"SOME_KEY": ""}, {"SOME_KEY": "  \n"}])
def test_a_missing_or_blank_key_names_its_variable(environment: dict[str, str]) -> None:
    """A key that is absent, empty or white space counts as missing, and the variable is named."""
    with pytest.raises(MissingKey) as caught:
        require(Needs(keys=("SOME_KEY",)), "The mode m", environment)
    assert caught.value.variable == "SOME_KEY"
    assert "The mode m" in str(caught.value)


def test_what_is_there_is_enough() -> None:
    """An installed library and a set key raise nothing."""
    needs = Needs(libraries=(("json", "local"), ("os.path", "local")), keys=("SOME_KEY",))
    require(needs, "x", {"SOME_KEY": "abc"})


def test_nothing_is_imported_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing the kinds loads none of them."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a plug-in was imported")

    monkeypatch.setattr("importlib.import_module", refuse)
    assert "whisper" in kinds("asr")
