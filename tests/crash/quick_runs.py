"""Whole runs at the speed of the disk: the real runner, folder and journal; only the turns are made up.

Nothing is loaded and nobody speaks: a turn is a record that depends on its place in the plan alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from tests.pipeline.driven import clip, scripted
from tests.recorded import write_wav
from tests.turns.made import REPLY, made
from voicebench import bench as bench_module
from voicebench import environment
from voicebench.audio.manifest import Sample
from voicebench.bench import Bench, RunPlan
from voicebench.load import LoadPlan, Offered
from voicebench.plan.plan import PlannedTurn
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.run_folder import RunFolder

OUTCOMES = tuple(Outcome)


def made_turn(planned: PlannedTurn, run_id: str) -> TurnRecord:
    """The record of a planned turn: every outcome in its turn, every second one completed."""
    place = planned.index
    outcome = OUTCOMES[place // 2 % len(OUTCOMES)] if place % 2 else Outcome.COMPLETED
    return made(
        place,
        v2v_ms=500.0 + 7 * place if outcome is Outcome.COMPLETED else None,
        run=run_id,
        mode=planned.mode,
        mode_kind="emulated",
        sample=planned.sample,
        repeat=planned.repeat,
        outcome=outcome,
        reason=None if outcome is Outcome.COMPLETED else "made so",
        reply=f"{place}: {REPLY} {'Ünd ☃. ' * (place % 5)}",
    )


async def _turn(bench: Any, offered: Offered[PlannedTurn], *, keep_audio: bool = False) -> TurnRecord:
    await asyncio.sleep(0)
    return made_turn(offered.turn, bench._folder.id)


async def _session(*_: object) -> None:
    """No pipeline is built."""


@contextmanager
def no_pipelines(turn: Callable[..., Any] = _turn) -> Iterator[None]:
    """Runs make their turns up, by `turn`, and do not look at the machine, which takes most of the time."""
    with (
        mock.patch.object(Bench, "_turn", turn),
        mock.patch.object(Bench, "_session", _session),
        mock.patch.object(bench_module, "frozen_heap", nullcontext),
        mock.patch.object(environment, "machine", dict),
        mock.patch.object(environment, "versions", dict),
    ):
        yield


def quick_plan(folder: Path, turns: int) -> RunPlan:
    """A plan of so many turns of one mode, with a warm-up turn. Writes the one recording that it names."""
    wav = folder / "spoken.wav"
    if not wav.exists():
        write_wav(wav, clip(0.3))
    samples = [
        Sample(id=f"s{number}", path=wav, transcript="x", segments=((0.0, 0.3),)) for number in range(turns)
    ]
    return make_plan(scripted(warmup_turns=1), samples)


class Quiet:
    """Tells only of turns that are on disk."""

    def __init__(self, told: Callable[[TurnRecord], None] = lambda record: None) -> None:
        self.turn = told

    def opened(self, folder: RunFolder) -> None:
        """The folder is there."""

    def phase(self, text: str) -> None:
        """Something begins."""

    def begin(self, turns: int) -> None:
        """The turns begin."""

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is on disk."""


def run_quickly(
    plan: RunPlan,
    out: Path,
    *,
    resume: bool = False,
    sessions: int = 1,
    told: Callable[[TurnRecord], None] = lambda record: None,
) -> RunFolder:
    """Run the plan into `out`, or go on with the run there."""
    options = RunOptions(out=out, environment={}, load=LoadPlan(sessions))
    if resume:
        options = replace(options, resume=out)
    with no_pipelines():
        return asyncio.run(run(plan, options, Quiet(told)))
