"""A manifest for a folder of plain recordings, to be corrected by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import yaml

from voicebench.audio.decode import decode
from voicebench.audio.manifest import MANIFEST_NAME, Sample, can_be_listed
from voicebench.audio.pcm import mono
from voicebench.audio.waveform import segments
from voicebench.errors import AudioProblem, BadRequest

HEADER = """\
# Recordings as voicebench found them. Correct what is wrong; what you leave out is unknown.
#
# segments: [start, end] in seconds of each stretch of speech, found in the waveform (5 ms windows whose RMS
#   exceeds -45 dBFS, pauses inside a stretch closed). The last end is where latency is measured from: listen,
#   and correct it where noise or a breath was taken for speech. An empty list: nobody speaks.
# transcript: what is said, for the word error rate.
# answers: texts of which a right reply holds at least one.
"""


@dataclass(frozen=True)
class Indexed:
    """What became of one recording: its manifest entry, or the reason why it has none."""

    sample: Sample
    entry: dict[str, Any] | None
    note: str = ""


def index(samples: Sequence[Sample], folder: Path) -> Iterator[Indexed]:
    """The manifest entry of each recording in `folder`, one by one."""
    taken: set[str] = set()
    for sample in samples:
        file = sample.path.relative_to(folder).as_posix()
        if not can_be_listed(file):
            yield Indexed(sample, None, "its name holds what a manifest cannot: rename it")
            continue
        try:
            clip = decode(sample.path)
        except AudioProblem as problem:
            yield Indexed(sample, None, problem.what)
            continue
        found = segments(mono(clip), clip.sample_rate)
        entry: dict[str, Any] = {
            "id": _id_for(sample.id, taken),
            "file": file,
            "segments": [[round(one.start_s, 3), round(one.end_s, 3)] for one in found.segments],
        }
        doubts = sorted({one.reason for one in found.segments if not one.certain and one.reason})
        yield Indexed(sample, entry, f"not certain: {', '.join(doubts)}" if doubts else "")


def _id_for(wanted: str, taken: set[str]) -> str:
    """`wanted` in the characters that a manifest's ids may have, unlike the ids that are taken."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("._-")[:90] or "sample"
    found = next(one for one in chain([plain], (f"{plain}-{n}" for n in count(2))) if one not in taken)
    taken.add(found)
    return found


def write_manifest(
    folder: Path, samples: Sequence[Sample], on_each: Callable[[Indexed], None] = lambda _: None
) -> Path:
    """Write `manifest.yaml` into `folder`, which must not hold one.

    Raises BadRequest where there is one already, or where no recording can be read.
    """
    target = folder / MANIFEST_NAME
    if os.path.lexists(target):
        raise BadRequest(f"{target} is there already.", "Correct it by hand, or move it away first.")
    done = []
    for indexed in index(samples, folder):
        on_each(indexed)
        done.append(indexed)
    if not any(one.entry for one in done):
        raise BadRequest(f"None of the {len(done)} files in {folder} can be read.")
    lines = [HEADER, "version: 1\n", "samples:\n"]
    for one in done:
        if one.note:
            lines.append(f"# {one.sample.path.name!a}: {' '.join(one.note.split())}\n")
        if one.entry is not None:
            lines.append(
                yaml.safe_dump([one.entry], sort_keys=False, allow_unicode=True, default_flow_style=None)
            )
            lines.append("  # transcript:\n  # answers: []\n")
    try:
        target.write_text("".join(lines), "utf-8")
    except OSError as error:
        raise BadRequest(f"{target} cannot be written: {error.strerror or error}.") from error
    return target
