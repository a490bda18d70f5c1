"""The ledger of a run with every outcome in it: planned is their sum, in each format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

from rich.console import Console

from tests.export.test_formats import as_tables
from tests.turns.made import made
from voicebench.export import csv_rows
from voicebench.export.registry import exporter
from voicebench.export.run_report import report_of
from voicebench.export.terminal import rendered
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder

NOT_RUN = 3


def every_outcome() -> list[TurnRecord]:
    """One more of each outcome than of the one before, so that no two counts can be mixed up."""
    ended = [outcome for place, outcome in enumerate(Outcome, start=1) for _ in range(place)]
    return [
        made(
            turn,
            outcome=outcome,
            v2v_ms=400.0 + 10 * turn,
            reason=None if outcome is Outcome.COMPLETED else f"because {outcome.value}",
        )
        for turn, outcome in enumerate(ended)
    ]


def test_planned_is_the_sum_of_the_outcomes_in_every_format(tmp_path: Path) -> None:
    """JSON, CSV, Markdown, HTML and the terminal count each outcome as often as it is in the journal, and
    what they count adds up to the plan; every percentile stands beside its n."""
    records = every_outcome()
    planned = [{"mode": one.mode, "sample": one.sample, "repeat": one.repeat} for one in records]
    planned += [
        {"mode": records[0].mode, "sample": f"never-{number}", "repeat": 0} for number in range(NOT_RUN)
    ]
    folder = RunFolder.create(tmp_path / "run")
    folder.start(planned)
    with folder.journal() as journal:
        for record in records:
            journal.append(record)
    run = report_of(folder)
    truth = {outcome.value: place for place, outcome in enumerate(Outcome, start=1)}
    total = sum(truth.values()) + NOT_RUN
    completed = truth["completed"]

    told = json.loads(exporter("json")[0](run.report, run.records))
    turns = told["modes"][0]["turns"]
    assert turns == {**truth, "planned": total, "not_run": NOT_RUN}
    assert turns.pop("planned") == sum(turns.values())
    assert told["modes"][0]["voice_to_voice_ms"]["n"] == completed

    rows = list(csv.DictReader(io.StringIO(csv_rows.export(run.report, run.records).decode())))
    assert Counter(row["outcome"] for row in rows) == truth
    assert len(rows) + NOT_RUN == total

    tables = as_tables(run.report, list(run.records))
    [ledger] = tables["Turns"]
    assert (ledger["planned"], ledger["completed"]) == (str(total), str(completed))
    assert _others(ledger["not completed"]) == {**_but_completed(truth), "not run": NOT_RUN}
    [latency] = tables["Voice-to-voice latency (ms)"]
    assert latency["n"] == str(completed)

    html = exporter("html")[0](run.report, run.records).decode()
    pointers = _pointers(html)
    assert pointers == {**truth, "planned": total, "not_run": NOT_RUN}

    screen = Console(width=250, file=io.StringIO(), highlight=False)
    screen.print(rendered(run.report, 250))
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert ledger["not completed"] in text
    assert re.search(rf"local/made .* {total} +{completed} ", text)


def _but_completed(truth: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in truth.items() if name != "completed"}


def _others(cell: str) -> dict[str, int]:
    """`1 failed, 2 timed_out` as counts."""
    return {name: int(count) for count, name in (part.split(" ", 1) for part in cell.split(", "))}


def _pointers(html: str) -> dict[str, int]:
    """The figures of the first mode's ledger by their place in report.json."""
    found = {}
    for element in re.findall(r"<data [^>]*>", html):
        pointer = re.search(r'data-pointer="?/modes/0/turns/(\w+)', element)
        value = re.search(r' value="?(\d+)', element)
        if pointer and value:
            found[pointer[1]] = int(value[1])
    return found
