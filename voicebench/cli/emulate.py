"""`voicebench emulate`: serve the provider emulator until Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from voicebench.emulator.running import Settings, Started

DEFAULT_PORT = 8123


def emulate(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = (
        DEFAULT_PORT
    ),
    script: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Timing scripts, .json or .toml; repeatable.")
    ] = None,
    fault: Annotated[
        str, typer.Option(metavar="NAME[;KEY=VALUE]", help="Plant this fault in every reply.")
    ] = "",
    seed: Annotated[int, typer.Option(help="The same seed gives the same replies at the same times.")] = 0,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append what was written when, as JSON lines.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="VOICEBENCH_EMULATOR_TOKEN",
            help="Opens /emulator/...; on another host it is the only API key that is taken.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:PORT", help="A further Host header that is answered; repeatable."),
    ] = None,
    list_faults: Annotated[bool, typer.Option("--list-faults", help="Show the faults and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Serve Anthropic's and OpenAI's APIs on this machine, at published speeds, with faults on request."""
    if list_faults:
        _show_faults(as_json)
        return
    from voicebench.emulator import catalogue
    from voicebench.emulator.running import Settings

    scripts = [entry for path in script or [] for entry in catalogue.load(path)]
    _serve(Settings(scripts, seed, fault, log, host, port, token, allow_host or ()), as_json)


def _show_faults(as_json: bool) -> None:
    from voicebench.emulator.faults import FAULTS

    if as_json:
        rows = [
            {
                "name": kind.name,
                "stage": kind.stage,
                "says": kind.says,
                "settings": {**kind.settings, **dict.fromkeys(kind.text_settings)},
            }
            for kind in FAULTS.values()
        ]
        typer.echo(json.dumps({"faults": rows}))
        return
    typer.echo(
        "Plant one with --fault, the request header x-emulate-fault, or MODEL!NAME as the model's name.\n"
    )
    for kind in FAULTS.values():
        settings = ";".join(
            [kind.name, *(f"{key}={value:g}" for key, value in kind.settings.items())]
            + [f"{key}=..." for key in kind.text_settings]
        )
        typer.echo(f"  {settings:<36} {kind.says}")


def _serve(settings: Settings, as_json: bool) -> None:
    """Serve until Ctrl-C or SIGTERM, which end it in order."""
    import asyncio
    import contextlib
    import signal

    from voicebench.emulator.pacing import new_event_loop
    from voicebench.emulator.running import run

    async def serve() -> dict[str, Any]:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, stop.set)
        return await run(settings, lambda started: _show_started(started, as_json), stop)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        statistics = runner.run(serve())
    typer.echo(_closing_line(statistics), err=True)


def _show_started(started: Started, as_json: bool) -> None:
    from voicebench.models.names import printable

    host = f"[{started.host}]" if ":" in started.host else started.host
    base = f"http://{host}:{started.port}"
    if as_json:
        result = {
            "anthropic_base_url": base,
            "openai_base_url": f"{base}/v1",
            "websocket_url": f"ws://{host}:{started.port}/v1/responses",
            "token": started.token,
            "models": list(started.models),
        }
        typer.echo(json.dumps(result))
        return
    typer.echo(
        f"The emulator answers at {base}; Ctrl-C ends it.\n\n"
        f"  export ANTHROPIC_BASE_URL={base}\n"
        f"  export OPENAI_BASE_URL={base}/v1\n"
        "  export ANTHROPIC_API_KEY=any OPENAI_API_KEY=any\n\n"
        f"  models  {printable(', '.join(started.models))}\n"
        f"  log     curl -H 'Authorization: Bearer {started.token}' '{base}/emulator/log'"
    )


def _closing_line(statistics: dict[str, Any]) -> str:
    lateness = statistics["lateness_us"]
    said = f"{statistics['requests']} requests answered"
    if lateness is None:
        return f"{said}."
    p50, p99, latest = (lateness[name] / 1000 for name in ("p50", "p99", "max"))
    return (
        f"{said}; {lateness['n']} events written after their instant by "
        f"p50 {p50:.3f}, p99 {p99:.3f}, max {latest:.3f} ms."
    )
