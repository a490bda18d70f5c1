"""Whether the files of a model are there and are the ones that the catalogue names."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from voicebench.models.catalogue import Catalogue, CatalogueModel, ModelFile, load_catalogue
from voicebench.models.places import folder_of

STAMP_NAME = ".verified.json"
_CHUNK = 1 << 20


class FileState(StrEnum):
    """How a file compares with its entry in the catalogue; only `present` is good."""

    PRESENT = "present"
    MISSING = "missing"
    WRONG_SIZE = "wrong size"
    WRONG_HASH = "wrong hash"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One file of a model as found on the disk.

    `size` (bytes) is None where there is no regular file. `sha256` (hex) is None where the file was not
    hashed: it is missing, unreadable or of the wrong size. `reason` is the system's message where it is
    unreadable.
    """

    model_id: str
    file: ModelFile
    path: Path
    state: FileState
    size: int | None = None
    sha256: str | None = None
    reason: str = ""

    @property
    def good(self) -> bool:
        """True where the file is the one that the catalogue names."""
        return self.state is FileState.PRESENT

    def __str__(self) -> str:
        detail = ""
        if self.state is FileState.WRONG_SIZE:
            detail = f" (expected {self.file.size:,} bytes, got {self.size:,})"
        elif self.state is FileState.WRONG_HASH:
            detail = f" (expected SHA-256 {self.file.sha256}, got {self.sha256})"
        elif self.reason:
            detail = f" ({self.reason})"
        return f"{self.path}: {self.state}{detail}"


def verify(model_ids: Iterable[str] | None = None, *, catalogue: Catalogue | None = None) -> list[FileStatus]:
    """Hash every file of the named models (all for None) and compare it with the catalogue.

    One status a file, in the catalogue's order. BadRequest for an unknown name.
    """
    catalogue = load_catalogue() if catalogue is None else catalogue
    return [
        status for model in catalogue.select(model_ids) for status in check_model(model, trust_stamp=False)
    ]


def check_model(model: CatalogueModel, *, trust_stamp: bool = True) -> list[FileStatus]:
    """The status of each file of `model`.

    With `trust_stamp`, a file whose size and modification time (ns) are those noted when its hash was last
    found right is not hashed again. What a hash has shown is noted in the model's folder where that can be
    written to.
    """
    folder = folder_of(model)
    stamp = _read_stamp(folder) if trust_stamp else {}
    statuses: list[FileStatus] = []
    noted: dict[str, dict[str, Any]] = {}
    for file in model.files:
        status, note = _check_file(model.id, folder, file, stamp.get(file.name))
        statuses.append(status)
        if note is not None:
            noted[file.name] = note
    if noted and noted != stamp:
        _write_stamp(folder, noted)
    return statuses


def sha256_of(path: Path) -> str:
    """The SHA-256 (hex) of a file's content; OSError where it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _check_file(
    model_id: str, folder: Path, file: ModelFile, stamped: object
) -> tuple[FileStatus, dict[str, Any] | None]:
    """The file's status, and what to note of it where it is good."""
    path = folder / file.name

    def found(
        state: FileState, size: int | None = None, sha256: str | None = None, reason: str = ""
    ) -> FileStatus:
        return FileStatus(model_id, file, path, state, size, sha256, reason)

    try:
        before = path.stat()
        if not stat.S_ISREG(before.st_mode):
            return found(FileState.UNREADABLE, reason="not a regular file"), None
        if before.st_size != file.size:
            return found(FileState.WRONG_SIZE, before.st_size), None
        note = {"size": before.st_size, "mtime_ns": before.st_mtime_ns, "sha256": file.sha256}
        if stamped == note:
            return found(FileState.PRESENT, before.st_size, file.sha256), note
        sha256 = sha256_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return found(FileState.MISSING), None
    except OSError as error:
        return found(FileState.UNREADABLE, reason=error.strerror or str(error)), None
    if sha256 != file.sha256:
        return found(FileState.WRONG_HASH, before.st_size, sha256), None
    return found(FileState.PRESENT, before.st_size, sha256), note


def _read_stamp(folder: Path) -> dict[str, Any]:
    """The notes of earlier checks; empty where there are none to read, which costs only a hash."""
    try:
        stamp = json.loads((folder / STAMP_NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _write_stamp(folder: Path, notes: dict[str, dict[str, Any]]) -> None:
    """Keep the notes; a folder that cannot be written to (a shared cache) is hashed again next time."""
    temporary = folder / f"{STAMP_NAME}.{secrets.token_hex(8)}.part"
    with contextlib.suppress(OSError):
        try:
            temporary.write_text(json.dumps(notes, indent=1) + "\n", "utf-8")
            os.replace(temporary, folder / STAMP_NAME)
        finally:
            temporary.unlink(missing_ok=True)
