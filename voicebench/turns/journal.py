"""The journal of a run: one turn a line, on disk before the next turn begins.

A line is one strict JSON object in UTF-8. A process that is killed leaves at most one torn line behind, at
the end; reading passes over it, and appending never merges with it.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from voicebench.errors import RunProblem
from voicebench.turns.durable import (
    CAREFULLY,
    FILE_MODE,
    cannot_write,
    make_private,
    open_to_read,
    parse_strict_json,
    strict_json,
    sync_folder,
    write_all,
)
from voicebench.turns.records import TurnRecord

try:
    import fcntl
except ImportError:  # a system without POSIX locks
    fcntl = None  # type: ignore[assignment]

TEXT_FIELDS = frozenset({"transcript", "reply", "spoken", "first_clause"})
"""What people and models said; left out of the journal on request."""

_BLOCK = 1 << 16
MOST_LINE_BYTES = 64 << 20
"""No turn's line is longer; a file without line feeds is not read into memory."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class JournalReading:
    """What a journal held."""

    records: tuple[TurnRecord, ...]
    """The turns, in the order in which they were written."""
    torn_lines: int = 0
    """Lines that are not whole: the last one after a kill."""
    problems: tuple[str, ...] = ()
    """Whole lines that are no turn of a kind known here, each with its number and what is wrong with it."""
    unknown_fields: tuple[str, ...] = ()
    """Fields that a newer version wrote and this one ignores, sorted."""


class JournalWriter:
    """Appends turns to a journal, each on disk when `append` returns. A context manager.

    The file is made with mode 0600 when the writer is made, so that a place that cannot be written is known
    before the run. Where the file ends in a torn line, the torn piece is cut off; a whole line that only
    lacks its line feed is kept. With `no_text`, transcripts and replies are left out. Several threads may
    append: lines never mix, and `close` waits for the one that is being written.

    Raises RunProblem where the file cannot be opened, or is being written by another process.
    """

    def __init__(self, path: Path, *, no_text: bool = False) -> None:
        self.path = path
        self._left_out = TEXT_FIELDS if no_text else frozenset()
        self._torn = False
        self._one_at_a_time = threading.Lock()
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | CAREFULLY, FILE_MODE)
            self._lock()
            make_private(self._descriptor)
            self._mend_tail()
            sync_folder(path.parent)
        except OSError as error:
            self.close()
            raise cannot_write(path, error) from error
        except RunProblem:
            self.close()
            raise

    def append(self, record: TurnRecord) -> None:
        """Write one turn as one line and wait until it is on disk.

        Raises RunProblem where the disk refuses: what could be written of this turn stays, and a torn piece
        of it never merges with a later line. Raises ValueError for a record that no reader would take back
        (a token count that is not a finite number), and after `close`.
        """
        line = journal_line(record, self._left_out) + b"\n"
        with self._one_at_a_time:
            if self._descriptor < 0:
                raise ValueError(f"{self.path} is closed")
            try:
                if self._torn:
                    self._mend_tail()
                self._torn = True
                write_all(self._descriptor, line)
                self._torn = False
                os.fsync(self._descriptor)
            except OSError as error:
                raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Close the file; every line is already on disk. Closing twice is fine."""
        with self._one_at_a_time:
            if self._descriptor >= 0:
                descriptor, self._descriptor = self._descriptor, -1
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        """Hold the file for this writer alone, as long as it is open; some network disks have no locks."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunProblem(
                f"{self.path} is being written by another voicebench.", "Wait until that run has ended."
            ) from error
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise

    def _mend_tail(self) -> None:
        """Let the file end with a line feed: cut a torn last line off, complete a whole one."""
        size = os.fstat(self._descriptor).st_size
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(_BLOCK, start)
            start -= step
            os.lseek(self._descriptor, start, os.SEEK_SET)
            tail = os.read(self._descriptor, step) + tail
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return
        try:
            parse_strict_json(last)
        except ValueError:
            os.ftruncate(self._descriptor, size - len(last))
        else:
            write_all(self._descriptor, b"\n")
        os.fsync(self._descriptor)


def journal_line(record: TurnRecord, left_out: frozenset[str] = frozenset()) -> bytes:
    """The journal's line for `record`, without the line feed and without the fields in `left_out`.

    A number that is not finite is left out of `work_ms` and `pipecat_ms` and null elsewhere. Raises
    ValueError where the line could not be read back.
    """
    exclude: dict[str, Any] = dict.fromkeys(left_out, True)
    if left_out:
        within = {"reply": True, "arguments": True}
        exclude |= {name: {"__all__": within} for name in ("candidates", "requests", "tools")}
    try:
        line = record.model_dump_json(exclude=exclude).encode()
    except PydanticSerializationError:  # a lone surrogate in a text
        line = strict_json(record.model_dump(exclude=exclude))
    try:
        TurnRecord.model_validate_json(line)
    except ValidationError:
        kept = record.model_dump(exclude=exclude)
        for field in ("work_ms", "pipecat_ms"):
            kept[field] = {name: x for name, x in kept[field].items() if abs(x) < float("inf")}
        line = strict_json(kept)
        TurnRecord.model_validate_json(line)
    return line


def read_journal(path: Path) -> JournalReading:
    """Every whole turn of the journal at `path`, however it was cut off.

    Lines may end in LF or CRLF; blank lines and a byte-order mark are passed over. Raises RunProblem where
    the file cannot be read.
    """
    try:
        with without_collection(), open_to_read(path) as lines:
            return read_lines(_bounded(lines, path))
    except OSError as error:
        raise RunProblem(
            f"Cannot read the journal {path}: {error.strerror or error}.",
            "Name a run folder that holds turns.jsonl and that you may read.",
        ) from error


def _bounded(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a journal. Raises RunProblem at one that is longer than any turn's."""
    while line := file.readline(MOST_LINE_BYTES + 1):
        if len(line) > MOST_LINE_BYTES:
            raise RunProblem(
                f"The journal {path} has a line of more than {MOST_LINE_BYTES >> 20} MiB, which no turn is.",
                "Put it back as it was written.",
            )
        yield line


@contextmanager
def without_collection() -> Iterator[None]:
    """No search for cycles of objects within: a large run's records hold none, and looking costs seconds."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_lines(lines: Iterator[bytes]) -> JournalReading:
    """Every whole turn among `lines`, as `read_journal` tells it."""
    records: list[TurnRecord] = []
    problems: list[str] = []
    unknown: set[str] = set()
    names: set[str] = set()
    torn = 0
    for number, line in enumerate(lines, start=1):
        text = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).strip()
        if not text:
            continue
        try:
            if (b"N" in text and b"NaN" in text) or b"Infinity" in text:
                parse_strict_json(text)
            record = TurnRecord.model_validate_json(text)
            named = record.__pydantic_fields_set__
            if named == names:  # lines with the same fields share the set of their names, to save memory
                object.__setattr__(record, "__pydantic_fields_set__", names)
            else:
                names = named
            records.append(record)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid":
                torn += 1
                continue
            try:
                record, fields = _read_newer(text)
            except ValueError as problem:
                problems.append(f"line {number}: {_told(problem)}")
            else:
                records.append(record)
                unknown |= fields
        except (json.JSONDecodeError, UnicodeDecodeError):
            torn += 1
        except ValueError as problem:
            problems.append(f"line {number}: {problem}")
    return JournalReading(tuple(records), torn, tuple(problems), tuple(sorted(unknown)))


def _read_newer(line: bytes) -> tuple[TurnRecord, set[str]]:
    """The turn on a line that a newer version wrote, and the names of the fields that were passed over.

    Raises ValidationError or ValueError where something else than unknown fields is wrong.
    """
    value = parse_strict_json(line)
    unknown: set[str] = set()
    try:
        return TurnRecord.model_validate(value), unknown
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            if problem["type"] != "extra_forbidden":
                raise
            place: Any = value
            for step in problem["loc"][:-1]:
                place = place[step]
            del place[problem["loc"][-1]]
            unknown.add(".".join(str(step) for step in problem["loc"] if isinstance(step, str)))
    return TurnRecord.model_validate_json(strict_json(value)), unknown


def _told(problem: ValueError) -> str:
    """The first thing that is wrong with a line, in one short sentence without the line's content."""
    if isinstance(problem, ValidationError):
        first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(str(step) for step in first['loc']) or 'the line'}: {first['msg']}"
    return str(problem)
