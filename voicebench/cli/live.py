"""`voicebench live`: speak with the agent, and see every turn measured."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voicebench.errors import ExitStatus

if TYPE_CHECKING:
    from voicebench.turns.records import TurnRecord


def live(
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="A mode's id, instead of the config's; repeatable.")
    ] = None,
    input_device: Annotated[
        str | None, typer.Option("--input-device", help="The microphone, by index or name.")
    ] = None,
    output_device: Annotated[
        str | None, typer.Option("--output-device", help="The loudspeaker, by index or name.")
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", min=1, help="End after so many turns with each mode.")
    ] = None,
    list_devices: Annotated[
        bool, typer.Option("--list-devices", help="Show the sound devices, and leave.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="A YAML file; else configs/default.yaml, here or installed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run's folder, absent or empty; else runs/<time>.")
    ] = None,
    keep_audio: Annotated[
        bool, typer.Option("--keep-audio", help="Keep a stereo recording of each turn, and measure in it.")
    ] = False,
    no_echo_gate: Annotated[
        bool,
        typer.Option("--no-echo-gate", help="Listen also to what may be the agent's own voice (headphones)."),
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Fetch nothing.")] = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave transcripts and replies out of the run folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Speak with the agent: each turn is measured at the devices, and shown at once."""
    import asyncio

    from voicebench.audio import devices
    from voicebench.cli.batch import changed_settings, chosen_config
    from voicebench.cli.models import FetchBar
    from voicebench.cli.result import show_run

    if list_devices:
        _show_devices(devices.list_devices(), as_json=as_json)
        return
    from voicebench.live import conversation
    from voicebench.live.beginning import live_plan
    from voicebench.live.card import Card
    from voicebench.live.screen import LiveScreen

    settings, where = chosen_config(config)
    if mode:
        settings, where = changed_settings(settings, {"modes": tuple(mode)}), "--mode"
    plan = live_plan(settings, where)
    there = devices.list_devices()
    chosen = (
        devices.find_device(input_device, "input", there),
        devices.find_device(output_device, "output", there),
    )
    screen = LiveScreen(settings.budget_ms)
    options = conversation.LiveOptions(
        turns=turns,
        out=out,
        keep_audio=keep_audio,
        no_text=no_text,
        offline=offline,
        echo=not no_echo_gate,
    )
    card = Card(*chosen, echo=options.echo)
    status = ExitStatus.INTERRUPTED
    try:
        with screen:
            asyncio.run(conversation.converse(plan, card, options, screen, FetchBar()))
        status = _status_of(screen.records)
    except KeyboardInterrupt:
        pass
    if screen.folder is not None:
        show_run(screen.folder, as_json=as_json)
    if card.stuck:
        # A device that is gone holds its library for ever: all is on disk, so leave without asking it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status))
    raise typer.Exit(status)


def _status_of(records: list[TurnRecord]) -> ExitStatus:
    """4 where a turn went wrong, else 0. A noise that nobody's words came of is no failure."""
    from voicebench.cli.batch import status_of
    from voicebench.turns.records import Outcome

    return status_of([one for one in records if one.outcome is not Outcome.NO_SPEECH])


def _show_devices(found: list[Any], *, as_json: bool) -> None:
    if as_json:
        rows = [one.to_dict() for one in found]
        typer.echo(json.dumps({"schema": 1, "devices": rows}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    from voicebench.export.texts import one_line

    console = Console(highlight=False, markup=False)
    if not found:
        console.print("No sound device is seen on this machine.")
        return
    table = Table("index", "name", "host", "microphone", "loudspeaker", "rate", box=None)
    for one in found:
        table.add_row(
            str(one.index),
            one_line(one.name),
            one.host,
            ("default" if one.default_input else "yes") if one.inputs else "-",
            ("default" if one.default_output else "yes") if one.outputs else "-",
            f"{one.rate} Hz",
        )
    console.print(table)
