"""What a person sees while they talk: each turn as soon as it is over, and how the conversation stands."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from voicebench.analysis.ledger import budget_share
from voicebench.export.terminal import turn_line, waterfall
from voicebench.export.texts import one_line
from voicebench.live.card import Level
from voicebench.live.keys import LEGEND
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder

if TYPE_CHECKING:
    from voicebench.live.session import HeardLive


@dataclass(frozen=True)
class Standing:
    """A mode's turns so far: V2V's median over those that count (None without one), and the budget share."""

    p50_ms: float | None
    counted: int
    hit: int
    n: int


class LiveScreen:
    """Speaks on standard error. `records` are the turns so far, `folder` the run's, once there is one."""

    def __init__(self, budget_ms: float, *, plain: bool | None = None) -> None:
        self.records: list[TurnRecord] = []
        self.folder: RunFolder | None = None
        self._budget_ms = budget_ms
        self._begun = 0
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
        self._plain = not self._console.is_terminal if plain is None else plain
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=self._plain,
            transient=True,
        )
        self._task = self._bar.add_task("Checking the devices", total=None)

    def __enter__(self) -> LiveScreen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def opened(self, folder: RunFolder) -> None:
        """Remember the run's folder."""
        self.folder = folder

    def steps(self, count: int) -> None:
        """So many steps come before anyone may speak."""
        self._bar.update(self._task, total=count)
        self._bar.start()

    def phase(self, text: str) -> None:
        """Something that takes a while begins; what went before is done."""
        told = one_line(text)
        self._bar.update(self._task, description=told, completed=self._begun)
        self._begun += 1
        if self._plain:
            self.say(f"{told} ...")

    def devices(self, microphone: str, speaker: str, level: Level) -> None:
        """Say what is heard and played through, and whether it is fit."""
        told = "silence" if level.rms_dbfs is None else f"{level.rms_dbfs:.0f} dBFS"
        self.say(f"microphone: {one_line(microphone)} (now {told})   loudspeaker: {one_line(speaker)}")
        if level.warning:
            self.say(f"! {one_line(level.warning)}")

    def speak(self, mode: str, keys: bool) -> None:
        """The conversation begins, or goes on with another mode."""
        self._bar.stop()
        self.say(f"Speak.   mode: {one_line(mode)}{'   ' + LEGEND if keys else '   Ctrl-C ends'}")

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is shown only where it went wrong."""
        if record.outcome is not Outcome.COMPLETED:
            self.say(f"warm-up: {record.outcome.value}: {one_line(record.reason or '')}")

    def progress(self, heard: HeardLive) -> None:
        """Something may have changed in the turn that is under way."""

    def turn(self, record: TurnRecord, heard: HeardLive | None = None) -> None:
        """A turn is on disk; `heard` is what it was made of."""
        self.records.append(record)
        standing = self._standing(record.mode)
        if self._plain:
            self.say(f"{turn_line(record)}{self._barged(record)}   {standing}")
            return
        self.say(f"you    {one_line(record.transcript or '(nothing was recognised)')}")
        if record.reply:
            self.say(f"agent  {one_line(record.reply)}")
        if record.stages_ms is None:
            self.say(f"{turn_line(record)}{self._barged(record)}")
        else:
            self.say(waterfall(record, self._budget_ms, min(self._console.width, 120)))
        self.say(f"{standing}\n")

    def say(self, text: str) -> None:
        """One line for eyes."""
        self._console.print(text, markup=False)

    def _barged(self, record: TurnRecord) -> str:
        return "" if record.barge_in_ms is None else f"  (silent {record.barge_in_ms:.0f} ms after you began)"

    def standing(self, mode: str) -> Standing:
        """How this mode's turns stand so far."""
        own = [one for one in self.records if one.mode == mode]
        values = [one.voice_to_voice_ms for one in own if one.measured and one.voice_to_voice_ms is not None]
        share = budget_share(own, self._budget_ms)
        return Standing(statistics.median(values) if values else None, len(values), share.hit, share.n)

    def _standing(self, mode: str) -> str:
        found = self.standing(mode)
        if found.p50_ms is None:
            return f"{one_line(mode)}: no latency yet"
        return (
            f"{one_line(mode)}: p50 {found.p50_ms:.0f} ms (n {found.counted}), "
            f"{found.hit} of {found.n} within {self._budget_ms:g} ms"
        )
