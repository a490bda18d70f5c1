"""The folder of a run: what it holds, how it is made, and how it is opened again.

run.json      what was run: config as resolved, environment, versions, models, planned turns, noise floor
turns.jsonl   the journal, one turn a line
warmup.jsonl  the warm-up turns, kept out of every statistic
audio/        recordings, when they are kept
report.*      what `voicebench report` wrote
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from voicebench.clock import utc_now
from voicebench.errors import BadRequest, RunProblem
from voicebench.turns.durable import (
    FOLDER_MODE,
    cannot_write,
    open_to_read,
    parse_strict_json,
    plain_values,
    strict_json,
    write_atomically,
)
from voicebench.turns.journal import JournalReading, JournalWriter, read_journal
from voicebench.turns.records import ModeKind
from voicebench.turns.timeline import Anchor

SCHEMA = 1
RUN_FILE = "run.json"
JOURNAL_FILE = "turns.jsonl"
WARMUP_FILE = "warmup.jsonl"
AUDIO_FOLDER = "audio"
RUNS_FOLDER = Path("runs")
MOST_INFO_BYTES = 256 << 20
"""No `run.json` is larger: a million planned turns take less."""


class _Kept(BaseModel):
    """A value of `run.json`: immutable; what a newer version added is carried along."""

    model_config = ConfigDict(frozen=True, extra="allow")


_Span = Annotated[float, Field(ge=0, le=1e9, strict=True)]
"""Milliseconds of a budget or a slot."""
_Rate = Annotated[float, Field(ge=0, le=1e9, strict=True)]

_FROM_CONFIG: dict[str, TypeAdapter[Any]] = {
    "budget_ms": TypeAdapter(_Span),
    "slots_ms": TypeAdapter(tuple[_Span, ...]),
}
_LOAD: dict[str, TypeAdapter[Any]] = {
    "sessions": TypeAdapter(Annotated[int, Field(ge=1, le=10**6, strict=True)]),
    "rate_per_s": TypeAdapter(_Rate | None),
    "achieved_per_s": TypeAdapter(_Rate | None),
}


class PlannedEntry(_Kept):
    """One planned turn: the key under which its record is found."""

    mode: str
    sample: str
    repeat: int
    """From 0."""
    anchor: Anchor | None = None
    """Where its `speech_end` will come from, None where the plan does not know."""


class ModeFacts(_Kept):
    """What is known of a mode before its first turn."""

    kind: ModeKind | None = None
    model: str | None = None
    asked: dict[str, Any] = Field(default_factory=dict)
    """Request options that name a speed, tier or effort."""
    published_decode_tok_s: float | None = None
    """Output tokens a second that the vendor, or who measured it, published. None: nobody did."""
    published_source: str | None = None
    """Where that figure stands."""
    assumed: bool = False
    """Is the figure ours, because nobody published one?"""


class RunInfo(_Kept):
    """What `run.json` says of a run."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    id: str
    started_at: str
    """UTC, ISO 8601."""
    ended_at: str | None = None
    """UTC, ISO 8601; None while the run goes on, and where it was killed."""
    complete: bool = False
    """Was every planned turn run and written?"""
    command: str = "batch"
    """What made the run: batch, live or slot."""
    config: dict[str, Any] = Field(default_factory=dict)
    """The config as resolved, without secrets."""
    environment: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, Any] = Field(default_factory=dict)
    """Model files by name, with size and SHA-256."""
    modes: dict[str, ModeFacts] = Field(default_factory=dict)
    """Mode id to what is known of it."""
    budget_ms: _Span | None = None
    """What V2V is held against; None: the config's, or 800."""
    slots_ms: tuple[_Span, ...] | None = None
    """The nominal LLM slots; None: the config's, or 400 and 500."""
    noise_floor_ms: float | None = None
    """What the harness itself adds to V2V: p99 of its calibration's turns, below 100 the maximum; None until
    it is measured."""
    noise_floor_reason: str | None = "not measured in this run"
    """Why there is no noise floor; None where there is one."""
    calibration: dict[str, Any] | None = None
    """The calibration in full: n, statistic, bias, minimum, maximum, each stage's bias; None: none made."""
    synthetic_samples: int | None = None
    """How many of the samples were made by speech synthesis; None where nobody knows."""
    load: dict[str, Any] | None = None
    """How turns were offered: `sessions` at once, `rate_per_s` of the schedule (None: no schedule); and once
    the last ones were run, their number, `elapsed_s`, `achieved_per_s`, `most_at_once`. None: one by one."""
    planned: tuple[PlannedEntry, ...] = ()

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    @field_validator("config")
    @classmethod
    def _figures_of_config(cls, config: dict[str, Any]) -> dict[str, Any]:
        """The figures that a report takes from the config are such as RunInfo's own fields of these names."""
        for name, kind in _FROM_CONFIG.items():
            if config.get(name) is not None:
                kind.validate_python(config[name])
        return config

    @field_validator("load")
    @classmethod
    def _figures_of_load(cls, load: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in _LOAD.keys() & (load or {}).keys():
            _LOAD[name].validate_python((load or {})[name])
        return load

    def to_dict(self) -> dict[str, Any]:
        """The plain values of `run.json`."""
        told: dict[str, Any] = plain_values(self.model_dump(by_alias=True))
        return told


def new_run_id() -> str:
    """A run's id: the calendar time in UTC and six random hexadecimal digits; it sorts by time."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"


@dataclass(frozen=True)
class RunFolder:
    """A run's folder on disk. Made by `create` or `open`; every file in it is private to its owner."""

    path: Path
    id: str

    @classmethod
    def create(cls, path: Path | None = None, *, root: Path = RUNS_FOLDER) -> RunFolder:
        """Make the folder of a new run: `path` itself, or where it is None `root`/<UTC time>-<short id>.

        Raises BadRequest where `path` is something else than an empty or absent folder, and RunProblem where
        it cannot be made.
        """
        run_id = new_run_id()
        folder = root / run_id if path is None else path
        try:
            if folder.exists() or folder.is_symlink():
                if not folder.is_dir():
                    raise BadRequest(f"{folder} is no folder.", "Name a new or an empty folder with --out.")
                if any(child.name != f".{RUN_FILE}.draft" for child in folder.iterdir()):
                    raise BadRequest(
                        f"The folder {folder} is not empty, and a run never writes over another.",
                        "Name a new or an empty folder with --out, or go on with that run: --resume "
                        f"{folder}",
                    )
                folder.chmod(FOLDER_MODE)
            else:
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=FOLDER_MODE)
        except OSError as error:
            raise cannot_write(folder, error) from error
        return cls(folder, run_id)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of a run that was made before, complete or not.

        Raises RunProblem, saying what is missing or damaged and what to do, where it is no run folder.
        """
        if not path.exists():
            raise RunProblem(
                f"There is no run folder {path}.",
                f"`ls {RUNS_FOLDER}` lists the runs made here; name one of them.",
            )
        if not path.is_dir():
            raise RunProblem(f"{path} is a file, no run folder.", f"Name its folder: {path.parent}")
        if not (path / RUN_FILE).is_file():
            journal = (path / JOURNAL_FILE).is_file()
            raise RunProblem(
                f"{path} is no run folder: it holds no {RUN_FILE}.",
                f"Its {JOURNAL_FILE} is there; put back the {RUN_FILE} that was written beside it."
                if journal
                else "Name a folder that `voicebench batch`, `live` or `slot` wrote.",
            )
        info = read_info(path / RUN_FILE)
        if info.complete and not (path / JOURNAL_FILE).is_file():
            raise RunProblem(
                f"The run folder {path} holds no {JOURNAL_FILE}, though its run ended.",
                f"Put back the {JOURNAL_FILE} that was written beside its {RUN_FILE}, or run again.",
            )
        return cls(path, info.id)

    def info(self) -> RunInfo:
        """What `run.json` says now. Raises RunProblem where it is missing or damaged."""
        return read_info(self.path / RUN_FILE)

    def write_info(self, info: RunInfo) -> None:
        """Write `run.json`, whole or not at all. Raises RunProblem where it cannot be written."""
        write_atomically(self.path / RUN_FILE, strict_json(info.to_dict(), indent=2) + b"\n")

    def start(self, planned: Sequence[PlannedEntry | Mapping[str, Any]], **facts: Any) -> RunInfo:
        """Write `run.json` of a run that begins now, not complete. `facts` are further fields of RunInfo.

        Raises RunProblem where it cannot be written.
        """
        info = RunInfo.model_validate(
            {"id": self.id, "started_at": utc_now(), **facts, "planned": tuple(planned), "complete": False}
        )
        self.write_info(info)
        return info

    def update(self, **facts: Any) -> RunInfo:
        """Write `run.json` again with other values for some of its fields, and return it."""
        info = RunInfo.model_validate({**dict(self.info()), **facts})
        self.write_info(info)
        return info

    def finish(self, *, complete: bool, **facts: Any) -> RunInfo:
        """Write into `run.json` that the run ended now, and whether every planned turn was run and written.

        Raises RunProblem where it cannot be written: the run is then never left marked as complete.
        """
        try:
            return self.update(**{"ended_at": utc_now(), **facts, "complete": complete})
        except RunProblem:
            with suppress(RunProblem):  # the new file may be in place and only its name not yet safe
                self.update(complete=False)
            raise

    def journal(self, *, no_text: bool = False) -> JournalWriter:
        """The writer of `turns.jsonl`, which goes on where the file ends."""
        return JournalWriter(self.path / JOURNAL_FILE, no_text=no_text)

    def warmup_journal(self, *, no_text: bool = False) -> JournalWriter:
        """The writer of `warmup.jsonl`."""
        return JournalWriter(self.path / WARMUP_FILE, no_text=no_text)

    def turns(self) -> JournalReading:
        """What `turns.jsonl` holds; nothing where the run was ended before its first turn."""
        return self._read(JOURNAL_FILE)

    def warmup(self) -> JournalReading:
        """What `warmup.jsonl` holds; nothing where there was no warm-up."""
        return self._read(WARMUP_FILE)

    def audio_folder(self) -> Path:
        """The folder of the kept recordings, made on first use.

        Raises RunProblem where it cannot be made, or is a link to somewhere else.
        """
        folder = self.path / AUDIO_FOLDER
        try:
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        if folder.is_symlink():
            raise RunProblem(f"{folder} is a link: recordings stay in the run's own folder.", "Remove it.")
        return folder

    def write(self, name: str, data: bytes) -> Path:
        """Write the file `name` of this folder, whole or not at all, and return its path.

        Raises ValueError for a name with a folder in it, RunProblem where it cannot be written.
        """
        if not name or name != os.path.basename(name) or name in {os.curdir, os.pardir}:
            raise ValueError(f"{name!r} names no file of the run folder itself")
        target = self.path / name
        write_atomically(target, data)
        return target

    def _read(self, name: str) -> JournalReading:
        file = self.path / name
        return read_journal(file) if file.exists() else JournalReading(())


def read_info(path: Path) -> RunInfo:
    """What the `run.json` at `path` says; a field that an older version did not write has its default.

    Raises RunProblem where it cannot be read or is damaged.
    """
    remedy = f"Put back the {RUN_FILE} as it was written; the turns in {JOURNAL_FILE} are not harmed."
    try:
        with open_to_read(path) as file:
            if os.fstat(file.fileno()).st_size > MOST_INFO_BYTES:
                raise RunProblem(f"{path} is damaged: larger than {MOST_INFO_BYTES >> 20} MiB.", remedy)
            return RunInfo.model_validate(parse_strict_json(file.read()))
    except OSError as error:
        raise RunProblem(f"Cannot read {path}: {error.strerror or error}.", remedy) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise RunProblem(f"{path} is damaged: {place}: {first['msg']}.", remedy) from error
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError) as error:
        raise RunProblem(f"{path} is damaged: {error}.", remedy) from error
