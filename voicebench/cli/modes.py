"""`voicebench modes`: the model modes that can be compared, with their figures and where these come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from voicebench.plan.modes import Mode, Published

SCHEMA = 1
EMPTY = "–"


def modes(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODE]...", help="Ids or parts of ids; all if none.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A YAML file whose own modes are shown, too.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all that is known as one JSON object.")
    ] = False,
) -> None:
    """Show the modes: which can be asked, at what price, how fast by whose account."""
    from voicebench.plan.config import load_config
    from voicebench.plan.modes import catalogue
    from voicebench.turns.durable import strict_json

    own = {} if config is None else load_config(config).own
    found = _chosen({**catalogue(), **own}, names or [])
    if as_json:
        told = {"schema": SCHEMA, "modes": [_plain(mode, own) for mode in found]}
        typer.echo(strict_json(told).decode())
        return
    _print(found)


def _chosen(known: dict[str, Mode], names: list[str]) -> list[Mode]:
    """The modes whose id holds one of the names. Raises BadRequest for a name that none holds."""
    from voicebench.errors import BadRequest

    for name in names:
        if not any(name in mode_id for mode_id in known):
            raise BadRequest(f"No mode's id holds {name!r}.", f"Known modes: {', '.join(sorted(known))}.")
    return [mode for mode_id, mode in known.items() if not names or any(name in mode_id for name in names)]


def _plain(mode: Mode, own: dict[str, Mode]) -> dict[str, Any]:
    return {**mode.model_dump(mode="json"), "own": mode.id in own}


def _print(found: list[Mode]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from voicebench.export.texts import one_line

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("mode", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for title in ("tok/s", "TTFT ms", "USD in / out", "quality"):
        table.add_column(title, justify="right")
    for mode in found:
        cells = (mode.id, _status(mode), _figure(mode.decode_rate_tok_s), _figure(mode.ttft_ms), _price(mode))
        table.add_row(*(Text(one_line(cell)) for cell in (*cells, _quality(mode))))
    console = Console(highlight=False)
    console.print(table)
    console.print(
        Text(
            "\nTTFT: time to first token. USD: per million tokens. quality: Terminal-Bench 2.0 in per cent.\n"
            "~ assumed, as nobody published it. – not known.\n"
            "Sources, dates, context windows and notes: voicebench modes --json\n"
        )
    )
    notes = [(mode, note) for mode in found if (note := _note(mode))]
    for mode, note in notes:
        console.print(Text(one_line(f"{mode.id}: {note}")), soft_wrap=True)


def _status(mode: Mode) -> str:
    return mode.kind if mode.kind != "live" else mode.status


def _figure(figure: Published | None) -> str:
    if figure is None:
        return EMPTY
    return f"{'~ ' if figure.assumed else ''}{figure.value:g}"


def _price(mode: Mode) -> str:
    return EMPTY if mode.price is None else f"{mode.price.input:g} / {mode.price.output:g}"


def _quality(mode: Mode) -> str:
    score = mode.quality.get("terminal_bench_2")
    return EMPTY if score is None else f"{score.value:g}"


def _note(mode: Mode) -> str:
    told = [mode.status_note] if mode.status_note and mode.status != "available" else []
    if told and mode.emulated_as is not None:
        told.append(f"Replayed as {mode.emulated_as}.")
    if told and mode.stand_in is not None:
        told.append(f"Closest live mode: {mode.stand_in}.")
    return " ".join(told)
