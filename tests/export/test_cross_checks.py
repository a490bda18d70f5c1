"""What holds the figures to account stands beside them: the harness's own noise, the recording's opinion."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from tests.analysis.made_run import run_info
from tests.turns.made import made
from voicebench.analysis.report import build_report
from voicebench.export.registry import exporter
from voicebench.export.terminal import rendered


def text_of(html: bytes) -> str:
    """What a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", "", html.decode()).split())


@pytest.mark.parametrize(
    ("floor", "reason", "shown"),
    [(7.3, None, "7.3 ms"), (None, "the calibration was switched off", "the calibration was switched off")],
)
def test_every_report_tells_the_noise_floor(floor: float | None, reason: str | None, shown: str) -> None:
    """JSON, Markdown, HTML and the terminal hold the figure with its unit; where there is none, why."""
    records = [made(number) for number in range(3)]
    report = build_report(run_info(noise_floor_ms=floor, noise_floor_reason=reason), records)
    told = json.loads(exporter("json")[0](report, records))
    assert told["run"]["noise_floor_ms"] == floor
    assert told["run"].get("noise_floor_reason") == reason
    assert shown in exporter("markdown")[0](report, records).decode()
    assert shown in text_of(exporter("html")[0](report, records))
    screen = io.StringIO()
    Console(width=250, file=screen, highlight=False).print(rendered(report, 250))
    assert shown in " ".join(screen.getvalue().split())


def test_the_rest_between_recording_and_marks_is_told() -> None:
    """What the recording's own latency has beyond the marks is a figure with its n, on both sides of nothing;
    turns without a recording, and those whose edges it doubts, are not in it."""
    beyond = (3.0, -1.0, 4.5, 40.0)
    records = [
        made(number, v2v_ms=700).model_copy(
            update={"waveform_v2v_ms": 700.0 + more, "waveform_certain": True}
        )
        for number, more in enumerate(beyond)
    ]
    records[3] = records[3].model_copy(update={"waveform_certain": False})
    records.append(made(4, v2v_ms=700))
    report = build_report(run_info(), records)
    [mode] = json.loads(exporter("json")[0](report, records))["modes"]
    rest = mode["waveform_difference_ms"]
    assert (rest["n"], rest["missing"]) == (3, 2)
    assert (rest["min"], rest["p50"], rest["max"]) == (-1.0, 3.0, 4.5)
    assert "Recording less marks, median" in text_of(exporter("html")[0](report, records))
