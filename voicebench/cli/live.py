"""`voicebench live`: speak with the agent, and see every turn measured."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from voicebench.errors import BadRequest, ExitStatus

if TYPE_CHECKING:
    from voicebench.live.conversation import LiveOptions
    from voicebench.runner import RunPlan
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
    web: Annotated[
        bool, typer.Option("--web", help="Speak in a web page instead: no audio library is needed here.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="With --web: the port; 0 takes a free one.")
    ] = 0,
    host: Annotated[
        str, typer.Option("--host", help="With --web: another address of this machine than loopback.")
    ] = "127.0.0.1",
    open_browser: Annotated[
        bool, typer.Option("--open", help="With --web: open the page in the browser.")
    ] = False,
    list_devices: Annotated[
        bool, typer.Option("--list-devices", help="Show the sound devices, and leave.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A YAML file; else configs/default.yaml, here or installed."),
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
    from voicebench.audio import devices
    from voicebench.cli.batch import changed_settings, chosen_config

    if list_devices:
        _show_devices(devices.list_devices(), as_json=as_json)
        return
    if not web and (port or host != "127.0.0.1" or open_browser):
        raise BadRequest("--port, --host and --open belong to --web.", "Add --web, or leave them out.")
    if web and (input_device or output_device):
        raise BadRequest(
            "With --web the browser chooses the devices.", "Leave --input-device and --output-device out."
        )
    from voicebench.live import conversation
    from voicebench.live.beginning import live_plan

    settings, where = chosen_config(config)
    if mode:
        settings, where = changed_settings(settings, {"modes": tuple(mode)}), "--mode"
    plan = live_plan(settings, where)
    options = conversation.LiveOptions(
        turns=turns,
        out=out,
        keep_audio=keep_audio,
        no_text=no_text,
        offline=offline,
        echo=not no_echo_gate,
    )
    if web:
        _in_the_browser(plan, options, (host, port), open_browser=open_browser, as_json=as_json)
    _at_the_devices(plan, options, (input_device, output_device), as_json=as_json)


def _at_the_devices(
    plan: RunPlan, options: LiveOptions, wanted: tuple[str | None, str | None], *, as_json: bool
) -> NoReturn:
    """Hold the conversation over this machine's sound devices, and leave with its status."""
    import asyncio

    from voicebench.audio import devices
    from voicebench.cli.models import FetchBar
    from voicebench.cli.result import show_run
    from voicebench.live import conversation
    from voicebench.live.card import Card
    from voicebench.live.screen import LiveScreen

    there = devices.list_devices()
    card = Card(
        devices.find_device(wanted[0], "input", there),
        devices.find_device(wanted[1], "output", there),
        echo=options.echo,
    )
    screen = LiveScreen(plan.config.budget_ms)
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


def _in_the_browser(
    plan: RunPlan, options: LiveOptions, address: tuple[str, int], *, open_browser: bool, as_json: bool
) -> NoReturn:
    """Hold the conversation in a web page, and leave with its status."""
    import asyncio

    from voicebench.cli.models import FetchBar
    from voicebench.cli.result import show_run
    from voicebench.live.web.server import WebOptions, is_loopback
    from voicebench.live.web.talk import WebTalk

    talk = WebTalk(plan, options, WebOptions(*address))

    def served(url: str) -> None:
        if not is_loopback(address[0]):
            talk.screen.say(
                "! Other machines can reach this page. Browsers give a page the microphone only on localhost "
                "or over https: for another machine use a tunnel (ssh -L) to loopback instead."
            )
        talk.screen.say(
            f"The conversation waits in your browser; whoever has this address can hold it:\n{url}"
        )
        if open_browser:
            import webbrowser

            webbrowser.open(url)

    status = ExitStatus.INTERRUPTED
    with contextlib.suppress(KeyboardInterrupt), talk.screen:
        asyncio.run(talk.hold(served, lambda folder: show_run(folder, as_json=as_json), FetchBar()))
        status = _status_of(talk.screen.records)
    raise typer.Exit(status)


def _status_of(records: list[TurnRecord]) -> ExitStatus:
    """4 where a turn went wrong, else 0. A noise that nobody's words came of is no failure."""
    from voicebench.cli.batch import status_of
    from voicebench.turns.records import Outcome

    return status_of([one for one in records if one.outcome is not Outcome.NO_SPEECH])


def _show_devices(found: list[Any], *, as_json: bool) -> None:
    if as_json:
        from voicebench.turns.durable import strict_json

        rows = [one.to_dict() for one in found]
        typer.echo(strict_json({"schema": 1, "devices": rows}).decode())
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
            one_line(one.host),
            ("default" if one.default_input else "yes") if one.inputs else "-",
            ("default" if one.default_output else "yes") if one.outputs else "-",
            f"{one.rate} Hz",
        )
    console.print(table)
