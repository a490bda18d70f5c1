"""Hostile texts in every field of a run, through every form in which it is told but HTML: text stays text."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from tests.export.html_page import HOSTILE, everywhere
from voicebench.__main__ import main
from voicebench.analysis.report import build_report
from voicebench.audio.drawing import Drawing, Words, to_png, to_svg
from voicebench.cli.screen import Screen
from voicebench.cli.slot_screen import SlotScreen
from voicebench.export.csv_rows import FORMULA_STARTS
from voicebench.export.registry import exporter
from voicebench.export.terminal import print_report
from voicebench.export.turn_text import waterfall
from voicebench.live.card import Level
from voicebench.live.screen import LiveScreen
from voicebench.turns.durable import parse_strict_json, whole_text

TEXTS = (
    *HOSTILE,
    "=cmd|' /c calc'!A1",
    "a|b`c\r\n| d |\r\n# e\\",
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "**x** [y](http://z.test) ![](http://z.test/p) <http://z.test>",
)
MARKED = ":bomb: [red]x[/red]"


def told_as(name: str, text: str) -> bytes:
    """A run with `text` everywhere, in this format."""
    info, records = everywhere(text)
    return exporter(name)[0](build_report(info, records), records)


class Elements(HTMLParser):
    """How many elements of each name a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count an element."""
        self.found[tag] += 1

    def handle_comment(self, data: str) -> None:
        """Count a comment."""
        self.found["comment"] += 1


def rendered(markdown: bytes) -> Counter[str]:
    """The elements of a Markdown file, shown by a renderer that lets HTML through."""
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown.decode())
    return Elements(shown).found


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_text_in_every_file(text: str) -> None:
    """Traces, spans and rows hold it as it is, lone surrogates replaced; Markdown renders to the elements of
    a calm run; no cell begins a formula, and negative figures stay figures."""
    whole = whole_text(text)
    trace = json.loads(told_as("trace", text))
    named = [one for one in trace["traceEvents"] if one.get("cat") == "turn"]
    assert all(one["args"]["reply"] == f"{whole}. And more." for one in named)
    assert all(one["name"].startswith(f"{whole}, repeat") for one in named)
    spans = json.loads(told_as("otel", text))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    values = [one["value"] for span in spans for one in span["attributes"]]
    assert sum(value == {"stringValue": whole} for value in values) >= 14
    assert rendered(told_as("markdown", text)) == rendered(told_as("markdown", "plain"))
    rows = list(csv.reader(io.StringIO(told_as("csv", text).decode(), newline="")))
    assert len(rows) == 15
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows for cell in row if cell[:1] in FORMULA_STARTS and not _is_number(cell)]
    assert told_as("parquet", text)[:4] == b"PAR1"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell
    return True


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_text_in_pictures(text: str) -> None:
    """A picture's title, legend and tip hold it as text of the same elements; as PNG it can be drawn."""

    def drawn(said: str) -> Drawing:
        return Drawing(200, 40, said, said, [Words(5, 20, said)])

    names = [one.tag for one in ElementTree.fromstring(to_svg(drawn(text))).iter()]
    assert names == [one.tag for one in ElementTree.fromstring(to_svg(drawn("plain"))).iter()]
    assert to_png(drawn(text), 1).startswith(b"\x89PNG")


def steers(shown: str) -> set[str]:
    """The characters that a terminal, or the direction of a text, may be steered by."""
    return {one for one in shown if not (one.isprintable() or one == "\n")}


@pytest.mark.parametrize("text", [*TEXTS, MARKED])
def test_hostile_text_steers_no_console(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Progress, turns, waterfalls, the live conversation and the report show no control character; what looks
    like rich's markup or emoji is shown as it is."""
    info, records = everywhere(text)
    good, bad = records[0], records[-1]
    for screen in (
        Screen(quiet=False, verbose=True, budget_ms=800),
        SlotScreen(quiet=False, budget_ms=800, slot_ms=400),
    ):
        with screen:
            screen.phase(f"Loading x/{text}")
            screen.warmup(bad)
            screen.turn(good)
            screen.turn(bad)
    for plain in (True, False):
        live = LiveScreen(800.0, plain=plain)
        live.phase(f"Loading x/{text}")
        live.devices(text, text, Level(-50.0, -40.0))
        live.speak(f"x/{text}", True)
        live.warmup(bad)
        live.turn(good)
        live.turn(bad)
    said = capsys.readouterr().err
    assert steers(said) == set()
    if text == MARKED:
        assert said.count(MARKED) > 10
    into = io.StringIO()
    print_report(build_report(info, records), Console(file=into, width=200))
    assert steers(into.getvalue() + waterfall(good, 800)) == set()


def test_a_manifest_steers_no_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`samples list` shows what a manifest says without escapes, with emoji codes and markup as they are."""
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    sample = {"id": "a", "file": "a.wav", "transcript": f"\x1b[2J{MARKED}\u202e", "voice": "\x9b31mv"}
    text = json.dumps({"samples": [{**sample, "condition": "c\x07"}]})
    (tmp_path / "manifest.yaml").write_text(text, "utf-8")
    assert main(["samples", "list", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert steers(shown) == set()
    assert MARKED in shown


def test_a_mode_of_no_number_is_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`modes --json` of a configuration with NaN and infinity in a mode's options has null there."""
    mode = "{id: x/y, kind: live, provider: x, api: openai-chat, model: m, options: {a: .nan, b: .inf}}"
    (tmp_path / "odd.yaml").write_text(f"own_modes: [{mode}]\n", "utf-8")
    assert main(["modes", "x/y", "--config", str(tmp_path / "odd.yaml"), "--json"]) == 0
    (told,) = parse_strict_json(capsys.readouterr().out)["modes"]
    assert told["options"] == {"a": None, "b": None}


def test_names_of_written_files_steer_no_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a report was written is told without the escapes in the folder's name."""
    from tests.keys_and_text.test_hostile_run import folder_of_a_run

    monkeypatch.chdir(tmp_path)
    run = folder_of_a_run(tmp_path).rename(tmp_path / "run\x1b[2J\u202e\udcff")
    assert main(["report", str(run), "--verbose"]) == 0
    assert main(["report", str(run), "--format", "html", "--out", "elsewhere\x1b[2J\udcff"]) == 0
    told = capsys.readouterr()
    assert "wrote" in told.err
    assert steers(told.out + told.err) == set()


def test_a_turn_is_told_the_same_whatever_it_says() -> None:
    """Hostile words change no figure: the trace of a hostile run has the instants of the calm one."""

    def instants(text: str) -> list[Any]:
        return [(one.get("ts"), one.get("dur")) for one in json.loads(told_as("trace", text))["traceEvents"]]

    assert instants(TEXTS[0]) == instants("plain")
