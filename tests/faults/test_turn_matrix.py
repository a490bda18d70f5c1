"""Every fault over every protocol in a spoken turn: a typed end in time, and the next turn is healthy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import get_args

import pytest

from tests.faults.outcomes import OUTCOMES, outcome_of
from tests.pipeline.driven import SPEECH_S, clip
from tests.pipeline.emulated_turns import ANSWER, APIS, SCRIPTS, emulated_mode, talking_to
from tests.pipeline.made_turns import facts
from voicebench.clock import NS_PER_S, now_ns
from voicebench.emulator.faults import FAULTS, Stage
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.pipeline.collection import frozen_heap
from voicebench.pipeline.record import record
from voicebench.turns.records import Outcome, TurnRecord

TIMEOUT_S = 4.0
SILENT_S = 0.5
AT_ONCE = 8
"""So many cells of the matrix are tried at the same time, beside those that only wait for their time-out."""
HANGS = tuple(name for name in FAULTS if name.startswith("hang"))


def test_each_fault_has_an_outcome() -> None:
    """The matrix holds every fault that the emulator knows, and no other."""
    assert set(OUTCOMES) == set(FAULTS)


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own, for all cells."""
    with start(scripts=SCRIPTS, seed=7) as server, frozen_heap():
        yield server


async def _turns(
    emulator: EmulatorProcess, api: str, fault: str, **settings: float
) -> tuple[TurnRecord, float, TurnRecord]:
    """A turn whose reply has the fault, how long after the speech it ended in seconds, and the next turn,
    whose reply has none."""
    asked = {"text": f"What is the capital of France? That is {fault}.", "delay_ms": 10}
    mode = emulated_mode(api, emulator, f"quick!{fault}")
    mode = mode.model_copy(update={"settings": {**mode.settings, **settings}})
    async with talking_to(mode, turn_timeout_s=TIMEOUT_S, asr=asked) as driver:
        heard = await driver.turn(clip(SPEECH_S))
        after_s = (now_ns() - heard.playback.end_ns) / NS_PER_S
        faulty = record(facts(mode=driver.mode, has_speech=True), heard)
        if driver.session is None or not driver.session.healthy:
            await driver.close()
        driver.mode = mode.model_copy(update={"model": "quick"})
        if driver.session is not None:
            driver.ask_from_now_on("quick")
        return faulty, after_s, await driver.record(clip(SPEECH_S))


def _wrong(name: str, right: dict[str, bool], following: TurnRecord) -> list[str]:
    """What of this does not hold, or is not as it should be in the turn after a fault."""
    well = {
        f"was followed by {following.outcome}: {following.reason}": following.outcome is Outcome.COMPLETED,
        f"was followed by {following.reply!r}": following.reply == ANSWER,
        "was followed by a turn without a latency": following.voice_to_voice_ms is not None,
    }
    return [f"{name} {what}" for what, holds in {**right, **well}.items() if not holds]


@pytest.mark.parametrize("stage", get_args(Stage))
async def test_each_fault_has_its_outcome_in_time_and_the_next_turn_is_well(
    stage: Stage, emulator: EmulatorProcess
) -> None:
    """Over all four protocols a fault ends its own turn, as what it is and within the turn's time-out and a
    second, and harms no other."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def tried(api: str, fault: str) -> list[str]:
        expected = outcome_of(fault, api)
        async with contextlib.nullcontext() if fault in HANGS else gate:
            faulty, after_s, following = await _turns(emulator, api, fault)
        timed_out = expected is Outcome.TIMED_OUT
        right = {
            f"is {faulty.outcome}, not {expected}: {faulty.reason}": faulty.outcome is expected,
            f"has the reason {faulty.reason}": (faulty.reason is None) == (expected is Outcome.COMPLETED),
            f"ended {after_s:.2f} s after the speech": after_s <= TIMEOUT_S + 1.0,
            f"waited {after_s:.2f} s for its time-out": (after_s >= TIMEOUT_S) == timed_out,
        }
        return _wrong(f"{fault} over {api}", right, following)

    faults = [name for name, kind in FAULTS.items() if kind.stage == stage]
    wrong = await asyncio.gather(*(tried(api, fault) for fault in faults for api in APIS))
    assert [line for lines in wrong for line in lines] == []


async def test_an_endpoint_that_hangs_is_given_up_after_its_own_time_out(emulator: EmulatorProcess) -> None:
    """Where an endpoint may be silent for less than a turn may last, that ends the turn, over all four
    protocols."""

    async def tried(api: str, fault: str) -> list[str]:
        faulty, _, following = await _turns(emulator, api, fault, timeout_s=SILENT_S)
        [attempt] = faulty.attempts
        lasted_s = ((attempt.end_ns or 0) - attempt.request_ns) / NS_PER_S
        right = {
            f"is {faulty.outcome}: {faulty.reason}": faulty.outcome is Outcome.TIMED_OUT,
            f"does not say who was silent: {faulty.reason}": "LLM: " in (faulty.reason or ""),
            f"lasted for {lasted_s:.2f} s": SILENT_S * 0.9 <= lasted_s <= SILENT_S + 1.0,
        }
        return _wrong(f"{fault} over {api}", right, following)

    wrong = await asyncio.gather(*(tried(api, fault) for fault in HANGS for api in APIS))
    assert [line for lines in wrong for line in lines] == []
