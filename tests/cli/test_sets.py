"""Sets of candidates and routes in a batch, as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import voicebench

CONFIG = """\
name: sets
modes: [emulated/opus-4.6, set/spark-x3, route/short-fast]
sets:
  - {id: set/spark-x3, candidates: [emulated/gpt-5.3-codex-spark], times: 3, take: first_clause,
     sibling: emulated/opus-4.6}
routes:
  - {id: route/short-fast, rule: {kind: words, at_most: 7},
     to: {simple: emulated/gpt-5.3-codex-spark, hard: emulated/opus-4.6}, sibling: emulated/opus-4.6}
asr: {kind: scripted, delay_ms: 20, text: "What is the capital city of France?"}
tts: {kind: tone, first_byte_ms: 10, leading_silence_ms: 20}
turn: {kind: speech_timeout, speech_timeout_secs: 0.0}
hear: onset
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: 10
"""
SAMPLE = Path(__file__).parents[2] / "audio_samples" / "yes.wav"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of three modes over one sample, without texts."""
    folder = tmp_path_factory.mktemp("sets")
    (folder / "sets.yaml").write_text(CONFIG, "utf-8")
    done = voicebench("batch", SAMPLE, "--config", "sets.yaml", "--out", "out", "--no-text", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def turns(run: Path) -> dict[str, dict[str, Any]]:
    """The turn of each mode."""
    lines = (run / "turns.jsonl").read_text("utf-8").splitlines()
    return {record["mode"]: record for record in map(json.loads, lines)}


def test_each_set_tells_choice_first_clause_and_cost(run: Path) -> None:
    """The journal holds every candidate; a route says who answered."""
    found = turns(run)
    assert {record["outcome"] for record in found.values()} == {"completed"}
    several = found["set/spark-x3"]
    assert [one["mode"] for one in several["candidates"]] == ["emulated/gpt-5.3-codex-spark"] * 3
    assert sum(one["chosen"] for one in several["candidates"]) == 1
    assert all(one["clause_ns"] > one["first_text_ns"] for one in several["candidates"])
    assert several["choice"]["rule"] == "first_clause"
    assert several["usd"] is None, "nobody published a price for Spark"
    assert found["route/short-fast"]["choice"]["mode"] == "emulated/gpt-5.3-codex-spark"
    assert found["emulated/opus-4.6"]["usd"] > 0


def test_the_report_shows_them_as_modes(run: Path) -> None:
    """Each is an entry, emulated as its members are, and held against its standard sibling."""
    report = json.loads((run / "report.json").read_text("utf-8"))
    kinds = {entry["mode"]: entry["kind"] for entry in report["modes"]}
    assert kinds == dict.fromkeys(("emulated/opus-4.6", "set/spark-x3", "route/short-fast"), "emulated")
    assert [one["mode"] for one in report["worth"]] == ["set/spark-x3", "route/short-fast"]
    facts = json.loads((run / "run.json").read_text("utf-8"))["modes"]["set/spark-x3"]
    assert facts["members"] == ["emulated/gpt-5.3-codex-spark"] * 3
    assert facts["rule"]["take"] == "first_clause"


def test_without_text_no_candidate_tells_its_own(run: Path) -> None:
    """`--no-text` leaves the candidates' replies out as well."""
    assert "Paris" not in (run / "turns.jsonl").read_text("utf-8")


def test_every_form_of_report_can_be_made_of_it(run: Path) -> None:
    """What a set adds to a record fits CSV, Parquet, trace and page."""
    forms = "html,json,csv,markdown,parquet,trace"
    done = voicebench("report", run, "--format", forms, "--out", "made", cwd=run.parent)
    assert done.returncode == 0, done.stderr
