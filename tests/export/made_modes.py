"""A made run of five modes in the likeness of the catalogue, for tests of the HTML report.

Every figure is drawn at random from plausible ranges: nothing here was measured.
"""

from __future__ import annotations

import random
from typing import Any

from tests.analysis.made_run import run_info
from tests.turns.made import made, made_deltas, made_marks
from voicebench.turns.records import TurnRecord
from voicebench.turns.timeline import Mark

REPLIES = (
    "The pharmacy closes at eight this evening. Its back door is open until nine for prescriptions only.",
    "The capital of France is Paris, on the Seine. It has about two million people inside the ring road.",
    "Yes, there is a table for six at half past seven. Shall I book it under your name?",
)
MODES: tuple[tuple[str, str, float, float, float, float | None], ...] = (
    # mode, kind, first text (ms), ms between deltas, tokens a delta, dollars a turn
    ("emulated/opus-4.6", "emulated", 290.0, 15.4, 1.0, 0.0143),
    ("emulated/opus-4.6-fast", "emulated", 285.0, 5.9, 1.0, 0.0856),
    ("emulated/gpt-5.3-codex", "emulated", 255.0, 15.0, 1.0, 0.0077),
    ("emulated/gpt-5.3-codex-spark", "emulated", 120.0, 4.0, 4.0, None),
    ("local/smollm2-135m", "local", 60.0, 11.0, 1.0, None),
)


def made_turn(
    turn: int, number: int, mode: tuple[str, str, float, float, float, float | None], draw: random.Random
) -> TurnRecord:
    """One turn of a mode, with a small chance of each kind of misfortune."""
    name, kind, first, gap, tokens, usd = mode
    text_ms = max(20.0, first + draw.gauss(0, 40) + (draw.expovariate(1 / 120) if draw.random() < 0.1 else 0))
    clause_ms = 9 * gap / tokens + draw.uniform(0, 12)
    reply = REPLIES[number % len(REPLIES)]
    luck = draw.random()
    outcome = "timed_out" if luck < 0.02 else "overloaded" if luck < 0.03 else "completed"
    marks = made_marks(
        vad_stop=214 + draw.gauss(0, 9),
        transcript_final=58 + draw.gauss(0, 8),
        turn_end=22,
        llm_request=2,
        llm_first_text=text_ms,
        tts_request=clause_ms,
        tts_first_byte=90 + draw.gauss(0, 10),
        first_audible=37,
    )
    failed = outcome != "completed"
    return made(
        turn,
        mode=name,
        mode_kind=kind,
        model=name.partition("/")[2],
        sample=f"sample-{number % 13:02d}",
        repeat=number // 13,
        outcome=outcome,
        reason="no answer within 20 s" if failed else None,
        marks=marks,
        without=(Mark.FIRST_AUDIBLE,) if failed else (),
        reply_end_ns=None if failed else round((text_ms + 60 * gap) * 1_000_000),
        clause_ready_ns=None if failed else round((text_ms + clause_ms) * 1_000_000),
        deltas=() if failed else made_deltas(60, text_ms, gap, tokens, reply),
        reply=None if failed else reply,
        first_clause=reply.partition(".")[0] + ".",
        transcript="what time does the pharmacy on Bridge Street close today",
        token_count="o200k, scaled to usage" if kind == "emulated" else "usage",
        flags=["length"] if not failed and draw.random() < 0.05 else [],
        wer={"errors": draw.choice([0, 0, 0, 1]), "words": 9},
        answer_correct=draw.random() < 0.4 if kind == "local" and not failed else None,
        work_ms={"asr": 52.0, "turn_model": 18.0, "llm_total": 900.0},
        usd=None if usd is None or failed else usd * draw.uniform(0.8, 1.2),
        audio=f"audio/{turn:04d}.flac" if draw.random() < 0.5 else None,
    )


def five_modes(turns: int = 65, seed: int = 3, modes: int = 5) -> tuple[dict[str, Any], list[TurnRecord]]:
    """`run.json` and `turns` records of each of the first `modes` modes."""
    draw = random.Random(seed)
    records = [
        made_turn(place * turns + number, number, mode, draw)
        for place, mode in enumerate(MODES[:modes])
        for number in range(turns)
    ]
    published = {"emulated/opus-4.6": 65, "emulated/opus-4.6-fast": 170, "emulated/gpt-5.3-codex": 66.7}
    published["emulated/gpt-5.3-codex-spark"] = 1000
    facts = {
        name: {
            "kind": kind,
            "model": name.partition("/")[2],
            "published_decode_tok_s": published.get(name),
            "published_source": "a made page" if name in published else None,
        }
        for name, kind, *_ in MODES[:modes]
    }
    config = {"name": "made", "budget_ms": 800.0, "vad": {"kind": "silero", "stop_secs": 0.2}}
    environment = {"system": "Linux", "processor": "made", "cores": 2, "memory_gb": 8.0}
    versions = {"python": "3.11.7", "voicebench-testbed": "0.1.0", "pipecat-ai": "1.14.0"}
    return run_info(
        records, modes=facts, config=config, environment=environment, versions=versions, synthetic_samples=13
    ), records
