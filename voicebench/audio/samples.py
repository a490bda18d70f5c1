"""Which recordings a run plays: from files, folders and manifests to `Sample`s.

Whether a file can be decoded is not asked here: a broken one becomes a failed turn of its own, and the
others are measured.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from voicebench.audio.manifest import MANIFEST_NAME, Sample, Segments, closest, has_manifest, load_manifest
from voicebench.audio.names import printable
from voicebench.errors import BadRequest

__all__ = ["Sample", "Segments", "default_folder", "find_samples", "load_manifest"]

EXTENSIONS = (
    ".wav .flac .ogg .opus .mp3 .m4a .aac .webm .mp4 .aiff .aif .au .amr .wma .mka .3gp".split()  # noqa: SIM905
)
"""What counts as an audio file in a folder without a manifest, in any case of letters."""

DEFAULT_FOLDER = "audio_samples"


def default_folder() -> Path:
    """The samples to take where none are named: `audio_samples` here, else in voicebench's source checkout.

    Raises BadRequest where there is neither.
    """
    here = Path(DEFAULT_FOLDER)
    checkout = Path(__file__).resolve().parents[2] / DEFAULT_FOLDER
    for folder in (here, checkout):
        if folder.is_dir():
            return folder
    raise BadRequest(
        f"No audio files are named, and there is no folder {DEFAULT_FOLDER} in {printable(Path.cwd())}.",
        "Name files or folders:  voicebench batch FILES or FOLDERS...",
    )


def find_samples(paths: Sequence[Path]) -> tuple[Sample, ...]:
    """The samples that `paths` (files and folders) stand for, in their order, each file once.

    - A folder with a manifest stands for the manifest's samples, in its order; so does the manifest itself.
    - A folder without one stands for all audio files in it and its folders, sorted by path; a folder inside
      that has a manifest is taken by it. Hidden files and folders are left out; links to folders are not
      followed.
    - A file stands for itself, with what the manifest of its folder (or of a folder above) says of it.

    Ids are the manifest's, else the path below the named folder with `__` for `/`; where two would be alike,
    the later one gets the folder's name in front or a number at its end.

    Raises BadRequest for a path that does not exist, a folder without audio files, and a faulty manifest.
    """
    search = _Search()
    chosen: list[Sample] = []
    seen: set[tuple[Path, str | None]] = set()
    taken: set[str] = set()
    for path in map(Path, paths):
        _refuse_missing(path)
        for sample, listed in search.folder(path) if path.is_dir() else search.file(path):
            real = _real(sample.path)
            if (real, sample.id) in seen or (not listed and (real, None) in seen):
                continue
            seen |= {(real, sample.id), (real, None)}
            unique = _unique(sample.id, sample.path, taken)
            taken.add(unique)
            chosen.append(sample if unique == sample.id else dataclasses.replace(sample, id=unique))
    return tuple(chosen)


def _refuse_missing(path: Path) -> None:
    """Raise BadRequest where nothing is at `path`, with the closest name that is."""
    name = printable(path)
    try:
        os.stat(path)
    except FileNotFoundError:
        siblings = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        raise BadRequest(f"{name}: there is no such file or folder.", closest(path.name, siblings)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(f"{name}: it cannot be reached ({reason}).") from None


class _Search:
    """Samples by path, each with whether a manifest lists it. Every manifest is read once."""

    def __init__(self) -> None:
        self._manifests: dict[Path, dict[Path, list[Sample]] | None] = {}

    def folder(self, folder: Path) -> list[tuple[Sample, bool]]:
        """All samples of a folder. Raises BadRequest where there are none."""
        if os.path.lexists(folder / MANIFEST_NAME):
            return [(sample, True) for sample in load_manifest(folder)]
        found = list(self._walk(folder))
        if not found:
            raise BadRequest(
                f"{printable(folder)}: no audio files in this folder.",
                f"Looked for a {MANIFEST_NAME} and, also in its folders, for {' '.join(EXTENSIONS)}",
            )
        return found

    def file(self, path: Path) -> list[tuple[Sample, bool]]:
        """A file named by itself: its manifest's entries where there are any, or a manifest's samples."""
        folders = Path(os.path.abspath(path)).parents
        if path.name == MANIFEST_NAME:
            return [(sample, True) for sample in load_manifest(path.parent)]
        real = _real(path)
        for folder in folders:
            listed = self._manifest(folder, strict=folder == folders[0])
            if listed and real in listed:
                return [(dataclasses.replace(sample, path=path), True) for sample in listed[real]]
        return [(Sample(id=_id_of(Path(path.name)), path=path), False)]

    def _manifest(self, folder: Path, strict: bool) -> dict[Path, list[Sample]] | None:
        """The samples of the folder's manifest by their files, None where there is no manifest.

        A faulty one counts as none, unless `strict`.
        """
        if folder not in self._manifests:
            try:
                samples = load_manifest(folder) if has_manifest(folder) else None
            except BadRequest:
                if strict:
                    raise
                return None
            by_file: dict[Path, list[Sample]] = {}
            for sample in samples or ():
                by_file.setdefault(_real(sample.path), []).append(sample)
            self._manifests[folder] = None if samples is None else by_file
        return self._manifests[folder]

    def _walk(self, folder: Path) -> Iterator[tuple[Sample, bool]]:
        """The samples of a folder without a manifest, sorted by path."""

        def refuse(error: OSError) -> None:
            name = printable(error.filename or folder)
            raise BadRequest(f"{name}: the folder cannot be read ({error.strerror}).") from error

        for where, folders, files in os.walk(folder, onerror=refuse):
            here = Path(where)
            listed = self._manifest(here, strict=True)
            if listed is not None:
                folders.clear()
                yield from ((sample, True) for samples in listed.values() for sample in samples)
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if not name.startswith(".") and Path(name).suffix.lower() in EXTENSIONS:
                    path = here / name
                    yield Sample(id=_id_of(path.relative_to(folder)), path=path), False


def _id_of(relative: Path) -> str:
    """An id from a relative path: no separator, no control character, never hidden."""
    text = printable("__".join(relative.parts)).replace("\\", "_")
    return text.lstrip(".") or "sample"


def _unique(wanted: str, path: Path, taken: set[str]) -> str:
    """`wanted`, or where it is taken a like one that is free."""
    if wanted not in taken:
        return wanted
    longer = f"{_id_of(Path(Path(os.path.abspath(path)).parent.name))}__{wanted}"
    candidates = (longer, *(f"{wanted}~{number}" for number in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _real(path: Path) -> Path:
    """The path without links; a link that leads nowhere stands for itself."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return Path(os.path.abspath(path))
