"""What a person sees while a run goes on: a bar, and a line for each turn. All of it on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voicebench.cli.models import FetchBar
    from voicebench.turns.records import TurnRecord
    from voicebench.turns.run_folder import RunFolder


class Screen:
    """A `voicebench.runner.Reporter` on the terminal; plain lines where there is none.

    `records` are the measured turns so far, `folder` the run's folder once there is one.
    """

    def __init__(self, *, quiet: bool, verbose: bool, budget_ms: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from voicebench.cli.models import FetchBar

        self.records: list[TurnRecord] = []
        self.folder: RunFolder | None = None
        self._quiet = quiet
        self._verbose = verbose
        self._budget_ms = budget_ms
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("Checking", total=None)
        self._fetch = FetchBar()

    @property
    def fetch(self) -> FetchBar:
        """The bar for model files."""
        return self._fetch

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def opened(self, folder: RunFolder) -> None:
        """Remember the folder, and begin to show the bar."""
        self.folder = folder
        self._bar.start()

    def phase(self, text: str) -> None:
        """Say what takes a while."""
        from voicebench.export.texts import one_line

        told = one_line(text)
        self._bar.update(self._task, description=told)
        self._plain(f"{told} ...")

    def begin(self, turns: int) -> None:
        """Begin to count turns."""
        self._bar.update(self._task, description="Turns", total=turns, completed=0)

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is shown only where it went wrong."""
        from voicebench.export.texts import one_line
        from voicebench.turns.records import Outcome

        if record.outcome is not Outcome.COMPLETED:
            self._say(f"warm-up: {record.outcome.value}: {one_line(record.reason or '')}")

    def turn(self, record: TurnRecord) -> None:
        """One line for the turn; with `verbose` its waterfall."""
        from voicebench.export.terminal import turn_line, waterfall

        self.records.append(record)
        self._bar.update(self._task, advance=1)
        self._say(turn_line(record))
        if self._verbose:
            self._say(waterfall(record, self._budget_ms))

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False)

    def _plain(self, text: str) -> None:
        if not self._console.is_terminal:
            self._say(text)
