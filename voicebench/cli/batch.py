"""`voicebench batch`: turns over recorded audio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voicebench.errors import BadRequest, ExitStatus

if TYPE_CHECKING:
    from voicebench.load import LoadPlan
    from voicebench.plan.config import Config
    from voicebench.turns.records import TurnRecord

DEFAULT_CONFIG = Path("configs/default.yaml")
MOST_SESSIONS, LEAST_RATE = 64, 0.01


def batch(
    audio: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE|FOLDER]...", help="Audio to speak; none: audio_samples/."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A YAML file; else configs/default.yaml, here or installed."),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="A mode's id, instead of the config's; repeatable.")
    ] = None,
    repeats: Annotated[int | None, typer.Option("--repeats", min=1, help="Times each sample is run.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many samples.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Orders the turns.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run's folder, absent or empty; else runs/<time>.")
    ] = None,
    keep_audio: Annotated[
        bool, typer.Option("--keep-audio", help="Keep a stereo recording of each turn, and check against it.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on with the run in this folder.", metavar="RUN")
    ] = None,
    pace: Annotated[
        str | None,
        typer.Option(
            "--pace",
            help="real, or tail: all but the last part of each recording sped up, replies not heard out.",
            metavar="real|tail",
        ),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option("--sessions", min=1, max=MOST_SESSIONS, help="Conversations at the same time. 1."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            min=LEAST_RATE,
            help="Turns a second on a schedule; those for which no session is free wait, and it is told.",
        ),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Fetch nothing.")] = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave transcripts and replies out of the run folder.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="A waterfall under each turn.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Speak recorded audio to the agent and measure every turn."""
    import asyncio

    from voicebench.audio.samples import default_folder, find_samples
    from voicebench.cli.result import show_run
    from voicebench.cli.screen import Screen
    from voicebench.load import LoadPlan
    from voicebench.models.names import printable
    from voicebench.runner import RunOptions, make_plan, run

    if resume is not None:
        given: dict[str, object] = {
            "audio": audio,
            "--config": config,
            "--mode": mode,
            "--repeats": repeats,
            "--out": out,
        }
        given |= {"--limit": limit, "--seed": seed, "--pace": pace}
        given |= {"--sessions": sessions, "--rate": rate}
        _refuse_beside_resume([name for name, value in given.items() if value is not None])
        settings, where, audio, limit = _resumed(resume)
        load = _resumed_load(resume)
    else:
        load = LoadPlan(sessions or 1, rate)
        settings, where = chosen_config(config)
        if not quiet:
            typer.echo(printable(f"Configuration: {where}"), err=True)
        changes = {"modes": tuple(mode) if mode else None, "repeats": repeats, "seed": seed, "pace": pace}
        settings = changed_settings(
            settings, {name: value for name, value in changes.items() if value is not None}
        )
        where = "--mode" if mode else where
    sources = [path.absolute() for path in audio] if audio else [default_folder().absolute()]
    samples = find_samples(sources)
    plan = make_plan(settings, samples, limit=limit, where=where)
    screen = Screen(quiet=quiet, verbose=verbose, budget_ms=settings.budget_ms)
    interrupted = False
    try:
        with screen:
            options = RunOptions(
                out=out,
                resume=resume,
                keep_audio=keep_audio,
                offline=offline,
                no_text=no_text,
                load=load,
                request={"audio": [str(path) for path in sources], "limit": limit, **load.facts()},
            )
            asyncio.run(run(plan, options, screen, screen.fetch))
    except KeyboardInterrupt:
        interrupted = True
    if screen.folder is None:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    show_run(screen.folder, as_json=as_json)
    if interrupted:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    raise typer.Exit(status_of(screen.records))


def status_of(records: list[TurnRecord]) -> ExitStatus:
    """4 where a turn went wrong, else 0."""
    from voicebench.turns.records import Outcome

    wrong = {
        Outcome.FAILED,
        Outcome.TIMED_OUT,
        Outcome.OVERLOADED,
        Outcome.RATE_LIMITED,
        Outcome.TRUNCATED,
    }
    for record in records:
        unheard = record.outcome is Outcome.NO_SPEECH and record.speech_in_sample is not False
        if record.outcome in wrong or unheard:
            return ExitStatus.TURNS_FAILED
    return ExitStatus.DONE


def _refuse_beside_resume(given: list[str]) -> None:
    if given:
        raise BadRequest(
            f"--resume goes on with a run as it was asked for; it takes no {', '.join(given)}.",
            "Leave these out, or start a new run.",
        )


def _resumed(folder: Path) -> tuple[Config, str, list[Path], int | None]:
    """What the run in `folder` was asked for: configuration, its name, audio, limit."""
    from voicebench.errors import RunProblem
    from voicebench.plan.config import Config, validated
    from voicebench.turns.run_folder import RunFolder

    info = RunFolder.open(folder).info()
    request = info.model_extra.get("request") if info.model_extra else None
    if not isinstance(request, dict) or not request.get("audio"):
        raise RunProblem(f"{folder} does not say which audio it was run on.", "Start a new run.")
    limit = request.get("limit")
    return (
        validated(Config, info.config, f"{folder}/run.json"),
        str(folder),
        [Path(path) for path in request["audio"]],
        limit if isinstance(limit, int) else None,
    )


def _resumed_load(folder: Path) -> LoadPlan:
    """How the turns of the run in `folder` were offered."""
    from voicebench.load import LoadPlan
    from voicebench.turns.run_folder import RunFolder

    request = (RunFolder.open(folder).info().model_extra or {}).get("request", {})
    sessions, rate = request.get("sessions"), request.get("rate_per_s")
    return LoadPlan(
        sessions if isinstance(sessions, int) and sessions > 0 else 1,
        float(rate) if isinstance(rate, int | float) and rate > 0 else None,
    )


def chosen_config(path: Path | None) -> tuple[Config, str]:
    """The configuration and what to call it: the file that is named, else configs/default.yaml here, else the
    copy of that file that voicebench is installed with."""
    from voicebench.plan.config import PACKAGED_CONFIG, load_config

    if path is not None:
        return load_config(path), str(path)
    if DEFAULT_CONFIG.is_file():
        return load_config(DEFAULT_CONFIG), str(DEFAULT_CONFIG)
    return load_config(PACKAGED_CONFIG), f"the installed default, {PACKAGED_CONFIG}"


def changed_settings(settings: Config, changes: dict[str, object]) -> Config:
    """The configuration with what the command line says instead."""
    from voicebench.plan.config import Config, validated

    if not changes:
        return settings
    repeated = changes.get("modes")
    if isinstance(repeated, tuple) and len(set(repeated)) < len(repeated):
        raise BadRequest("--mode names a mode twice.")
    return validated(Config, {**settings.model_dump(), **changes}, "command line")
