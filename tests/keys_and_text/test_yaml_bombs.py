"""Configurations and manifests that are made to cost time or memory: refused at once, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from voicebench.audio.manifest import load_manifest
from voicebench.errors import BadRequest
from voicebench.plan import yaml_text
from voicebench.plan.config import load_config

LEVELS = "".join(f"  a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
MERGED = "".join(f"  a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40))
DEEPER = "".join(f"  a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]\n" for n in range(1, 40))
BOMBS = {
    "aliases": ("  a0: &a0 [x, x]\n" + LEVELS, "aliases stand for more than"),
    "aliases apart": (
        f"  a0: &a0 [{'x, ' * 20_000}]\n  b: [{'[*a0], ' * 1000}]\n",
        "aliases stand for more than",
    ),
    "merges": ("  a0: &a0 {k: v}\n" + MERGED, "aliases stand for more than"),
    "itself": ("  a: &a [*a]\n", "inside its own value"),
    "deep": (f"  a: {'[' * 100}{']' * 100}\n", "nested more than"),
    "deep by aliases": ("  a0: &a0 x\n" + DEEPER, "nested more than"),
    "base 60": (f"  a: {':'.join(['1'] * 100_000)}\n", "a number has more than"),
    "digits": (f"  a: 0x{'f' * 20_000}\n", "a number has more than"),
}
MODE = """\
own_modes:
- id: x/y
  kind: live
  provider: x
  api: openai-chat
  model: m
  options:
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_in_a_configuration_or_manifest_goes_off_nowhere(tmp_path: Path, name: str) -> None:
    """What unfolds, nests or counts beyond all measure is refused before values are made of it."""
    bomb, words = BOMBS[name]
    config = tmp_path / "bomb.yaml"
    config.write_text(MODE + bomb.replace("  a", "    a"), "utf-8")
    with pytest.raises(BadRequest, match=words) as told:
        load_config(config)
    assert len(str(told.value)) < 600
    (tmp_path / "manifest.yaml").write_text(f"version:\n{bomb}samples: []\n", "utf-8")
    with pytest.raises(BadRequest, match=words) as told:
        load_manifest(tmp_path)
    assert len(str(told.value)) < 600


def test_a_manifest_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are counted while they are read, keys among them."""
    monkeypatch.setattr(yaml_text, "MOST_VALUES", 100)
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(f"samples: [{'[],' * 97}]\n", "utf-8")
    with pytest.raises(BadRequest, match="is not a sample"):
        load_manifest(tmp_path)
    manifest.write_text(f"samples: [{'[],' * 98}]\n", "utf-8")
    with pytest.raises(BadRequest, match="more than 100 values"):
        load_manifest(tmp_path)


def test_an_endless_configuration_is_read_no_further(tmp_path: Path) -> None:
    """A file without end is refused after half a megabyte; nothing else is read of it."""
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    with pytest.raises(BadRequest, match="larger than"):
        load_config(tmp_path / "endless.yaml")


def test_plain_aliases_keep_their_meaning(tmp_path: Path) -> None:
    """A mode's options written once and used twice are the same for both."""
    config = tmp_path / "aliases.yaml"
    both = MODE + "    &fast\n    effort: low\n" + MODE.partition("\n")[2].replace("x/y", "x/z")
    config.write_text(both.replace("options:\n    &fast", "options: &fast") + "    <<: *fast\n", "utf-8")
    one, two = load_config(config).own_modes
    assert one.options == two.options == {"effort": "low"}
