"""Many scripted turns in one run, and what they leave: memory, descriptors, tasks, processes, threads."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.pipeline.driven import clip, scripted
from tests.processes import children_of
from tests.recorded import write_wav
from voicebench.audio.manifest import Sample
from voicebench.load import LoadPlan
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunFolder


def resident_kb() -> int:
    """Memory of this process that is in use, in kB; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except FileNotFoundError:
        return 0
    return int(status.partition("VmRSS:")[2].split()[0])


def descriptors() -> int:
    """So many are open in this process; 0 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except FileNotFoundError:
        return 0


@dataclass
class Watched:
    """A reporter that looks at the process after each turn."""

    memory_kb: list[int] = field(default_factory=list)
    open_files: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)
    every: int = 10

    def opened(self, folder: RunFolder) -> None:
        """The folder is there."""

    def phase(self, text: str) -> None:
        """Something begins."""

    def begin(self, turns: int) -> None:
        """The turns begin."""

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is on disk."""

    def turn(self, record: TurnRecord) -> None:
        """A turn is on disk."""
        self.memory_kb.append(resident_kb())
        self.open_files.append(descriptors())
        self.tasks.append(len(asyncio.all_tasks()))
        if len(self.memory_kb) % self.every == 0:
            self.objects.append(len(gc.get_objects()))


@dataclass(frozen=True)
class Left:
    """What is there beside what was there before the run."""

    descriptors: int
    tasks: tuple[str, ...]
    processes: int
    threads: tuple[str, ...]


async def long_run(folder: Path, turns: int, sessions: int) -> tuple[RunFolder, Watched, Left]:
    """Run so many scripted turns, one sample in so many sessions, and say what they left."""
    wav = write_wav(folder / "spoken.wav", clip(0.3))
    sample = Sample(id="s", path=wav, transcript="what is it", segments=((0.0, 0.3),))
    plan = make_plan(scripted(repeats=turns, warmup_turns=1, turn_timeout_s=10), [sample])
    files, processes = descriptors(), set(children_of(os.getpid()))
    threads = {one.ident for one in threading.enumerate()}
    watched = Watched()
    done = await run(plan, RunOptions(out=folder / "run", load=LoadPlan(sessions)), watched)
    tasks = [one for one in asyncio.all_tasks() if one is not asyncio.current_task() and not one.done()]
    left = Left(
        descriptors=descriptors() - files,
        tasks=tuple(sorted(task.get_name() for task in tasks)),
        processes=len(set(children_of(os.getpid())) - processes),
        # The loop's own threads wait for more to do, and end with it.
        threads=tuple(
            sorted(
                one.name
                for one in threading.enumerate()
                if one.ident not in threads and not one.name.startswith(("voicebench", "asyncio"))
            )
        ),
    )
    return done, watched, left
