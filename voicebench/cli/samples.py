"""`voicebench samples`: what is spoken to the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="The recordings that are spoken: list them, index a folder.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


@app.command("index")
def run_index(
    folder: Annotated[Path, typer.Argument(help="A folder of recordings without a manifest.")],
    as_json: AsJson = False,
) -> None:
    """Write a manifest.yaml with the speech found in each recording, for you to correct."""
    from rich.console import Console

    from voicebench.audio.indexing import Indexed, write_manifest
    from voicebench.audio.names import printable
    from voicebench.audio.samples import find_samples
    from voicebench.turns.durable import strict_json

    eyes = Console(stderr=True, highlight=False, emoji=False)
    rows: list[dict[str, Any]] = []

    def show(one: Indexed) -> None:
        spans = one.entry["segments"] if one.entry else []
        told = ", ".join(f"{start:.2f}-{end:.2f} s" for start, end in spans) or "no speech"
        eyes.print(f"{one.sample.id}: {told if one.entry else 'left out'}  {one.note}", markup=False)
        rows.append({"id": one.sample.id, "segments": spans if one.entry else None, "note": one.note})

    path = write_manifest(folder, find_samples([folder]), show)
    eyes.print(f"Written: {printable(path)}. Listen to the recordings and correct it.", markup=False)
    if as_json:
        typer.echo(strict_json({"schema": 1, "manifest": str(path), "samples": rows}).decode())


@app.command("list")
def run_list(
    audio: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE|FOLDER]...", help="None: audio_samples/.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which samples a run over these files and folders would speak."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from voicebench.audio.samples import default_folder, find_samples
    from voicebench.export.texts import one_line
    from voicebench.turns.durable import strict_json

    found = find_samples(audio if audio else [default_folder()])
    if as_json:
        rows = [
            {
                "id": one.id,
                "file": str(one.path),
                "transcript": one.transcript,
                "condition": one.condition,
                "voice": one.voice,
                "anchor": one.anchor,
                "speech_end_s": one.speech_end_s,
            }
            for one in found
        ]
        typer.echo(strict_json({"schema": 1, "samples": rows}).decode())
        return
    table = Table("sample", "condition", "voice", "speech ends", "transcript", box=None)
    for one in found:
        end = "in the waveform" if one.anchor == "waveform" else "-"
        if one.speech_end_s is not None:
            end = f"{one.speech_end_s:.3f} s"
        cells = (one.id, one.condition, one.voice, end, one.transcript)
        table.add_row(*(Text(one_line(cell or "")) for cell in cells))
    Console(highlight=False, markup=False).print(table)
