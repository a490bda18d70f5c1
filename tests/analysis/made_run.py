"""Made runs for tests of reports: what `run.json` says, and the records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.turns.made import made, made_deltas, made_marks
from voicebench.turns.records import TurnRecord

STARTED = "2026-01-02T03:04:05Z"


def run_info(planned: Sequence[TurnRecord] = (), **fields: Any) -> dict[str, Any]:
    """What `run.json` says of a complete run that planned the turns of these records."""
    plan = [{"mode": one.mode, "sample": one.sample, "repeat": one.repeat} for one in planned]
    return {
        "id": "20260102T030405Z-abc123",
        "started_at": STARTED,
        "complete": True,
        "noise_floor_ms": 4.2,
        "noise_floor_reason": None,
        "planned": plan,
        **fields,
    }


def made_run(turns: int = 60, seed: int = 1) -> tuple[dict[str, Any], list[TurnRecord]]:
    """A run of a local and an emulated mode over 12 samples, some turns failed, some flagged."""
    draw = random.Random(seed)
    records: list[TurnRecord] = []
    for mode, kind, first, gap in (
        ("local/quick", "local", 180.0, 12.0),
        ("emulated/slow", "emulated", 350.0, 4.0),
    ):
        for number in range(turns):
            text_ms = first + draw.gauss(0, 25)
            completed = draw.random() > 0.05
            records.append(
                made(
                    len(records),
                    mode=mode,
                    mode_kind=kind,
                    sample=f"sample-{number % 12:02d}",
                    repeat=number // 12,
                    outcome="completed" if completed else "timed_out",
                    reason=None if completed else "not over",
                    marks=made_marks(llm_first_text=text_ms, vad_stop=200 + draw.gauss(0, 20)),
                    deltas=made_deltas(20, text_ms, gap),
                    flags=["client_limited"] if completed and draw.random() < 0.05 else [],
                    condition=draw.choice(["clean", "noise"]),
                    wer={"errors": draw.choice([0, 0, 1]), "words": 6},
                    answer_correct=draw.random() < 0.6 if completed and kind == "local" else None,
                    work_ms={"asr": 60 + draw.random()},
                    usd=draw.random() / 1000,
                )
            )
    facts = {
        "emulated/slow": {"kind": "emulated", "published_decode_tok_s": 65, "published_source": "a page"}
    }
    return run_info(records, modes=facts), records
