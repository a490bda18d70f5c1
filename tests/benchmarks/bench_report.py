"""What a large run costs to write, read and tell.  Run:  python -m tests.benchmarks.bench_report [TURNS]

No test: it asserts nothing and is not collected. Processor time is of this process alone, so that it can be
judged on a busy machine too; what is to be held: report.json of 100,000 turns in 20 s and 1 GB, and an HTML
file below 2 MB. The run is made in a process of its own, so that the memory told is that of the report.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from tests.turns.made import made, made_deltas, made_marks
from voicebench.export.registry import FORMATS, exporter
from voicebench.export.run_report import report_of
from voicebench.turns.journal import JournalWriter, journal_line, read_journal, without_collection
from voicebench.turns.run_folder import JOURNAL_FILE, RunFolder

Made = TypeVar("Made")

MODES = ("local/a", "local/b", "emulated/c", "emulated/d")
DELTAS = 40
WORDS = ("it", "opens", "at", "nine", "in", "the", "morning", "Sundays", "not", "before", "past.", "twice!")
REPLY_WORDS = 32
APPENDED = 1000


def timed(what: str, make: Callable[[], Made]) -> Made:
    """Do it, say what it took (seconds, processor seconds, the process's peak memory), return what came."""
    begin, before = perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    found = make()
    after = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(
        f"{what:<34}{perf_counter() - begin:8.2f} s {after.ru_utime - before.ru_utime:8.2f} s user "
        f"{after.ru_stime - before.ru_stime:6.2f} s system {after.ru_maxrss / 1024:8.0f} MB at most\n"
    )
    sys.stdout.flush()
    return found


def make_run(path: Path, turns: int) -> None:
    """A finished run of so many turns over four modes and 100 samples, no two replies alike."""
    draw = random.Random(1)
    folder = RunFolder.create(path)
    plan = []
    with (path / JOURNAL_FILE).open("wb") as journal:
        for turn in range(turns):
            first = draw.gauss(250, 60)
            reply = " ".join(draw.choices(WORDS, k=REPLY_WORDS))
            record = made(
                turn,
                mode=MODES[turn % len(MODES)],
                sample=f"sample-{turn // len(MODES) % 100}",
                repeat=turn // 400,
                marks=made_marks(llm_first_text=first, vad_stop=draw.gauss(200, 30)),
                deltas=made_deltas(DELTAS, first, draw.gauss(12, 1), draw.uniform(0.8, 1.2), reply=reply),
                reply=reply,
                wer={"errors": 0, "words": 6},
                work_ms={"asr": draw.gauss(60, 5), "llm_total": draw.gauss(900, 90)},
                usd=draw.random() / 1000,
            )
            plan.append({"mode": record.mode, "sample": record.sample, "repeat": record.repeat})
            journal.write(journal_line(record) + b"\n")
    folder.start(plan, config={"vad": {"stop_secs": 0.2}})
    folder.finish(complete=True)


def main(turns: int) -> None:
    """Measure each step once."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run"
        subprocess.run([sys.executable, "-m", __spec__.name, "make", str(path), str(turns)], check=True)
        made_report = timed(f"read and analyse {turns} turns", lambda: report_of(RunFolder.open(path)))
        for name in FORMATS:
            export = partial(exporter(name)[0], made_report.report, made_report.records)
            with without_collection():
                data = timed(f"export {name}", export)
            sys.stdout.write(f"{'':<34}{len(data) / 1e6:8.2f} MB\n")
        reading = timed("read the journal alone", lambda: read_journal(path / JOURNAL_FILE))

        def append_all() -> None:
            with JournalWriter(Path(place) / "appended.jsonl") as journal:
                for record in reading.records[:APPENDED]:
                    journal.append(record)

        timed(f"append {APPENDED} turns, each synced", append_all)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make_run(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
