"""A planted key through the commands: whatever goes wrong, no output holds it or a part of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.keys_and_text.canary import CANARY, MARKS, leaks, leaks_below, marks_of
from tests.keys_and_text.echoing_vendor import APIS, mode_lines, vendor

SAMPLE = Path(__file__).parents[2] / "audio_samples" / "yes.wav"
ALONE = ("success", "401", "in-stream")
STAGES = """\
asr: {kind: scripted, delay_ms: 10, text: "What is the capital of France?"}
tts: {kind: tone, first_byte_ms: 5, leading_silence_ms: 0, seconds_per_word: 0.05}
turn: {kind: speech_timeout, speech_timeout_secs: 0.0}
hear: onset
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: 2
"""


async def ran(*arguments: str | Path, cwd: Path) -> tuple[int | None, str]:
    """Exit status and all output of a command with the key in its environment, every SDK logging all."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voicebench", *map(str, arguments)),
        cwd=cwd,
        env={
            **os.environ,
            "CANARY_KEY": CANARY,
            "OPENAI_LOG": "debug",
            "ANTHROPIC_LOG": "debug",
            "PYTHONASYNCIODEBUG": "1",
            "LOGURU_LEVEL": "TRACE",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode("utf-8", "replace")


def outcomes(run: Path) -> dict[str, str]:
    """Outcome and reason by mode."""
    rows = [json.loads(line) for line in (run / "turns.jsonl").read_text("utf-8").splitlines()]
    return {row["mode"]: f"{row['outcome']} {row['reason']}" for row in rows}


def test_the_search_finds_every_form() -> None:
    """The search for the key is one that can fail: it finds the key plain, encoded, and by a piece."""
    import base64
    from urllib.parse import quote

    for form in (CANARY, quote(CANARY, safe=""), base64.b64encode(b"Bearer " + CANARY.encode()).decode()):
        assert leaks(f"x {form} y")
    assert leaks(f"x {CANARY[11:19]} y")
    assert not leaks("nothing of the kind " + CANARY[:7])
    assert marks_of() == MARKS


async def test_no_command_lets_a_part_of_the_key_out(tmp_path: Path) -> None:
    """Success, refusals, errors in the stream and garbage of a vendor that repeats the key wherever it can,
    over four protocols, alone and in spoken turns, with debug logs on: no output, no file holds it."""
    slot, batch = tmp_path / "slot.yaml", tmp_path / "batch.yaml"
    spoken = ("success", "401")
    modes = [part for api in APIS for fault in ALONE for part in ("--mode", f"echo/{api}-{fault}")]
    async with vendor() as port:
        slot.write_text(mode_lines(port, ALONE), "utf-8")
        batch.write_text(mode_lines(port, spoken, APIS[:1]) + STAGES, "utf-8")
        told = await asyncio.gather(
            ran("slot", "--config", slot, *modes, "--requests", "1", "--out", "slot", cwd=tmp_path),
            ran("batch", SAMPLE, "--config", batch, "--out", "batch", "--json", cwd=tmp_path),
        )
    for _, output in told:
        assert [line for line in output.splitlines() if leaks(line)] == []
        assert "Traceback" not in output, output
    assert "DEBUG" in told[0][1]
    assert leaks_below(tmp_path) == {}
    found = outcomes(tmp_path / "slot")
    assert len(found) == len(APIS) * len(ALONE)
    spoke = outcomes(tmp_path / "batch")
    assert len(spoke) == len(spoken)
    for mode, outcome in {**found, **spoke}.items():
        assert outcome.startswith("completed") == mode.endswith("success"), (mode, outcome)
    for api in APIS:
        assert "[key]" in found[f"echo/{api}-401"]
        assert "[key]" in found[f"echo/{api}-in-stream"]
