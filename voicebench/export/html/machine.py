"""The end of the report: machine, versions, model files, config, noise floor and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voicebench.analysis.report import Report
from voicebench.export.html.look import figure
from voicebench.export.html.markup import Safe, join, tag, user_text
from voicebench.export.tables import number
from voicebench.turns.durable import strict_json


def machine_section(report: Report) -> Safe:
    """Everything that one needs to run it again."""
    run = report.run
    floor = run.noise_floor_ms
    calibration = run.calibration
    statistic = None if calibration is None else calibration.get("statistic")
    noise = join("Not known: ", user_text(run.noise_floor_reason or "no reason is given"), ".")
    if floor is not None:
        shown = figure("/run/noise_floor_ms", floor, number(floor, 1))
        noise = join(shown, " ms: ", user_text(str(statistic or "p99")), " of what the harness itself adds.")
    blocks = [
        _block("Noise floor", noise),
        _block("Machine", _flat(run.environment)),
        _block("Versions", _flat(run.versions)),
        _block("Model files", _flat(run.models) if run.models else tag("span", "none", class_="mute")),
    ]
    if calibration is not None:
        blocks.insert(1, _block("Calibration", _flat(calibration)))
    differences = [
        join(user_text(entry.mode, 80), ": ", number(entry.waveform_difference.p50, 1), " ms. ")
        for entry in report.modes
        if entry.waveform_difference.n
    ]
    if differences:
        blocks.append(_block("Recording less marks, median", join(*differences)))
    config = strict_json(run.config, indent=1).decode()
    return join(
        tag("div", *blocks, class_="blocks"),
        tag("details", tag("summary", "Config as resolved"), tag("pre", *_lines(config))),
    )


def _lines(content: str) -> list[Safe]:
    return [tag("span", *_indented(line), "") for line in content.split("\n")]


def _indented(line: str) -> tuple[Safe, ...]:
    """A line of JSON with its indent, which text on one line would lose."""
    bare = line.lstrip(" ")
    return (join("\u00a0" * (len(line) - len(bare))), user_text(bare, 2000))


def _block(head: str, content: Safe) -> Safe:
    return tag("div", tag("h3", head), tag("p", content))


def _flat(values: Mapping[str, Any], most: int = 40) -> Safe:
    parts = [
        join(tag("span", user_text(str(name), 60), class_="mute"), " ", user_text(_value(value), 200))
        for name, value in list(values.items())[:most]
    ]
    return join(*(join(" · " if place else "", part) for place, part in enumerate(parts)))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
