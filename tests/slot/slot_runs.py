"""Slot runs for tests, and what the emulator wrote while they ran."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voicebench.plan.config import Config
from voicebench.plan.modes import Mode
from voicebench.slot_plan import SlotPlan, make_slot_plan
from voicebench.slot_run import SlotOptions, run_slot
from voicebench.turns.records import TurnRecord
from voicebench.turns.run_folder import RunFolder

FIGURES = {
    "decode_rate_tok_s": {"value": 4000, "source": "made", "assumed": True},
    "ttft_ms": {"value": 3, "source": "made", "assumed": True},
}


def quick(name: str, api: str = "openai-responses", **fields: Any) -> dict[str, Any]:
    """An emulated mode that answers at once, as a config states it."""
    row = {"id": f"own/{name}", "kind": "emulated", "provider": "x", "api": api, "model": name, **FIGURES}
    return {"tokenizer": "o200k", **row, **fields}


def slot_plan(*rows: dict[str, Any], requests: int = 2, max_tokens: int = 40, **config: Any) -> SlotPlan:
    """The plan of a run over these modes."""
    modes = [Mode.model_validate(row) for row in rows]
    given = Config.model_validate(
        {
            "modes": [mode.id for mode in modes],
            "own_modes": [mode.model_dump() for mode in modes],
            "conversation": {"max_tokens": max_tokens},
            **config,
        }
    )
    return make_slot_plan(given, requests, variables={})


@dataclass
class Told:
    """A reporter that remembers."""

    records: list[TurnRecord] = field(default_factory=list)
    colds: list[TurnRecord] = field(default_factory=list)
    folder: RunFolder | None = None

    def opened(self, folder: RunFolder) -> None:
        """The run's folder is there."""
        self.folder = folder

    def phase(self, text: str) -> None:
        """Something that takes a while begins."""

    def begin(self, turns: int) -> None:
        """The measured requests begin."""

    def turn(self, record: TurnRecord) -> None:
        """A measured request is on disk."""
        self.records.append(record)

    def cold(self, record: TurnRecord) -> None:
        """A request on a new connection is on disk."""
        self.colds.append(record)


async def ran(plan: SlotPlan, folder: Path, **options: Any) -> Told:
    """What a run told, its folder at `folder`."""
    told = Told()
    await run_slot(plan, SlotOptions(out=folder, **options), told)
    return told


def written(log: Path) -> dict[str, dict[str, Any]]:
    """The emulator's own records by request id."""
    rows = map(json.loads, log.read_text("utf-8").splitlines())
    return {row["request"]: row for row in rows}
