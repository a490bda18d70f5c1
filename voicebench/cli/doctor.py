"""`voicebench doctor`: what this machine can do, what is missing, and what the harness itself adds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from voicebench.errors import ExitStatus


def doctor(
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the harness against stages of known delay.")
    ] = False,
    turns: Annotated[int, typer.Option("--turns", min=1, help="Scripted turns to calibrate with.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Say what is there, what is missing and how to get it; with --calibrate, the error of the figures."""
    import asyncio
    import json

    from rich.console import Console

    from voicebench import environment

    console = Console(stderr=as_json, highlight=False, markup=False, soft_wrap=True)
    machine, versions = environment.machine(), environment.versions()
    checks = _checks()
    console.print(f"{machine['system']}, {machine['processor']}, {machine['cores']} cores")
    for check in checks:
        sign = "ok     " if check["ok"] else "missing"
        console.print(f"{sign}  {check['name']}{'' if check['ok'] else ': ' + check['remedy']}")
    result: dict[str, Any] = {"schema": 1, "machine": machine, "versions": versions, "checks": checks}
    if calibrate:
        from voicebench.stages.quiet import hush_pipecat

        hush_pipecat()
        from voicebench.pipeline.calibrate import calibrate as measure

        console.print(f"Calibrating with {turns} scripted turns of known delay ...")
        found = asyncio.run(measure(turns)).to_dict()
        result["calibration"] = found
        console.print(
            f"noise floor {_ms(found['noise_floor_ms'])} ({found['statistic']} of {found['n']} turns), "
            f"bias {_ms(found['bias_ms'])}, from {_ms(found['min_ms'])} to {_ms(found['max_ms'])}"
        )
        for stage, bias in found["stage_bias_ms"].items():
            console.print(f"  {stage:<12} {_ms(bias)}")
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False))
    if not all(check["ok"] for check in checks if check["needed"]):
        raise typer.Exit(ExitStatus.BAD_REQUEST)


def _ms(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.1f} ms"


def _checks() -> list[dict[str, Any]]:
    """What the embedded default and the optional parts need. `needed`: without it `batch` does not run."""
    import ctypes.util
    import importlib.util

    from voicebench.models.catalogue import load_catalogue
    from voicebench.models.verification import check_model

    found: list[dict[str, Any]] = []

    def add(name: str, ok: bool, remedy: str, needed: bool) -> None:
        found.append({"name": name, "ok": ok, "remedy": remedy, "needed": needed})

    for library, extra, needed in (
        ("faster_whisper", "local", True),
        ("piper", "local", True),
        ("xllamacpp", "local", True),
        ("anthropic", "anthropic", False),
        ("av", "av", False),
        ("sounddevice", "live", False),
    ):
        there = importlib.util.find_spec(library) is not None
        add(f"Python package {library}", there, f"pip install 'voicebench-testbed[{extra}]'", needed)
    for model in load_catalogue().models:
        ok = all(file.good for file in check_model(model))
        add(f"model {model.id}", ok, f"voicebench models fetch {model.id}", True)
    portaudio = ctypes.util.find_library("portaudio") is not None
    add("PortAudio (microphone)", portaudio, "on Debian: apt-get install libportaudio2", False)
    return found
