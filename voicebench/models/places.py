"""Where model files lie on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from voicebench.errors import ModelFileProblem
from voicebench.models.catalogue import CatalogueModel

CACHE_VARIABLE = "VOICEBENCH_CACHE"


def cache_root(environment: Mapping[str, str] | None = None, platform: str | None = None) -> Path:
    """The folder under which everything fetched is kept, as an absolute path; it need not exist yet.

    VOICEBENCH_CACHE itself where it is set; else `voicebench` under an absolute XDG_CACHE_HOME; else the
    platform's place: ~/.cache/voicebench, ~/Library/Caches/voicebench on macOS,
    %LOCALAPPDATA%\\voicebench\\Cache on Windows. `environment` and `platform` default to this process's
    own. ModelFileProblem where the variable holds no possible path, or where it is unset and there is no
    home folder.
    """
    environment = os.environ if environment is None else environment
    platform = sys.platform if platform is None else platform
    try:
        if chosen := environment.get(CACHE_VARIABLE):
            return Path(os.path.abspath(Path(chosen).expanduser()))
        xdg = Path(environment.get("XDG_CACHE_HOME") or "")
        if xdg.is_absolute():
            return xdg / "voicebench"
        if platform == "win32":
            local = environment.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "voicebench" / "Cache"
        if platform == "darwin":
            return Path.home() / "Library" / "Caches" / "voicebench"
        return Path.home() / ".cache" / "voicebench"
    except RuntimeError as error:
        raise ModelFileProblem(
            f"There is no home folder to keep model files in: {error}",
            f"Set {CACHE_VARIABLE} to a folder that may be written to.",
        ) from error


def models_folder() -> Path:
    """The folder that holds one folder for each fetched model of the catalogue."""
    return cache_root() / "models"


def folder_of(model: CatalogueModel) -> Path:
    """The folder of a model of the catalogue, whether or not its files are there."""
    return models_folder() / model.id


def library_folder(library: str) -> Path:
    """The folder that a library which needs to be told (such as Piper) may download its own models into."""
    return cache_root() / library
