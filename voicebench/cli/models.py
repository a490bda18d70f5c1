"""`voicebench models`: list, fetch and verify the model files of the embedded default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voicebench.errors import ExitStatus

if TYPE_CHECKING:
    from rich.console import Console

    from voicebench.models.catalogue import CatalogueModel
    from voicebench.models.verification import FileStatus

app = typer.Typer(
    help="The model files of the embedded default: list, fetch, verify.",
    no_args_is_help=True,
)

_SCHEMA = 1
_MEGABYTE = 1e6

Names = Annotated[list[str] | None, typer.Argument(metavar="[MODEL]...", help="Model ids; all if none.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


class FetchBar:
    """A progress bar in bytes on standard error, one for each model; a plain line each on no terminal.

    It is a `voicebench.models.store.Progress`.
    """

    def __init__(self) -> None:
        from rich import progress

        self._console = _eyes()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: progress.TaskID | None = None

    def start(self, model: str, total_bytes: int) -> None:
        """Show a bar for `model`, whose wheel has `total_bytes`."""
        if not self._console.is_terminal:
            self._console.print(f"Fetching {model} ({total_bytes / _MEGABYTE:.1f} MB) ...", markup=False)
        self._task = self._bar.add_task(model, total=total_bytes)
        self._bar.start()

    def update(self, bytes_done: int) -> None:
        """Move the bar to `bytes_done`."""
        if self._task is not None:
            self._bar.update(self._task, completed=bytes_done)

    def finish(self) -> None:
        """Leave the bar as it is and go to the next line."""
        self._bar.stop()
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


@app.command("list")
def run_list(as_json: AsJson = False) -> None:
    """Show the models that voicebench fetches itself, and which of them are here."""
    from voicebench.models.catalogue import load_catalogue
    from voicebench.models.places import models_folder
    from voicebench.models.verification import check_model

    found = [(model, check_model(model)) for model in load_catalogue().models]
    if as_json:
        _print_json(folder=str(models_folder()), models=[_model_row(model, files) for model, files in found])
        return
    from rich.console import Console
    from rich.table import Table

    from voicebench.models.names import printable

    table = Table("model", "for", "on disk", "download", "licence", "state", title_justify="left")
    for model, files in found:
        table.add_row(
            model.id,
            model.kind.upper(),
            f"{model.size / _MEGABYTE:.1f} MB",
            f"{model.source.size / _MEGABYTE:.1f} MB",
            model.licence,
            _state(files),
        )
    console = Console()
    console.print(table)
    console.print(printable(f"Folder: {models_folder()}"), markup=False, highlight=False, soft_wrap=True)


@app.command("fetch")
def run_fetch(
    names: Names = None,
    from_folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Take the wheels from this folder instead of the package index.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the model files that are missing, and verify each before it is kept."""
    from voicebench.models.catalogue import load_catalogue
    from voicebench.models.names import printable
    from voicebench.models.places import models_folder
    from voicebench.models.store import ensure
    from voicebench.models.verification import check_model

    console = _eyes()
    catalogue = load_catalogue()
    models = catalogue.select(names or None)
    here = [model.id for model in models if all(status.good for status in check_model(model))]
    try:
        folders = ensure(
            [model.id for model in models],
            FetchBar(),
            from_folder=from_folder,
            on_wait=lambda: console.print("Another voicebench is fetching models; waiting for it ..."),
            catalogue=catalogue,
        )
    except KeyboardInterrupt:
        console.print("Interrupted. What was complete is kept; the rest was removed.")
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    fetched = [model_id for model_id in folders if model_id not in here]
    if as_json:
        rows = [{"id": model_id, "folder": str(folder)} for model_id, folder in folders.items()]
        _print_json(folder=str(models_folder()), fetched=fetched, already_here=here, models=rows)
        return
    for model_id, folder in folders.items():
        word = "fetched and verified" if model_id in fetched else "already here"
        console.print(
            printable(f"{model_id}: {word} in {folder}"), markup=False, highlight=False, soft_wrap=True
        )


@app.command("verify")
def run_verify(names: Names = None, as_json: AsJson = False) -> None:
    """Hash every model file and compare it with the catalogue; status 2 where one is missing or wrong."""
    from voicebench.models.catalogue import load_catalogue
    from voicebench.models.verification import verify

    files = verify(names or None, catalogue=load_catalogue())
    good = all(status.good for status in files)
    if as_json:
        _print_json(ok=good, files=[{"model": status.model_id, **_file_row(status)} for status in files])
    else:
        from rich.console import Console

        from voicebench.models.names import printable

        console = Console()
        for status in files:
            console.print(printable(str(status)), markup=False, highlight=False, soft_wrap=True)
    if not good:
        bad = " ".join(dict.fromkeys(status.model_id for status in files if not status.good))
        _eyes().print(f"Fetch what is missing or wrong with:  voicebench models fetch {bad}", soft_wrap=True)
        raise typer.Exit(ExitStatus.BAD_REQUEST)


def _eyes() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _state(files: Sequence[FileStatus]) -> str:
    """One word for a model: `present`, or the states of its files that are not good."""
    return ", ".join(dict.fromkeys(status.state for status in files if not status.good)) or "present"


def _model_row(model: CatalogueModel, files: Sequence[FileStatus]) -> dict[str, Any]:
    from voicebench.models.places import folder_of

    return {
        "id": model.id,
        "short_names": list(model.short_names),
        "kind": model.kind,
        "about": model.about,
        "licence": model.licence,
        "size_bytes": model.size,
        "download_bytes": model.source.size,
        "source": {"requirement": model.source.requirement, "wheel": model.source.wheel},
        "folder": str(folder_of(model)),
        "present": all(status.good for status in files),
        "files": [_file_row(status) for status in files],
    }


def _file_row(status: FileStatus) -> dict[str, Any]:
    return {
        "name": status.file.name,
        "path": str(status.path),
        "state": status.state,
        "expected_bytes": status.file.size,
        "bytes": status.size,
        "expected_sha256": status.file.sha256,
        "sha256": status.sha256,
        "reason": status.reason or None,
    }


def _print_json(**fields: Any) -> None:
    typer.echo(json.dumps({"schema": _SCHEMA, **fields}))
