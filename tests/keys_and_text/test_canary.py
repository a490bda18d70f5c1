"""A planted key through the commands: whatever goes wrong, no output holds it or a part of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cli.running import ENERGY, tones
from tests.keys_and_text.canary import CANARY, MARKS, leaks, leaks_below, marks_of
from tests.keys_and_text.echoing_vendor import APIS, FAULTS, mode_lines, vendor
from voicebench.live.conversation import LiveOptions
from voicebench.runner import RunOptions
from voicebench.slot_run import SlotOptions
from voicebench.stages.shared import Shared

SPOKEN = ("told", "401", "garbage")
FORMATS = "html,csv,markdown,json,trace,parquet,otel"
STAGES = f"""\
{ENERGY}asr: {{kind: scripted, delay_ms: 10}}
tts: {{kind: tone, first_byte_ms: 5, leading_silence_ms: 0, seconds_per_word: 0.05}}
turn: {{kind: speech_timeout, speech_timeout_secs: 0.0}}
hear: onset
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: 2
longest_retry_wait_s: 0.1
"""
LEAKY = "{{kind: pipecat, class: tests.keys_and_text.leaky.{0}, api_key_env: CANARY_KEY}}"
LEAKY_MODE = """\
  - {id: echo/leaky, kind: live, provider: echo, api: pipecat, model: m,
     settings: {class: tests.keys_and_text.leaky.LeakyLlm, api_key_env: CANARY_KEY}}
"""


async def ran(commands: list[list[str | Path]], cwd: Path) -> str:
    """All that these commands say in one process with the key in its environment, every SDK logging all."""
    arguments = json.dumps([[str(one) for one in command] for command in commands])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.keys_and_text.commands_child", arguments),
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
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
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    return output.decode("utf-8", "replace")


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


def test_what_holds_the_environment_does_not_show_it() -> None:
    """Options and what the stages share can be printed, logged or stand in an error without a key."""
    found = {"CANARY_KEY": CANARY}
    shared = Shared(environment=found)
    shared.get(("a client",), lambda: found)
    holders = [
        shared,
        RunOptions(environment=found),
        SlotOptions(environment=found),
        LiveOptions(environment=found),
    ]
    for one in holders:
        assert leaks(repr(one)) == []
        assert leaks(f"{one}") == []


CRASHES = """
import asyncio, logging, os, threading
from voicebench.stages.llm_keys import guard

key = os.environ["CANARY_KEY"]
guard(key)

def broken(where):
    raise RuntimeError(f"{where}: the key {key}") from KeyError(f"Bearer {key}")

class Falling:
    def __repr__(self):
        return f"Falling({key})"

    def __del__(self):
        broken("destructor")

async def task():
    broken("task")

async def forgotten():
    asyncio.get_running_loop().create_task(task())
    await asyncio.sleep(0)

thread = threading.Thread(target=broken, args=("thread",), name=f"for {key}")
thread.start()
thread.join()
Falling()
asyncio.run(forgotten())
try:
    broken("logged")
except RuntimeError:
    logging.getLogger("x").exception("refused %s", key)
logging.getLogger("x").warning("%(key)s", {"key": key})
broken("main")
"""


def test_no_crash_shows_the_key() -> None:
    """A thread, a destructor, a forgotten task, a logged error and the program itself that break with the key
    in their errors and names print their tracebacks without it."""
    done = subprocess.run(
        [sys.executable, "-c", CRASHES],
        env={**os.environ, "CANARY_KEY": CANARY},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert leaks(done.stderr) == []
    for where in ("thread", "destructor", "task", "logged", "main"):
        assert f"RuntimeError: {where}: the key [key]" in done.stderr
    assert "refused [key]" in done.stderr


async def test_no_command_lets_a_part_of_the_key_out(tmp_path: Path) -> None:
    """Success, refusals, retries, garbage, silence and broken connections of a vendor that repeats the key
    wherever it can, over four protocols, alone and in spoken turns, stages that break with the key in their
    errors, all with debug logs on, and the runs told in every format: no output and no file holds it."""
    audio = tones(tmp_path, 1)
    slot, batch = tmp_path / "slot.yaml", tmp_path / "batch.yaml"
    modes = [part for api in APIS for fault in FAULTS for part in ("--mode", f"echo/{api}-{fault}")]
    async with vendor() as port:
        slot.write_text(mode_lines(port, FAULTS) + "longest_retry_wait_s: 0.1\n", "utf-8")
        spoken = mode_lines(port, SPOKEN, APIS[:1])
        batch.write_text(spoken.replace("modes: [", "modes: [echo/leaky, ", 1) + LEAKY_MODE + STAGES, "utf-8")
        one = mode_lines(port, ("success",), APIS[:1])
        for stage, name in (("asr", "LeakyStt"), ("tts", "LeakyTts"), ("asr", "Unmakable")):
            kept = "".join(line for line in STAGES.splitlines(True) if not line.startswith(stage))
            broken = f"{stage}: {LEAKY.format(name)}\n"
            (tmp_path / f"{name}.yaml").write_text(one + kept + broken, "utf-8")
        shown: list[list[str | Path]] = [
            ["doctor", "--json"],
            ["modes", "--config", batch, "--json"],
            [
                "slot",
                "--config",
                slot,
                *modes,
                "--requests",
                "1",
                "--out",
                "slot",
                "--record-streams",
                "streams",
            ],
            ["report", "slot", "--format", FORMATS, "--verbose", "--json"],
        ]
        talks: list[list[str | Path]] = [
            *(
                ["batch", audio, "--config", f"{name}.yaml", "--out", name, "--json", "--verbose"]
                for name in ("LeakyStt", "LeakyTts", "Unmakable")
            ),
            ["batch", audio, "--config", batch, "--out", "batch", "--json", "--keep-audio"],
            ["report", "batch", "--format", FORMATS, "--verbose", "--embed-audio"],
        ]
        told = await asyncio.gather(ran(shown, tmp_path), ran(talks, tmp_path))
    for output in told:
        assert [line for line in output.splitlines() if leaks(line)] == []
    assert "Traceback" not in told[1], told[1]
    assert "DEBUG" in told[0]
    assert leaks_below(tmp_path) == {}
    assert len([name for _, _, names in os.walk(tmp_path) for name in names if "report." in name]) == 18
    found = outcomes(tmp_path / "slot")
    assert len(found) == len(APIS) * len(FAULTS)
    spoke = outcomes(tmp_path / "batch")
    assert len(spoke) == len(SPOKEN) + 1
    for mode, outcome in {**found, **spoke}.items():
        assert outcome.startswith("completed") == mode.endswith(("-success", "-told")), (mode, outcome)
    for api in APIS:
        for fault in ("401", "429", "429-again", "500", "in-stream"):
            assert "[key]" in found[f"echo/{api}-{fault}"]
    assert "[key]" in spoke["echo/leaky"]
    for name in ("LeakyStt", "LeakyTts"):
        (reason,) = outcomes(tmp_path / name).values()
        assert "[key]" in reason
