"""Files that survive a crash: strict JSON, private modes, whole or not at all.

Folders are made 0700 and files 0600: a run holds what people said.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from voicebench.errors import RunProblem
from voicebench.turns.deltas import Deltas

FILE_MODE = 0o600
FOLDER_MODE = 0o700
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags of every opening for writing: a link planted in a run folder is never written through, a pipe there
never waited for; bytes stay as they are."""


def whole_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone ones replaced by U+FFFD, so that UTF-8 can hold it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, os.PathLike):
        return whole_text(os.fsdecode(value))
    if isinstance(value, BaseModel):
        return _whole(value.model_dump(by_alias=True))
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Deltas):
        return tuple(value)
    raise PydanticSerializationError(f"an object of the type {type(value).__name__} is no JSON")


def strict_json(value: Any, indent: int | None = None) -> bytes:
    """`value` as strict JSON in UTF-8: a number that is not finite is null, a lone surrogate U+FFFD.

    Takes plain values, paths, enums, dates, packed deltas and pydantic models; any other object raises
    PydanticSerializationError.
    """
    try:
        return to_json(value, indent=indent, inf_nan_mode="null", fallback=_unpacked)
    except PydanticSerializationError:
        return to_json(_whole(value), indent=indent, inf_nan_mode="null", fallback=_unpacked)


def plain_values(value: Any) -> Any:
    """`value` as what a reader of its strict JSON gets."""
    return parse_strict_json(strict_json(value))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def parse_strict_json(data: bytes | str) -> Any:
    """The value of a strict JSON text. ValueError for anything else: NaN, Infinity, text not in UTF-8."""
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("values are nested without end") from None


def open_to_read(path: Path) -> BinaryIO:
    """Open a file of a run for reading. OSError where it is anything but a regular file: a pipe may never be
    written to, and a device has no end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "this is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def write_all(descriptor: int, data: bytes) -> None:
    """Write the whole of `data`, in as many calls as the system takes. OSError where it cannot."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def make_private(descriptor: int) -> None:
    """Let only the owner read and write the open file, also one that was there before. May raise OSError."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, FILE_MODE)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` outlive a power cut, where the system can do that. May raise OSError."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> RunProblem:
    """The error for people when `path` could not be written."""
    return RunProblem(
        f"Cannot write {path}: {error.strerror or error}.",
        "Free space on the disk or choose another place with --out. What was written before is kept.",
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path`, mode 0600: a reader, or a crash, finds either the old file or the whole new one.

    Raises RunProblem where it cannot be written; the old file is then still there.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | CAREFULLY, FILE_MODE)
        try:
            make_private(descriptor)
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
