"""Timing scripts as data: files, aliases, settings, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voicebench.emulator.catalogue import SEED_SCRIPTS, Catalogue, load
from voicebench.emulator.replay import Replay
from voicebench.emulator.timing import TimingScript, with_settings
from voicebench.errors import BadRequest

FULL = TimingScript(
    "full",
    headers_ms=1.0,
    preamble_ms=2.0,
    first_text_ms=30.0,
    first_text_jitter_ms=3.0,
    reasoning_tokens=4,
    reasoning_gap_ms=5.0,
    rate_tok_s=70.0,
    burst=(1, 2),
    jitter_relative=0.1,
    stalls=((3, 40.0),),
    reply="long",
    reply_tokens=20,
    served_service_tier="flex",
    cache_read_tokens=9,
    fault="drop;after=3",
    aliases=("also-full",),
    variants={"fast": "opus-4.6-fast"},
    replay=Replay(((1.0, "a"), (2.0, "b"))),
)


@pytest.mark.parametrize("script", [*SEED_SCRIPTS, FULL])
def test_a_script_survives_json(script: TimingScript) -> None:
    """to_dict, JSON and from_dict give the same script."""
    assert TimingScript.from_dict(json.loads(json.dumps(script.to_dict()))) == script


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"first_text_ms": -1}, "first_text_ms"),
        ({"first_text_ms": "soon"}, "first_text_ms"),
        ({"first_text_ms": float("nan")}, "first_text_ms"),
        ({"rate_tok_s": 0}, "rate_tok_s"),
        ({"burst": [0]}, "burst"),
        ({"burst": "many"}, "burst"),
        ({"stalls": [[1]]}, "stalls"),
        ({"reply": "rude"}, "reply"),
        ({"reply_tokens": 0}, "reply_tokens"),
        ({"reply_tokens": 1.5}, "reply_tokens"),
        ({"preamble_ms": 10, "first_text_ms": 5}, "preamble_ms"),
        ({"headers_ms": 10}, "headers_ms"),
        ({"reasoning_gap_ms": 10, "first_text_ms": 5}, "first token"),
        ({"warp": 9}, "warp"),
        ({"name": "a!b"}, "name"),
        ({"aliases": "one"}, "aliases"),
        ({"tokens_per_event": True}, "tokens_per_event"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], named: str) -> None:
    """What is wrong in a script is refused by the field's name."""
    with pytest.raises(BadRequest, match=named):
        TimingScript.from_dict({"name": "mine", **values})


def test_scripts_come_from_files(tmp_path: Path) -> None:
    """JSON and TOML files give scripts; `like` starts from another one; a replay may lie beside them."""
    (tmp_path / "stream.json").write_text(
        '{"format": "voicebench-replay", "version": 1, "deltas": [[5, "Hi"]]}', encoding="utf-8"
    )
    (tmp_path / "scripts.toml").write_text(
        '[scripts.mine]\nlike = "opus-4.6"\nrate_tok_s = 80\n[scripts.tape]\nreplay = "stream.json"\n',
        encoding="utf-8",
    )
    mine, tape = load(tmp_path / "scripts.toml")
    assert (mine.name, mine.rate_tok_s, mine.first_text_ms, mine.aliases) == ("mine", 80.0, 200.0, ())
    assert tape.replay == Replay(((5, "Hi"),))
    (tmp_path / "scripts.json").write_text('{"scripts": {"mine": {"first_text_ms": 9}}}', encoding="utf-8")
    assert load(tmp_path / "scripts.json") == [TimingScript("mine", first_text_ms=9.0)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.toml", "[", "is not TOML"),
        ("a.json", "{}", "no scripts"),
        ("a.json", '{"scripts": {"x": {"like": "nobody"}}}', "nobody"),
        ("a.json", '{"scripts": {"x": {"replay": "missing.json"}}}', "missing.json"),
        ("a.json", '{"scripts": {"x": 1}}', "expected fields"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    """A file that cannot be used is refused by its name and what is wrong in it."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRequest, match=said) as caught:
        load(path)
    assert str(path) in caught.value.what
    with pytest.raises(BadRequest, match="cannot be read"):
        load(tmp_path / "absent.json")


def test_names_aliases_and_variants_find_a_script() -> None:
    """A model's name, its vendor's name, and the asked speed lead to the script that serves it."""
    catalogue = Catalogue()
    assert [catalogue.find(name) is not None for name in ("opus-4.6", "claude-opus-4-6", "nobody")] == [
        True,
        True,
        False,
    ]
    fast = catalogue.find("claude-opus-4-6", ("fast", None))
    assert fast is not None
    assert (fast.name, fast.served_speed) == ("opus-4.6-fast", "fast")
    spark = catalogue.find("gpt-5.3-codex-spark", ("fast",))
    assert spark is not None
    assert spark.name == "gpt-5.3-codex-spark"


def test_names_that_clash_are_refused() -> None:
    """An alias may not be another script's name, and a variant must exist."""
    with pytest.raises(BadRequest, match="alias"):
        Catalogue([TimingScript("mine", aliases=("opus-4.6",))])
    with pytest.raises(BadRequest, match="nobody"):
        Catalogue([TimingScript("mine", variants={"fast": "nobody"})])


def test_single_settings_replace_values() -> None:
    """Text settings take the field's type, and an earlier first text takes headers and preamble along."""
    script = with_settings(SEED_SCRIPTS[0], {"rate_tok_s": "1000", "first_text_ms": "10", "reply": "long"})
    assert (script.rate_tok_s, script.reply) == (1000.0, "long")
    assert script.headers_ms <= script.preamble_ms <= script.first_text_ms == 10.0
    with pytest.raises(BadRequest, match="preamble_ms"):
        with_settings(SEED_SCRIPTS[0], {"first_text_ms": "10", "preamble_ms": "20"})
    with pytest.raises(BadRequest, match="aliases"):
        with_settings(SEED_SCRIPTS[0], {"aliases": "x"})
