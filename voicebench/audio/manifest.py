"""What is known of an audio file that is to be spoken to an agent, and the manifest that says it.

A manifest is the file `manifest.yaml` in the folder of the audio files:

    version: 1
    samples:
    - id: capital-of-france
      file: capital-of-france.wav
      transcript: What is the capital of France?
      segments:
      - [0.4, 2.25]
      answers: [Paris]
"""

from __future__ import annotations

import difflib
import math
import os
import reprlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from voicebench.audio.names import printable
from voicebench.errors import BadRequest
from voicebench.plan.yaml_text import plain_yaml

MANIFEST_NAME = "manifest.yaml"
_MAX_MANIFEST_BYTES = 4 << 20
_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Segments = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Sample:
    """One recording that is played to the agent as the user's turn.

    `id` names it in records; it is unique within a run and safe as a file name. `transcript` is what is
    said ("" for nothing), None where nobody wrote it down. `segments` are the stretches of speech in
    seconds from the first decoded frame, in order; empty for a recording without speech, None where it is
    not annotated. `voice` and `condition` describe it, None if unknown. `answers` are the texts of which a
    correct reply holds at least one; empty where the reply cannot be checked so. `language` is a code
    such as "en", None if unknown.
    """

    id: str
    path: Path
    transcript: str | None = None
    segments: Segments | None = None
    voice: str | None = None
    condition: str | None = None
    answers: tuple[str, ...] = ()
    language: str | None = None

    @property
    def anchor(self) -> Literal["annotated", "waveform"]:
        """Where `speech_end` comes from: the annotation, or the recording itself."""
        return "waveform" if self.segments is None else "annotated"

    @property
    def has_speech(self) -> bool | None:
        """Does anyone speak in it? By the segments, else by the transcript; None where neither is known."""
        if self.segments is not None:
            return bool(self.segments)
        return None if self.transcript is None else bool(self.transcript.strip())

    @property
    def speech_start_s(self) -> float | None:
        """The first sound of speech in seconds; None where there is none or it is not annotated."""
        return self.segments[0][0] if self.segments else None

    @property
    def speech_end_s(self) -> float | None:
        """The last sound of speech in seconds; None where there is none or it is not annotated."""
        return self.segments[-1][1] if self.segments else None

    def misfit(self, duration_s: float, tolerance_s: float = 0.02) -> str | None:
        """Why the annotation cannot belong to a recording of `duration_s` seconds; None if it can.

        An end that lies beyond the recording would make every latency measured from it wrong.
        """
        end = self.speech_end_s
        if end is None or end <= duration_s + tolerance_s:
            return None
        return f"{self.id}: speech is annotated until {end:g} s, but the recording ends at {duration_s:.3f} s"


def _check_segments(segments: list[list[float]] | None) -> list[list[float]] | None:
    before = 0.0
    for start, end in segments or ():
        if not (math.isfinite(end) and before <= start < end):
            raise ValueError("segments")
        before = end
    return segments


def _check_file(file: str) -> str:
    inside = Path(file).parts and ".." not in Path(file).parts and not Path(file).is_absolute()
    windows = PureWindowsPath(file)
    if not inside or "\\" in file or not file.isprintable() or windows.drive or windows.root:
        raise ValueError("file")
    return file


def can_be_listed(file: str) -> bool:
    """Can a manifest name this file, relative to its folder? Not one with a control character or a `\\`."""
    try:
        return bool(_check_file(file))
    except ValueError:
        return False


_Text = Annotated[str, StringConstraints(min_length=1)]
_Segment = Annotated[list[float], Field(min_length=2, max_length=2)]


class _Entry(BaseModel):
    """One sample of a manifest, as it stands in the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(pattern=_ID)]
    file: Annotated[str, AfterValidator(_check_file)]
    transcript: str | None = None
    segments: Annotated[list[_Segment] | None, AfterValidator(_check_segments)] = None
    voice: _Text | None = None
    condition: _Text | None = None
    answers: list[_Text] = []
    language: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = None


_ALLOWED = {
    "id": "letters, digits and . _ - only, beginning with a letter or digit, at most 100, no two alike",
    "file": "a path inside the manifest's folder, relative to it, with / and without ..",
    "transcript": "a text; left out if unknown",
    "segments": "a list of [start, end] in seconds, in order, 0 <= start < end, none overlapping; "
    "an empty list where nobody speaks, left out if unknown",
    "voice": "a text that is not empty",
    "condition": "a text that is not empty, such as clean, noise or telephone",
    "answers": "a list of texts (numbers, yes and no in quotation marks); empty if a reply cannot be checked",
    "language": "a language code such as en or en-GB, in quotation marks if it is no",
}


def load_manifest(folder: Path) -> tuple[Sample, ...]:
    """The samples of the manifest in `folder`, in its order.

    Raises BadRequest, naming the manifest, the entry, the key and what is allowed: for no manifest, one that
    is not YAML, an unknown or missing key, a value of the wrong type, a file that is missing or lies outside
    the folder (also by a symbolic link), and for two entries with one id.
    """
    manifest = Path(folder) / MANIFEST_NAME
    where = printable(manifest)
    content = _read(manifest, where)
    if not isinstance(content, dict) or not isinstance(content.get("samples"), list):
        raise BadRequest(f"{where}: no list of samples.", "It needs a top-level key `samples` with a list.")
    _refuse_unknown(content.keys(), {"version", "samples"}, where)
    version = content.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise BadRequest(f"{where}: version is {_shown(version)}.", "Allowed: 1.")
    if not content["samples"]:
        raise BadRequest(f"{where}: the list of samples is empty.")
    samples: dict[str, Sample] = {}
    for number, raw in enumerate(content["samples"], start=1):
        sample = _sample(raw, Path(folder), f"{where}, {_entry_name(raw, number)}")
        if sample.id in samples:
            raise BadRequest(f"{where}, sample {number}: id {sample.id!r} is taken by an earlier sample.")
        samples[sample.id] = sample
    return tuple(samples.values())


def has_manifest(folder: Path) -> bool:
    """Is there a `manifest.yaml` with a list of samples in `folder`? Others use that file name as well.

    Raises BadRequest where there is one that cannot be read: it could be either.
    """
    manifest = Path(folder) / MANIFEST_NAME
    if not os.path.lexists(manifest):
        return False
    content = _read(manifest, printable(manifest))
    return isinstance(content, dict) and isinstance(content.get("samples"), list)


def closest(name: str, names: Iterable[str]) -> str:
    """A remedy that names the one of `names` most like `name`; empty if none is like it."""
    like = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {printable(like[0])}?" if like else ""


def _read(manifest: Path, where: str) -> Any:
    """The YAML in `manifest`, by the safe loader only."""
    try:
        status = os.stat(manifest)
        if not stat.S_ISREG(status.st_mode):
            raise BadRequest(f"{where}: this is not a regular file.")
        if status.st_size > _MAX_MANIFEST_BYTES:
            raise BadRequest(f"{where}: larger than {_MAX_MANIFEST_BYTES >> 20} MiB.")
        return plain_yaml(manifest.read_text("utf-8-sig"))
    except FileNotFoundError as error:
        raise BadRequest(f"{where}: there is no such file.") from error
    except OSError as error:
        raise BadRequest(f"{where}: it cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{where}: this is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it holds what YAML does not allow"
        raise BadRequest(f"{where}{line}: not a plain YAML file ({printable(problem)}).") from error
    except (RecursionError, ValueError) as error:
        raise BadRequest(f"{where}: not a plain YAML file ({printable(str(error))}).") from error


def _entry_name(raw: Any, number: int) -> str:
    name = raw.get("id") if isinstance(raw, dict) else None
    return f"sample {number} ({printable(name)})" if isinstance(name, str) else f"sample {number}"


def _sample(raw: Any, folder: Path, where: str) -> Sample:
    """One entry, checked against the rules of `_Entry` and against the disk."""
    if not isinstance(raw, dict):
        raise BadRequest(f"{where}: {_shown(raw)} is not a sample.", "Each needs at least an id and a file.")
    _refuse_unknown(raw.keys(), set(_ALLOWED), where)
    try:
        entry = _Entry.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = str(problem["loc"][0])
        if problem["type"] == "missing":
            raise BadRequest(f"{where}: the key {key} is missing.", f"Allowed: {_ALLOWED[key]}.") from None
        shown = _shown(raw[key])
        raise BadRequest(f"{where}: {key} is {shown}.", f"Allowed: {_ALLOWED[key]}.") from None
    segments = entry.segments
    if segments == [] and (entry.transcript or "").strip():
        raise BadRequest(
            f"{where}: segments is an empty list, although transcript is {_shown(entry.transcript)}.",
            "An empty list says that nobody speaks; leave segments out if they are unknown.",
        )
    return Sample(
        id=entry.id,
        path=_inside(folder, entry.file, where),
        transcript=entry.transcript,
        segments=None if segments is None else tuple((float(a), float(b)) for a, b in segments),
        voice=entry.voice,
        condition=entry.condition,
        answers=tuple(entry.answers),
        language=entry.language,
    )


def _inside(folder: Path, file: str, where: str) -> Path:
    """The path of `file`, which must be a regular file that really lies in `folder`."""
    path = folder / file
    shown = f"{where}: file is {printable(file)!r}"
    try:
        real = path.resolve(strict=True)
        lies_inside = real.is_relative_to(folder.resolve(strict=True))
        regular = stat.S_ISREG(os.stat(real).st_mode)
    except FileNotFoundError:
        siblings = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        raise BadRequest(f"{shown}, which does not exist.", closest(path.name, siblings)) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise BadRequest(f"{shown}, which cannot be reached ({printable(str(error))}).") from None
    if not lies_inside:
        raise BadRequest(f"{shown}, a link that leads out of the folder.", f"Allowed: {_ALLOWED['file']}.")
    if not regular:
        raise BadRequest(f"{shown}, which is not a regular file.", f"Allowed: {_ALLOWED['file']}.")
    return path


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _refuse_unknown(keys: Iterable[Any], allowed: set[str], where: str) -> None:
    for key in keys:
        if key not in allowed:
            remedy = closest(str(key), sorted(allowed)) or f"Allowed: {', '.join(sorted(allowed))}."
            raise BadRequest(f"{where}: the key {_shown(key)} is unknown.", remedy)


def _shown(value: Any) -> str:
    """A value of the file as a person may see it: short, on one line."""
    return printable(_SHORT.repr(value))
