"""`voicebench modes`: what is known of each mode, for eyes and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voicebench.__main__ import main
from voicebench.plan.modes import catalogue

OWN = """\
own_modes:
  - {id: mine/assistant, kind: local, provider: mine, api: openai-chat, model: m}
"""


def test_the_table_marks_what_is_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each mode has a line with its status; an assumed figure carries its mark, an unknown one a dash."""
    assert main(["modes", "spark", "claude-opus-4-6"]) == 0
    told = capsys.readouterr().out
    lines = {line.split()[0]: line for line in told.splitlines() if "/" in line.split(" ")[0]}
    spark = lines["emulated/gpt-5.3-codex-spark"]
    assert "1000" in spark
    assert "~ 100" in spark
    assert "58.4" in spark
    assert "partner-only" in told
    assert "retired" in told
    assert "Replayed as emulated/opus-4.6-fast." in told
    assert "emulated/gpt-5.3-codex " not in told


def test_the_json_holds_every_figure_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get all rows with sources, dates, prices and notes."""
    assert main(["modes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    rows = {row["id"]: row for row in told["modes"]}
    assert rows.keys() == catalogue().keys()
    fast = rows["emulated/opus-4.6-fast"]
    assert fast["price"]["output"] == 150
    assert fast["decode_rate_tok_s"]["source"]
    assert fast["ttft_ms"]["assumed"] is True
    assert rows["openai/gpt-5.3-codex-spark"]["price"] is None


def test_a_configs_own_modes_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A config adds its modes, marked as such."""
    path = tmp_path / "c.yaml"
    path.write_text(OWN, "utf-8")
    assert main(["modes", "mine", "--config", str(path), "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["modes"]
    assert (row["id"], row["own"]) == ("mine/assistant", True)


def test_a_name_that_no_mode_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused with the known ids."""
    assert main(["modes", "no-such-mode"]) == 2
    assert "emulated/opus-4.6" in capsys.readouterr().err
