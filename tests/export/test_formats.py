"""The formats carry the same figures, and nothing in them runs, breaks a table or is no JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.made_run import made_run, run_info
from tests.turns.made import made
from voicebench.analysis.report import Report, build_report
from voicebench.errors import BadRequest
from voicebench.export import csv_rows, markdown, report_json
from voicebench.export.registry import FORMATS, exporter, format_names, parse_formats
from voicebench.export.run_report import RunReport, write_report
from voicebench.turns.records import TurnRecord


def as_json(report: Report, records: list[TurnRecord]) -> dict[str, Any]:
    """The JSON export, read strictly."""
    text = report_json.export(report, records).decode()
    told: dict[str, Any] = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    return told


def as_rows(report: Report, records: list[TurnRecord]) -> list[dict[str, str]]:
    """The CSV export, read by the standard library."""
    return list(csv.DictReader(io.StringIO(csv_rows.export(report, records).decode(), newline="")))


def as_tables(report: Report, records: list[TurnRecord]) -> dict[str, list[dict[str, str]]]:
    """The Markdown export's tables by title, cells unescaped."""
    tables: dict[str, list[dict[str, str]]] = {}
    title, head = "", list[str]()
    for line in markdown.export(report, records).decode().splitlines():
        if line.startswith("## "):
            title, head = _plain(line[3:]), []
        if not line.startswith("|"):
            continue
        cells = [_plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not head:
            head = cells
        elif not set("".join(cells)) <= set(":-"):
            tables.setdefault(title, []).append(dict(zip(head, cells, strict=True)))
    return tables


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def test_json_csv_and_markdown_tell_the_same_figures() -> None:
    """Medians, p95, shares, counts, stage means and tokens agree between the three, at every mode."""
    info, records = made_run(turns=200)
    report = build_report(info, records)
    told, rows, tables = as_json(report, records), as_rows(report, records), as_tables(report, records)
    assert len(rows) == len(records)
    for place, entry in enumerate(told["modes"]):
        mine = [row for row in rows if row["mode"] == entry["mode"]]
        latencies = [float(row["voice_to_voice_ms"]) for row in mine if row["counted"] == "true"]
        v2v, latency = entry["voice_to_voice_ms"], tables["Voice-to-voice latency (ms)"][place]
        assert len(latencies) == v2v["n"] == int(latency["n"])
        for percent in (50, 95):
            assert float(np.percentile(latencies, percent)) == pytest.approx(v2v[f"p{percent}"])
        assert latency["p50 (95 %)"].split(" ")[0] == f"{v2v['p50']:.0f}"
        assert latency["p95"] == f"{v2v['p95']:.0f}"
        within = latency["within 800 ms (95 %)"]
        assert within.startswith(f"{100 * entry['budget']['share']:.1f} %")
        assert within.endswith(f"{entry['budget']['hit']} of {entry['budget']['n']}")
        turns = tables["Turns"][place]
        assert int(turns["completed"]) == entry["turns"]["completed"]
        assert sum(row["outcome"] == "completed" for row in mine) == entry["turns"]["completed"]
        assert int(turns["planned"]) == entry["turns"]["planned"] == len(mine)
        for row in tables["Stages near p50 / p95 (ms)"][:8]:
            at_p50, at_p95 = row[entry["mode"]].split(" / ")
            assert at_p50 == f"{entry['stages_at_p50_ms'][row['stage']]:.1f}"
            assert at_p95 == f"{entry['stages_at_p95_ms'][row['stage']]:.1f}"
        slots = [row for row in tables["In the LLM slot (medians)"] if row["mode"] == entry["mode"]]
        for row, slot in zip(slots, entry["slots"], strict=True):
            assert row["tokens"] == f"{slot['tokens']['p50']:.1f}"
            assert row["words"] == f"{slot['words']['p50']:.1f}"
            assert row["speech (s)"] == f"{slot['speech_s']['p50']:.2f}"
        errors = sum(int(row["wer.errors"]) for row in mine)
        assert errors == entry["wer"]["errors"]
        worth = tables["Model and worth (medians)"][place]
        assert worth["word errors"] == f"{100 * entry['wer']['wer']:.1f} % of {entry['wer']['words']}"


def test_every_format_marks_emulated_figures() -> None:
    """A mode that is emulated under any name is marked in JSON, CSV and Markdown."""
    records = [made(0, mode="own/replay", mode_kind="emulated"), made(1)]
    report = build_report(run_info(), records)
    assert [entry["kind"] for entry in as_json(report, records)["modes"]] == ["emulated", "local"]
    assert [row["emulated"] for row in as_rows(report, records)] == ["true", "false"]
    names = [row["mode"] for row in as_tables(report, records)["Voice-to-voice latency (ms)"]]
    assert names == ["own/replay (emulated)", "local/made"]


def test_caveats_stand_in_words_in_json_and_markdown() -> None:
    """Each caveat's text is in both, once."""
    info, records = made_run(turns=8)
    report = build_report(info, records)
    text = _plain(markdown.export(report, records).decode())
    for caveat in as_json(report, records)["caveats"]:
        assert text.count(caveat["text"]) == 1


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_no_cell_of_text_is_taken_for_a_formula(start: str) -> None:
    """Text that begins as a formula gets an apostrophe, in every text column; the text is otherwise whole."""
    text = f'{start}HYPERLINK("http://evil.example","x")'
    record = made(0, reply=text, transcript=text, sample=text, mode=text, model=text, language=text)
    (row,) = as_rows(build_report(run_info(), [record]), [record])
    for column in ("reply", "transcript", "sample", "mode", "model", "language"):
        assert row[column] == f"'{text}"


def test_numbers_stay_numbers_also_below_zero() -> None:
    """A negative latency is a plain number in CSV, and one that does not exist is an empty cell."""
    records = [made(0, v2v_ms=-120.5), made(1, lag_ms=None, outcome="failed")]
    early, failed = as_rows(build_report(run_info(), records), records)
    assert early["voice_to_voice_ms"] == "-120.5"
    assert early["counted"] == "false"
    assert (failed["voice_to_voice_ms"], failed["lag_ms"], failed["usage.output_tokens"]) == ("", "", "")


def test_csv_is_the_flat_form_of_the_journal() -> None:
    """Every field of a record has a column or columns, and values come back as they were."""
    record = made(
        3,
        usage={"output_tokens": 7},
        wer={"errors": 1, "words": 4},
        work_ms={"asr": 61.25, "tts_total": 3.5},
        flags=["length", "late_chunk"],
        asked={"speed": "fast"},
        reply='two\nlines, "quoted"; ☃',
    )
    (row,) = as_rows(build_report(run_info(), [record]), [record])
    fields = {column.split(".")[0] for column in row}
    assert fields >= TurnRecord.model_fields.keys() - {"pipecat_ms"}
    assert row["reply"] == record.reply
    assert (row["usage.output_tokens"], row["wer.words"], row["work_ms.asr"]) == ("7", "4", "61.25")
    assert row["flags"] == "length;late_chunk"
    assert json.loads(row["asked"]) == {"speed": "fast"}
    assert json.loads(row["deltas"]) == [list(delta) for delta in record.deltas]
    marks = {name: int(row[f"marks_ns.{name}"]) for name in record.marks_ns}
    assert marks == record.marks_ns


def test_markdown_shows_names_as_they_are() -> None:
    """Pipes, line breaks, HTML and markup in names neither break the table nor become markup."""
    name = "x/a|b\nc <img src=x> **bold** [l](http://e) `t` &amp;"
    record = made(0, mode=name)
    report = build_report(run_info(), [record])
    (row,) = as_tables(report, [record])["Voice-to-voice latency (ms)"]
    assert row["mode"] == "x/a|b c <img src=x> **bold** [l](http://e) `t` &amp;amp;"
    text = markdown.export(report, [record]).decode()
    assert not re.search(r"(?<!\\)<img", text)


def test_texts_that_utf8_cannot_hold_break_no_export() -> None:
    """Lone surrogates in any text field leave every format of text that needs no extra readable."""
    half = "half \ud83d"
    record = made(0, reply=half, sample=half, mode=half, outcome="failed", reason=half, served={"a": half})
    report = build_report(run_info(), [record])
    for name in FORMATS.keys() - {"parquet", "otel"}:
        exporter(name)[0](report, [record]).decode()


def test_formats_are_named_and_an_unknown_one_lists_them() -> None:
    """A list of formats is read with its spaces and repeats; an unknown or empty one names the known."""
    assert parse_formats(" JSON,csv, json ") == ["json", "csv"]
    assert {"json", "csv", "markdown"} <= set(format_names())
    with pytest.raises(BadRequest, match=r"'markdwn'.*Did you mean 'markdown'") as unknown:
        parse_formats("json,markdwn")
    assert "json, csv, markdown" in unknown.value.remedy
    with pytest.raises(BadRequest, match="no format"):
        parse_formats(" , ")


def run_report(folder: Path) -> RunReport:
    """A small run's report in `folder`."""
    records = [made(0), made(1)]
    return RunReport(folder, build_report(run_info(), records), tuple(records))


def test_reports_are_written_whole_and_private(tmp_path: Path) -> None:
    """Each format is a file of its own in the run's folder or in --out, readable by its owner alone."""
    made_report = run_report(tmp_path)
    written = write_report(made_report, ["json", "csv", "markdown"])
    assert [path.name for path in written] == ["report.json", "report.csv", "report.md"]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    (other,) = write_report(made_report, ["json"], tmp_path / "new" / "place")
    assert other == tmp_path / "new" / "place" / "report.json"
    assert (tmp_path / "new" / "place").stat().st_mode & 0o777 == 0o700
    (named,) = write_report(made_report, ["markdown"], tmp_path / "mine.md")
    assert named.read_text(encoding="utf-8").startswith("# voicebench report")
    assert not list(tmp_path.glob(".*"))


def test_one_file_for_two_formats_is_refused(tmp_path: Path) -> None:
    """A file name with two formats is a wrong request, and nothing is written."""
    with pytest.raises(BadRequest, match="names one file"):
        write_report(run_report(tmp_path), ["json", "csv"], tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []
