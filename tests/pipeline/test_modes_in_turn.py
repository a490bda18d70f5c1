"""Model modes inside a spoken turn: retries, candidates, routes and tools, over the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pipeline.driven import SPEECH_S, Driver, clip
from tests.pipeline.emulated_turns import (
    ANSWER,
    APIS,
    SCRIPTS,
    config_of,
    emulated_mode,
    made_of,
    running,
    talking_to,
)
from voicebench.clock import NS_PER_S
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.errors import BadRequest
from voicebench.pipeline.build import resolve
from voicebench.pipeline.collection import frozen_heap
from voicebench.plan.modes import Mode
from voicebench.plan.tools import Tool
from voicebench.turns.records import Flag, Outcome


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own."""
    with start(scripts=SCRIPTS, seed=7) as server, frozen_heap():
        yield server


def priced(**more: Any) -> dict[str, Any]:
    """A price in round numbers."""
    return {"price": {"input": 5, "output": 25, "cache_read": 0.5, "cache_write": 6.25, **more}}


@pytest.mark.parametrize("api", APIS)
async def test_a_turn_that_is_asked_again_is_flagged(api: str, emulator: EmulatorProcess) -> None:
    """After one 429 two attempts answer, one does not; latency runs from the first attempt."""
    for attempts in (2, 1):
        mode = emulated_mode(api, emulator, "quick!429-once;retry_after=0.3", attempts=attempts)
        said = {"text": f"What is the capital of France, {attempts} {api}?", "delay_ms": 10}
        async with talking_to(mode, turn_timeout_s=4.0, asr=said) as driver:
            record = await driver.record(clip(SPEECH_S))
        assert record.attempts[0].status == "rate_limited"
        if attempts == 1:
            assert (record.outcome, len(record.attempts)) == (Outcome.RATE_LIMITED, 1)
            continue
        assert record.outcome is Outcome.COMPLETED, record.reason
        assert Flag.RETRIED in record.flags
        assert record.excluded
        first, second = record.attempts
        assert first.request_ns == record.marks_ns["llm_request"]
        assert first.end_ns is not None
        assert second.request_ns - first.end_ns >= 0.29 * NS_PER_S
        assert second.end_ns is not None
        assert record.stages_ms is not None
        assert (record.stages_ms["llm_ttfat"] or 0) >= 290


async def test_what_is_never_asked_again_refuses_attempts() -> None:
    """A stage whose requests the tap does not make takes no second attempt."""
    mode = Mode(id="a", kind="emulated", provider="x", api="scripted", model="m", attempts=2)
    with pytest.raises(BadRequest, match="never asked again"):
        resolve(config_of(mode), [mode], "test")


async def test_cached_tokens_have_their_own_price(emulator: EmulatorProcess) -> None:
    """The record's price agrees with one worked out by hand, to a millionth of a dollar."""
    mode = emulated_mode("anthropic", emulator, "cached", **priced())
    async with talking_to(mode) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert record.usage is not None
    used = record.usage
    assert (used.cache_read_tokens, used.cache_write_tokens) == (40, 7)
    plain = (used.input_tokens or 0) - 47
    assert plain > 0
    by_hand = plain * 5e-6 + 40 * 0.5e-6 + 7 * 6.25e-6 + (used.output_tokens or 0) * 25e-6
    assert record.usd is not None
    assert abs(record.usd - by_hand) < 1e-6


async def test_candidates_are_kept_with_choice_clause_and_cost(emulator: EmulatorProcess) -> None:
    """Three at once: the first complete clause is taken, and the turn costs what all three did."""
    member = emulated_mode("openai-chat", emulator, "quick", **priced())
    entry = {"id": "set/x3", "candidates": [member.id], "times": 3, "take": "first_clause"}
    async with running(Driver(made_of(entry, member))) as driver:
        record, again = [await driver.record(clip(SPEECH_S)) for _ in range(2)]
        assert driver.opened == 1
    for one in (record, again):
        assert one.outcome is Outcome.COMPLETED, one.reason
        assert one.reply == ANSWER
        assert len(one.candidates) == 3
        [chosen] = [candidate for candidate in one.candidates if candidate.chosen]
        assert one.choice["mode"] == chosen.mode == member.id
        clauses = [candidate.clause_ns for candidate in one.candidates]
        assert all(at is not None for at in clauses)
        assert chosen.clause_ns == min(at for at in clauses if at is not None)
        assert one.marks_ns["llm_first_text"] >= chosen.clause_ns
        assert one.marks_ns["llm_request"] == min(candidate.request_ns for candidate in one.candidates)
        bills = [candidate.usd for candidate in one.candidates]
        assert one.usd == pytest.approx(sum(bill for bill in bills if bill is not None), abs=1e-9)
        assert all(bills)


async def test_a_scorer_takes_the_better_of_a_fast_and_a_slow_reply(emulator: EmulatorProcess) -> None:
    """What is scored at the slot's end decides, not who was first; a failing candidate harms nothing."""
    members = [
        emulated_mode("openai-chat", emulator, "quick!429", id="test/busy"),
        emulated_mode("openai-responses", emulator, "quick", id="test/quick"),
        Mode(
            id="test/script",
            kind="emulated",
            provider="x",
            api="scripted",
            model="m",
            settings={"text": "It is Paris, in France.", "first_text_ms": 120, "per_word_ms": 1},
        ),
    ]
    entry = {
        "id": "set/best",
        "candidates": [one.id for one in members],
        "take": "scorer",
        "slot_ms": 300,
        "scorer": {"kind": "keywords", "words": ["in France"]},
    }
    async with running(Driver(made_of(entry, *members))) as driver:
        record = await driver.record(clip(SPEECH_S))
        assert driver.session is not None
        assert driver.session.healthy
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert record.reply == "It is Paris, in France."
    assert record.choice["mode"] == "test/script"
    assert [one.score for one in record.candidates] == [None, 0.0, 1.0]
    assert [one.status for one in record.candidates] == ["rate_limited", "ok", "ok"]
    assert record.usd is None


async def test_a_set_of_which_all_fail_fails_as_they_did(emulator: EmulatorProcess) -> None:
    """Where no candidate gives a reply the turn ends in what became of one, and the next turn is well."""
    member = emulated_mode("anthropic", emulator, "quick!529")
    entry = {"id": "set/busy", "candidates": [member.id], "times": 2, "take": "first_clause"}
    async with running(Driver(made_of(entry, member))) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert (record.outcome, len(record.candidates)) == (Outcome.OVERLOADED, 2)


@pytest.mark.parametrize(
    ("at_most", "label", "served"), [(6, "simple", "test/fast"), (5, "hard", "test/full")]
)
async def test_a_route_has_one_of_two_answer(
    at_most: int, label: str, served: str, emulator: EmulatorProcess
) -> None:
    """The record says who answered, by which rule, at that one's price."""
    fast = emulated_mode("openai-chat", emulator, "quick", id="test/fast", **priced(output=100))
    full = emulated_mode("anthropic", emulator, "quick", id="test/full", **priced())
    entry = {
        "id": "route/r",
        "rule": {"kind": "words", "at_most": at_most},
        "to": {"simple": fast.id, "hard": full.id},
    }
    async with running(Driver(made_of(entry, fast, full, route=True))) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert (record.choice["mode"], record.choice["rule"], record.choice["label"]) == (served, "words", label)
    assert record.served["mode"] == served
    assert record.mode == "route/r"
    assert record.usage is not None
    price = 100e-6 if served == "test/fast" else 25e-6
    by_hand = (record.usage.input_tokens or 0) * 5e-6 + (record.usage.output_tokens or 0) * price
    assert record.usd == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("api", APIS)
async def test_a_tools_time_is_a_part_of_the_wait(api: str, emulator: EmulatorProcess) -> None:
    """The call, its time, the request after it and the cost of both stand in the record."""
    weather = Tool(name="look_up", description="Looks a thing up.", takes_ms=120, result={"found": True})
    mode = emulated_mode(api, emulator, "quick!tool-call", tools=(weather,), **priced())
    async with talking_to(mode, turn_timeout_s=5.0) as driver:
        record = await driver.record(clip(SPEECH_S))
    assert record.outcome is Outcome.COMPLETED, record.reason
    assert record.reply == ANSWER
    [call] = record.tools
    assert call.name == "look_up"
    assert call.end_ns is not None
    before, after = record.requests
    assert (before.tool_calls, before.reply, after.reply) == (1, None, ANSWER)
    assert before.request_ns == record.marks_ns["llm_request"] < call.start_ns
    assert call.end_ns <= after.request_ns < record.marks_ns["llm_first_text"]
    assert record.work_ms["tool"] >= 120
    assert record.work_ms["tool_before_text"] == record.work_ms["tool"]
    assert record.stages_ms is not None
    assert (record.stages_ms["llm_ttfat"] or 0) > record.work_ms["tool"]
    assert before.usd is not None
    assert record.usd == pytest.approx((before.usd or 0) + (after.usd or 0), abs=1e-9)


async def test_the_same_seed_gives_the_same_replies(emulator: EmulatorProcess) -> None:
    """Two emulators of one seed say the same to the same questions, and the turns end alike."""
    told = []
    for _ in range(2):
        with start(scripts=SCRIPTS, seed=5) as server:
            mode = emulated_mode("openai-chat", server, "quick")
            said = {"text": "Tell me something about whatever you like.", "delay_ms": 10}
            async with talking_to(mode, asr=said) as driver:
                records = [await driver.record(clip(SPEECH_S)) for _ in range(3)]
        told.append([(one.outcome, one.reply) for one in records])
    assert told[0] == told[1]
    assert all(outcome is Outcome.COMPLETED for outcome, _ in told[0])
