"""Small real wheels, a catalogue of them, an own cache folder, and pip settings that reach no network."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from voicebench.models.catalogue import Catalogue, CatalogueModel, load_catalogue

_RANDOM = random.Random(7)
# Random bytes do not compress, so that a wheel's size is about that of its data.
CONTENTS: dict[str, dict[str, bytes]] = {
    "small-asr": {"model.bin": _RANDOM.randbytes(400_000), "config.json": b"{}\n"},
    "small-tts": {"voice.onnx": _RANDOM.randbytes(30_000), "voice.onnx.json": b'{"a": 1}\n'},
    "small-llm": {"small.gguf": _RANDOM.randbytes(20_000)},
}
KINDS = {"small-asr": "asr", "small-tts": "tts", "small-llm": "llm"}


def wheel_name(model_id: str) -> str:
    """The file name of a model's wheel."""
    return f"{model_id.replace('-', '_')}-1.0-py3-none-any.whl"


def member_name(model_id: str, name: str) -> str:
    """Where a data file lies inside its wheel."""
    return f"{model_id.replace('-', '_')}/data/{name}"


def build_wheel(
    folder: Path, model_id: str, files: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED
) -> Path:
    """Write a wheel that pip accepts, with `files` (name -> content) as its data."""
    folder.mkdir(parents=True, exist_ok=True)
    package, info = model_id.replace("-", "_"), f"{model_id.replace('-', '_')}-1.0.dist-info"
    path = folder / wheel_name(model_id)
    with zipfile.ZipFile(path, "w", compression) as archive:
        # Code and a dependency that nobody has: neither may matter.
        archive.writestr(f"{package}/__init__.py", "raise SystemExit('this code is never run')\n")
        for name, content in files.items():
            archive.writestr(member_name(model_id, name), content)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {model_id}\nVersion: 1.0\nRequires-Dist: no-such-distribution\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def write_catalogue(path: Path, sizes: Mapping[str, int]) -> Path:
    """Write a catalogue of the small models; `sizes` are the bytes of their wheels."""
    lines: list[str] = []
    for model_id, files in CONTENTS.items():
        lines += [
            "[[model]]",
            f"id = {json.dumps(model_id)}",
            f"short_names = [{json.dumps(model_id.removeprefix('small-') + '-short')}]",
            f"kind = {json.dumps(KINDS[model_id])}",
            'about = "a small one"',
            'licence = "CC0-1.0"',
            "[model.source]",
            f"distribution = {json.dumps(model_id)}",
            'version = "1.0"',
            f"wheel = {json.dumps(wheel_name(model_id))}",
            f"size = {sizes[model_id]}",
        ]
        for name, content in files.items():
            lines += [
                "[[model.files]]",
                f"name = {json.dumps(name)}",
                f"member = {json.dumps(member_name(model_id, name))}",
                f"size = {len(content)}",
                f"sha256 = {json.dumps(hashlib.sha256(content).hexdigest())}",
            ]
    path.write_text("\n".join(lines), "utf-8")
    return path


@dataclass(frozen=True)
class House:
    """A cache folder, a folder of wheels that pip looks into, and the catalogue of these wheels."""

    cache: Path
    wheels: Path
    catalogue_file: Path

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the small models."""
        return load_catalogue(self.catalogue_file)

    def model(self, model_id: str) -> CatalogueModel:
        """One of its models."""
        return self.catalogue.get(model_id)

    def folder(self, model_id: str) -> Path:
        """Where the files of a model belong."""
        return self.cache / "models" / model_id

    def kept(self) -> list[str]:
        """All files in the cache, relative to its models folder, but for the lock and the notes of checks."""
        root = self.cache / "models"
        found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        return sorted(name for name in found if name != ".lock" and not name.endswith("/.verified.json"))

    def all_files(self, *model_ids: str) -> list[str]:
        """What `kept` gives where just these models are complete."""
        return sorted(f"{model_id}/{name}" for model_id in model_ids for name in CONTENTS[model_id])


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """All three small wheels in a folder, an empty cache, and a pip that looks nowhere else."""
    wheels, cache = tmp_path / "wheels", tmp_path / "cache"
    sizes = {
        model_id: build_wheel(wheels, model_id, CONTENTS[model_id]).stat().st_size for model_id in CONTENTS
    }
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {
        "VOICEBENCH_CACHE": str(cache),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return House(cache, wheels, write_catalogue(tmp_path / "catalogue.toml", sizes))


@pytest.fixture
def _pip() -> None:
    """These tests run the real pip of this Python."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this Python has no pip")
