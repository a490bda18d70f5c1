"""From a model's name in a config to its files: the catalogue's, a person's own, or a library's download.

A name is read in this order:

1. an id or short name of the catalogue means the files that voicebench fetches itself (a folder of that
   name in the working folder is meant by `./NAME`);
2. a path (with a separator, or ending in .onnx or .gguf) must exist;
3. a file or folder of that name in the working folder is taken;
4. any other plain name is left to the library (Whisper, Piper), which knows models of its own; for Whisper
   also `owner/name`, as models are called on a hub.

Nothing is fetched, opened or written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models.catalogue import Catalogue, CatalogueModel, ModelKind, load_catalogue
from voicebench.models.names import is_hub_name, is_plain_name, looks_like_path, printable
from voicebench.models.places import folder_of, library_folder


class Origin(StrEnum):
    """Where a model's files come from."""

    CATALOGUE = "catalogue"
    LOCAL = "local"
    LIBRARY = "library"


@dataclass(frozen=True, slots=True)
class WhisperSource:
    """A Whisper model for CTranslate2.

    `name` is what was asked for. `folder` holds model.bin; None where the library downloads `library_name`
    itself. `model_id` is set for the catalogue's: `store.ensure` brings its files.
    """

    name: str
    origin: Origin
    folder: Path | None = None
    model_id: str | None = None
    library_name: str | None = None


@dataclass(frozen=True, slots=True)
class PiperSource:
    """A Piper voice.

    `model` is the .onnx file and `config` the .onnx.json beside it; both are None where the library downloads
    `library_name` itself, into `download_folder`. `model_id` is set for the catalogue's.
    """

    name: str
    origin: Origin
    model: Path | None = None
    config: Path | None = None
    model_id: str | None = None
    library_name: str | None = None
    download_folder: Path | None = None


@dataclass(frozen=True, slots=True)
class LlmSource:
    """A language model for llama.cpp: `model` is the .gguf file. `model_id` is set for the catalogue's."""

    name: str
    origin: Origin
    model: Path
    model_id: str | None = None


def resolve_whisper(name_or_path: str, *, catalogue: Catalogue | None = None) -> WhisperSource:
    """A catalogue name, a CTranslate2 folder (or the model.bin in it), or a name that faster-whisper knows or
    finds on its hub (`owner/name`; a folder of that name here goes first).

    BadRequest for a path that does not exist or a name that is none; ModelFileProblem for a folder without
    model.bin.
    """
    if model := _from_catalogue(name_or_path, ModelKind.ASR, catalogue):
        return WhisperSource(name_or_path, Origin.CATALOGUE, folder_of(model), model.id)
    path = _existing(name_or_path, hub=True)
    if path is None:
        return WhisperSource(name_or_path, Origin.LIBRARY, library_name=name_or_path)
    folder = path.parent if path.name == "model.bin" and path.is_file() else path
    if not (folder / "model.bin").is_file():
        raise ModelFileProblem(
            f"{printable(str(path))} is no Whisper model for CTranslate2: there is no file "
            f"{printable(str(folder / 'model.bin'))}.",
            "Name a folder made by ct2-transformers-converter, or a model by its name, such as tiny.en.",
        )
    return WhisperSource(name_or_path, Origin.LOCAL, folder)


def resolve_piper(name_or_path: str, *, catalogue: Catalogue | None = None) -> PiperSource:
    """A catalogue name, a voice's .onnx file (or a folder with just one), or a voice name that Piper knows.

    BadRequest for a path that does not exist or a name that is none; ModelFileProblem where the voice lacks
    its .onnx.json, or a folder holds no voice or several.
    """
    if model := _from_catalogue(name_or_path, ModelKind.TTS, catalogue):
        voice = folder_of(model) / model.file_ending(".onnx").name
        config = folder_of(model) / model.file_ending(".onnx.json").name
        return PiperSource(name_or_path, Origin.CATALOGUE, voice, config, model.id)
    path = _existing(name_or_path)
    if path is None:
        return PiperSource(
            name_or_path, Origin.LIBRARY, library_name=name_or_path, download_folder=library_folder("piper")
        )
    voice = _only_file(path, ".onnx", "Piper voice")
    config = voice.with_name(voice.name + ".json")
    if not config.is_file():
        raise ModelFileProblem(
            f"The Piper voice {printable(str(voice))} lacks its settings: no file {printable(str(config))}.",
            "Put the voice's .onnx.json beside it.",
        )
    return PiperSource(name_or_path, Origin.LOCAL, voice, config)


def resolve_llm(name_or_path: str, *, catalogue: Catalogue | None = None) -> LlmSource:
    """A catalogue name, or a .gguf file (or a folder with just one).

    llama.cpp has no names of its own to download, so any other name is a BadRequest, as is a path that does
    not exist; ModelFileProblem for a file that is no .gguf, or a folder that holds none or several.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    if model := _from_catalogue(name_or_path, ModelKind.LLM, catalogue):
        return LlmSource(
            name_or_path, Origin.CATALOGUE, folder_of(model) / model.file_ending(".gguf").name, model.id
        )
    path = _existing(name_or_path)
    if path is None:
        known = [model.id for model in catalogue.models if model.kind is ModelKind.LLM]
        raise BadRequest(
            f"There is no language model '{printable(name_or_path)}' in the catalogue.",
            f"Name one of {', '.join(known)}, or the path of a .gguf file.",
        )
    return LlmSource(name_or_path, Origin.LOCAL, _only_file(path, ".gguf", "GGUF model"))


def _from_catalogue(name: str, kind: ModelKind, catalogue: Catalogue | None) -> CatalogueModel | None:
    """The catalogue's model of that name; BadRequest where it is of another kind."""
    model = (load_catalogue() if catalogue is None else catalogue).find(name)
    if model is not None and model.kind is not kind:
        raise BadRequest(
            f"The model '{name}' is one for {model.kind.upper()}, but one for {kind.upper()} is asked for."
        )
    return model


def _existing(name: str, *, hub: bool = False) -> Path | None:
    """The file or folder that `name` means, as an absolute path; None for a name that a library may know.

    `hub`: `owner/name` may be one.
    """
    shown = printable(name)
    if shown != name or not name.strip():
        raise BadRequest(f"'{shown}' is neither a model's name nor a path.")
    try:
        path = Path(name).expanduser().absolute()
        if path.exists():
            return path
    except (OSError, RuntimeError, ValueError) as error:  # no permission, too long, an unknown ~user
        raise BadRequest(f"The model '{shown}' cannot be looked up: {error}.") from error
    if hub and is_hub_name(name):
        return None
    if looks_like_path(name):
        raise BadRequest(
            f"The model '{shown}' is given as a path, but there is no file or folder {printable(str(path))}.",
            "Give an existing path, or a model's name (voicebench models list).",
        )
    if not is_plain_name(name):
        raise BadRequest(
            f"'{shown}' is neither a model's name nor an existing path.",
            "Names hold letters, digits, and . _ + - after the first (voicebench models list).",
        )
    return None


def _only_file(path: Path, ending: str, what: str) -> Path:
    """`path` where it is a file of that ending, or the only such file in the folder `path`."""
    if path.is_file():
        if not path.name.lower().endswith(ending):
            raise ModelFileProblem(f"{printable(str(path))} is no {what}: its name does not end in {ending}.")
        return path
    try:
        found = sorted(
            entry for entry in path.iterdir() if entry.name.lower().endswith(ending) and entry.is_file()
        )
    except OSError as error:
        raise ModelFileProblem(
            f"The folder {printable(str(path))} cannot be read: {error.strerror}."
        ) from error
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(printable(entry.name) for entry in found)
        raise ModelFileProblem(
            f"The folder {printable(str(path))} holds several: {listed}.", "Name one of them."
        )
    raise ModelFileProblem(
        f"The folder {printable(str(path))} holds no {what} (no file that ends in {ending})."
    )
