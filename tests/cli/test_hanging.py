"""Stages whose threads never return: the run ends all the same, its report is written, the program leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import ENERGY, ROOT, interrupted, scripted_config, tones

ASR = re.compile(r"^asr: .*$", re.MULTILINE)
TTS = re.compile(r"^tts: .*$", re.MULTILINE)


@pytest.mark.parametrize(
    ("stage", "name", "reason"),
    [(ASR, "asr", "no transcript came"), (TTS, "tts", "had not sounded")],
    ids=["asr", "tts"],
)
def test_a_thread_that_never_returns_holds_up_no_end(
    tmp_path: Path, stage: re.Pattern[str], name: str, reason: str
) -> None:
    """Though a thread still hangs from a turn that timed out, Ctrl-C leaves within two seconds with status
    130 and the report on disk."""
    config = scripted_config(tmp_path, f"repeats: 3\n{ENERGY}")
    hangs = f"{name}: {{kind: pipecat, class: tests.cli.hanging.Hanging{name.title()}}}"
    text = stage.sub(hangs, config.read_text("utf-8")).replace("turn_timeout_s: 6", "turn_timeout_s: 1")
    config.write_text(text, "utf-8")
    ended = interrupted(
        "batch",
        tones(tmp_path, 1),
        "--config",
        config,
        "--out",
        "run",
        cwd=tmp_path,
        after="timed_out",
        PYTHONPATH=str(ROOT),
    )
    assert ended.status == 130, ended.told
    assert ended.took_s <= 2.0
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert report["run"]["complete"] is False
    assert report["modes"][0]["turns"]["timed_out"] == 1
    [row] = [json.loads(line) for line in (tmp_path / "run" / "turns.jsonl").read_text("utf-8").splitlines()]
    assert reason in row["reason"]
