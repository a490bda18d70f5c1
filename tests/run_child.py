"""A run in a process of its own, to be killed: `python -m tests.run_child OUT LLM`.

LLM is `scripted`, or `llama` for the real server of the local model. It says `open`, then a line for each
turn that is on disk, and ends with 130 where it was interrupted.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.pipeline.driven import clip, scripted
from tests.recorded import write_wav
from voicebench.audio.manifest import Sample
from voicebench.plan.config import Config
from voicebench.runner import RunOptions, make_plan, run
from voicebench.turns.records import TurnRecord

TURNS = 6


def say(line: str) -> None:
    """Tell the parent."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Told:
    """Says what happens."""

    def opened(self, folder: Any) -> None:
        """The run's folder is there."""
        say("open")

    def phase(self, text: str) -> None:
        """Something begins that takes a while."""

    def begin(self, turns: int) -> None:
        """The measured turns begin."""
        say(f"begin {turns}")

    def turn(self, record: TurnRecord) -> None:
        """A turn is on disk."""
        say(f"turn {record.turn} {record.outcome}")

    def warmup(self, record: TurnRecord) -> None:
        """A warm-up turn is on disk."""


def main(out: Path, llm: str) -> int:
    """Run six turns."""
    wav = write_wav(out.parent / "spoken.wav", clip(0.3))
    samples = [
        Sample(id=f"s{n}", path=wav, transcript="what is it", segments=((0.0, 0.3),)) for n in range(TURNS)
    ]
    config: Config = scripted(turn_timeout_s=10)
    if llm == "llama":
        config = config.model_copy(update={"modes": ("local/smollm2-135m",), "own_modes": ()})
    try:
        asyncio.run(run(make_plan(config, samples), RunOptions(out=out, offline=True), Told()))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
