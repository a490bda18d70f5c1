"""How long a large run takes to write, read and tell.  Run:  python -m tests.benchmarks.bench_report [TURNS]

No test: it asserts nothing and is not collected. Times are of this machine, at this moment.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from tests.turns.made import made, made_deltas, made_marks
from voicebench.analysis.report import build_report
from voicebench.export.registry import FORMATS, exporter
from voicebench.turns.journal import JournalWriter, journal_line, read_journal
from voicebench.turns.run_folder import RunInfo

Made = TypeVar("Made")

MODES = ("local/a", "local/b", "emulated/c", "emulated/d")
DELTAS = 40
REPLY = "It opens at nine in the morning, and on Sundays at ten. " * 3


def timed(what: str, make: Callable[[], Made]) -> Made:
    """Do it, say how long it took, and return what came of it."""
    begin = perf_counter()
    found = make()
    sys.stdout.write(f"{what:<40}{perf_counter() - begin:8.2f} s\n")
    sys.stdout.flush()
    return found


def lines_of(turns: int) -> bytes:
    """A journal of so many turns over four modes and 100 samples."""
    draw = random.Random(1)
    lines = []
    for turn in range(turns):
        first = draw.gauss(250, 60)
        record = made(
            turn,
            mode=MODES[turn % len(MODES)],
            sample=f"sample-{turn // len(MODES) % 100}",
            repeat=turn // 400,
            marks=made_marks(llm_first_text=first, vad_stop=draw.gauss(200, 30)),
            deltas=made_deltas(DELTAS, first, 12, reply=REPLY),
            reply=REPLY,
            wer={"errors": 0, "words": 6},
        )
        lines.append(journal_line(record))
    return b"\n".join(lines) + b"\n"


def main(turns: int) -> None:
    """Measure each step once."""
    info = RunInfo(id="bench", started_at="2026-01-02T03:04:05Z", complete=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "turns.jsonl"
        path.write_bytes(timed(f"make {turns} lines", lambda: lines_of(turns)))
        reading = timed("read the journal", lambda: read_journal(path))
        report = timed("build the report", lambda: build_report(info, reading.records, reading=reading))
        for name in FORMATS:
            data = timed(f"export {name}", partial(exporter(name)[0], report, reading.records))
            sys.stdout.write(f"{'':<40}{len(data) / 1e6:8.1f} MB\n")

        def append_all() -> None:
            with JournalWriter(Path(folder) / "appended.jsonl") as journal:
                for record in reading.records[:1000]:
                    journal.append(record)

        timed("append 1000 turns, each synced", append_all)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
