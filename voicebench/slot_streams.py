"""Recorded streams: the timing of a real reply kept as a file, and a mode that replays it."""

from __future__ import annotations

import re
from pathlib import Path

from voicebench.emulator import replay
from voicebench.plan.modes import Mode
from voicebench.stages.llm_keys import redact
from voicebench.turns.durable import strict_json, write_atomically
from voicebench.turns.records import TurnRecord
from voicebench.turns.stream import StreamLog


def save_stream(folder: Path, record: TurnRecord, stream: StreamLog, *, text: bool) -> Path:
    """Write a stream's timing as a file that the emulator replays, mode 0600; returns its path.

    Times are ms since the request was made, so the way to the provider and back is in them. Without `text`
    only the number of characters of each delta is kept, as where the text names a key. Raises RunProblem
    where it cannot be written.
    """
    told = "".join(piece for _, piece in stream.deltas)
    text = text and redact(told) == told
    deltas: list[tuple[int, str | int]] = [
        (at - stream.request_ns, piece if text else len(piece)) for at, piece in stream.deltas
    ]
    recorded = replay.from_deltas(deltas, "text" if text else "characters")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{record.mode}-{record.sample}-r{record.repeat}").strip("-.")
    path = folder / f"{name}.json"
    write_atomically(path, strict_json(recorded.to_dict()) + b"\n")
    return path


def replay_mode(path: Path) -> Mode:
    """A mode that replays the stream recorded in `path`. Raises BadRequest where that is no such file."""
    replay.read(path)
    return Mode(
        id=f"replay/{path.stem}",
        kind="emulated",
        provider="replay",
        api="openai-responses",
        model=path.stem,
        tokenizer="o200k",
        emulation={"replay": str(path.absolute())},
    )
