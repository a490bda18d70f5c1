"""`voicebench slot`: the LLM slot alone, without audio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voicebench.cli.batch import LEAST_RATE, MOST_SESSIONS
from voicebench.errors import ExitStatus

if TYPE_CHECKING:
    from voicebench.plan.config import Config


def slot(
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", help="A mode's id; repeatable. Without it the four emulated seed modes."),
    ] = None,
    slot_ms: Annotated[
        list[float] | None, typer.Option("--slot-ms", min=1, help="A slot in ms; repeatable. 400 and 500.")
    ] = None,
    requests: Annotated[int, typer.Option("--requests", min=1, help="Measured requests for each mode.")] = 20,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Where a reply is cut. Streams are read to their end.")
    ] = 700,
    seed: Annotated[int | None, typer.Option("--seed", help="Orders the prompts.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A YAML file with own modes, slots and a seed.")
    ] = None,
    replay: Annotated[
        list[Path] | None,
        typer.Option("--replay", metavar="FILE", help="A recorded stream, as a mode of its own; repeatable."),
    ] = None,
    record_streams: Annotated[
        Path | None,
        typer.Option("--record-streams", metavar="DIR", help="Keep each stream's timing there for --replay."),
    ] = None,
    emulator_log: Annotated[
        Path | None,
        typer.Option("--emulator-log", metavar="FILE", help="What the emulator wrote when, as JSON lines."),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="A reply that lasts longer is given up.")
    ] = 120.0,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=MOST_SESSIONS, help="Requests at the same time.")
    ] = 1,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            min=LEAST_RATE,
            help="Requests a second on a schedule; those for which no session is free wait, and it is told.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run's folder, absent or empty; else runs/<time>.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Fetch no model file.")] = False,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave replies out of the run folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Ask each mode for long answers and count what it gets out in the slot."""
    import asyncio

    from voicebench.cli.result import show_run
    from voicebench.cli.slot_screen import SlotScreen
    from voicebench.load import LoadPlan
    from voicebench.plan.prompts import slot_system_prompt
    from voicebench.slot_plan import make_slot_plan, slot_config
    from voicebench.slot_run import SlotOptions, run_slot

    base, where = _base(config)
    settings = slot_config(
        base,
        modes=mode,
        slots_ms=slot_ms,
        max_tokens=max_tokens,
        system_prompt=slot_system_prompt(),
        replays=replay or (),
        seed=seed,
    )
    plan = make_slot_plan(settings, requests, where=where)
    screen = SlotScreen(quiet=quiet, budget_ms=settings.budget_ms, slot_ms=settings.slots_ms[0])
    options = SlotOptions(
        out=out,
        offline=offline,
        no_text=no_text,
        load=LoadPlan(sessions, rate),
        request_timeout_s=timeout_s,
        record_streams=record_streams,
        emulator_log=emulator_log,
    )
    interrupted = False
    try:
        with screen:
            asyncio.run(run_slot(plan, options, screen, screen.fetch))
    except KeyboardInterrupt:
        interrupted = True
    if screen.folder is None:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    show_run(screen.folder, as_json=as_json)
    if interrupted:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    raise typer.Exit(ExitStatus.TURNS_FAILED if screen.wrong else ExitStatus.DONE)


def _base(path: Path | None) -> tuple[Config, str]:
    from voicebench.plan.config import Config, load_config

    return (Config(), "command line") if path is None else (load_config(path), str(path))
