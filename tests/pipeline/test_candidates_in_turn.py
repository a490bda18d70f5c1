"""Candidates that hang or end late, and a scorer that breaks: the turn ends, and the next one is well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pipeline.driven import SPEECH_S, Driver, clip
from tests.pipeline.emulated_turns import ANSWER, APIS, SCRIPTS, emulated_mode, made_of, running
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.turns.records import Outcome


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own."""
    with start(scripts=SCRIPTS, seed=7) as server:
        yield server


def breaks(transcript: str, reply: str) -> float:
    """A scorer that raises."""
    raise ZeroDivisionError(f"cannot score {len(reply)} characters")


@pytest.mark.parametrize("api", APIS)
async def test_a_candidate_that_hangs_is_given_up(api: str, emulator: EmulatorProcess) -> None:
    """The other one answers; what the given up one costs is not known, and so the turn's cost is not."""
    price = {"input": 1, "output": 1}
    quick = emulated_mode(api, emulator, "quick", id="test/quick", price=price)
    hangs = emulated_mode(api, emulator, "quick!hang-mid;after=2", id="test/hangs", price=price)
    entry = {
        "id": "set/two",
        "candidates": [hangs.id, quick.id],
        "take": "first_clause",
        "drain_s": 0.2,
    }
    async with running(Driver(made_of(entry, hangs, quick))) as driver:
        for _ in range(2):
            record = await driver.record(clip(SPEECH_S))
            assert record.outcome is Outcome.COMPLETED, record.reason
            assert (record.reply, record.choice["mode"]) == (ANSWER, "test/quick")
            assert [one.status for one in record.candidates] == ["cancelled", "ok"]
            assert record.candidates[1].usd is not None
            assert record.usd is None
        assert driver.opened == 1


async def test_where_all_candidates_hang_the_turn_times_out(emulator: EmulatorProcess) -> None:
    """Nothing of it reaches the next turn, which times out by itself."""
    hangs = emulated_mode("openai-chat", emulator, "quick!hang-first-text")
    entry = {"id": "set/two", "candidates": [hangs.id], "times": 2, "take": "longest_by_slot"}
    async with running(Driver(made_of(entry, hangs))) as driver:
        for turn in (1, 2):
            record = await driver.record(clip(SPEECH_S))
            assert record.outcome is Outcome.TIMED_OUT
            assert driver.opened == turn


async def test_a_scorer_that_raises_fails_the_turn(emulator: EmulatorProcess) -> None:
    """The reason names what it raised."""
    quick = emulated_mode("anthropic", emulator, "quick")
    entry = {
        "id": "set/two",
        "candidates": [quick.id],
        "times": 2,
        "take": "scorer",
        "scorer": {"kind": f"{__name__}:breaks"},
    }
    async with running(Driver(made_of(entry, quick))) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert record.outcome is Outcome.FAILED
    assert "ZeroDivisionError: cannot score 51 characters" in (record.reason or "")
