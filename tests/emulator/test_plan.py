"""The plan of a reply: its instants, its tokens, and that the same request gets the same one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicebench.emulator import asked as asking
from voicebench.emulator.catalogue import SEED_SCRIPTS
from voicebench.emulator.plan import Plan, make
from voicebench.emulator.timing import TimingScript
from voicebench.emulator.tokens import count

STEADY = TimingScript(
    "steady", headers_ms=50.0, preamble_ms=60.0, first_text_ms=200.0, rate_tok_s=100.0, reply_tokens=40
)


def planned(
    script: TimingScript, question: str = "Hello", seed: int = 0, ordinal: int = 0, **body: Any
) -> Plan:
    """The plan for one question over Chat Completions."""
    request = {"model": script.name, "messages": [{"role": "user", "content": question}], **body}
    return make(script, asking.read("chat", request), None, seed, ordinal)


def instants_ms(plan: Plan) -> list[float]:
    """When each delta of the text is due."""
    return [delta.at_ns / 1e6 for delta in plan.text]


def test_steady_tokens_come_at_the_rate() -> None:
    """One token an event: the first at first_text_ms, each next one 1000/rate ms later."""
    plan = planned(STEADY)
    assert (plan.headers_ns, plan.preamble_ns) == (50_000_000, 60_000_000)
    assert instants_ms(plan) == pytest.approx([200.0 + 10.0 * index for index in range(40)])
    assert plan.end_ns == plan.text[-1].at_ns


@pytest.mark.parametrize(
    ("name", "rate", "first_ms"),
    [
        ("opus-4.6", 65.0, 200.0),
        ("opus-4.6-fast", 170.0, 200.0),
        ("gpt-5.3-codex", 1000.0 / 15.0, 200.0),
        ("gpt-5.3-codex-spark", 1000.0, 100.0),
    ],
)
def test_the_seed_modes_keep_their_published_figures(name: str, rate: float, first_ms: float) -> None:
    """The four seed modes: first text and decode rate, as a client would measure them from the plan."""
    script = next(script for script in SEED_SCRIPTS if script.name == name)
    plan = planned(script, question="Answer at length, please.")
    instants = instants_ms(plan)
    tokens = sum(delta.tokens for delta in plan.text[1:])
    assert instants[0] == first_ms
    assert 1000.0 * tokens / (instants[-1] - instants[0]) == pytest.approx(rate, rel=1e-6)


@settings(deadline=None)
@given(
    rate=st.floats(1.0, 5000.0),
    sizes=st.lists(st.integers(1, 9), max_size=4),
    tokens=st.integers(2, 200),
    relative=st.floats(0.0, 2.0),
    jitter_ms=st.floats(0.0, 50.0),
    seed=st.integers(0, 1000),
)
def test_instants_never_fall_and_tokens_never_vanish(
    rate: float, sizes: list[int], tokens: int, relative: float, jitter_ms: float, seed: int
) -> None:
    """Whatever burst and jitter: instants never fall, tokens add up, and without jitter the rate is exact."""
    script = replace(
        STEADY,
        rate_tok_s=rate,
        burst=tuple(sizes),
        reply_tokens=tokens,
        jitter_relative=relative,
        jitter_ms=jitter_ms,
    )
    plan = planned(script, seed=seed)
    instants = [delta.at_ns for delta in plan.text]
    assert instants == sorted(instants)
    assert sum(delta.tokens for delta in plan.text) == plan.usage.text == tokens
    steady = planned(replace(script, jitter_relative=0.0, jitter_ms=0.0), seed=seed)
    if len(steady.text) > 1:
        later = sum(delta.tokens for delta in steady.text[1:])
        span_s = (steady.text[-1].at_ns - steady.text[0].at_ns) / 1e9
        assert later / span_s == pytest.approx(rate, rel=1e-4)


def test_bursts_cut_the_tokens_in_a_cycle() -> None:
    """burst [1, 3] gives events of 1, 3, 1, 3 ... tokens; tokens_per_event gives even ones."""
    assert [delta.tokens for delta in planned(replace(STEADY, burst=(1, 3), reply_tokens=10)).text] == [
        1,
        3,
        1,
        3,
        1,
        1,
    ]
    assert [delta.tokens for delta in planned(replace(STEADY, tokens_per_event=4, reply_tokens=10)).text] == [
        4,
        4,
        2,
    ]


def test_a_stall_moves_all_that_follows() -> None:
    """A stall of 300 ms at token 5 moves token 5 and all after it by 300 ms, and none before it."""
    stalled, steady = planned(replace(STEADY, stalls=((5, 300.0),))), planned(STEADY)
    moved = [late - due for late, due in zip(instants_ms(stalled), instants_ms(steady), strict=True)]
    assert moved == pytest.approx([0.0] * 5 + [300.0] * 35)


def test_jitter_spreads_and_keeps_the_first_text() -> None:
    """Jitter of the gaps leaves the first text where it is; that has a spread of its own, after the
    preamble."""
    jittered = planned(replace(STEADY, jitter_relative=0.3, jitter_ms=1.0))
    assert instants_ms(jittered)[0] == 200.0
    assert instants_ms(jittered) != instants_ms(planned(STEADY))
    firsts = {
        instants_ms(planned(replace(STEADY, first_text_jitter_ms=80.0), ordinal=n))[0] for n in range(50)
    }
    assert len(firsts) > 40
    assert min(firsts) >= 60.0


def test_reasoning_ends_at_the_first_text() -> None:
    """Reasoning fills the gap before the first text; turned off, the text comes that much sooner."""
    thinker = replace(STEADY, reasoning_tokens=10, reasoning_gap_ms=100.0)
    plan = planned(thinker)
    assert sum(delta.tokens for delta in plan.reasoning) == plan.usage.reasoning == 10
    assert plan.reasoning[0].at_ns == 100_000_000
    assert plan.reasoning[-1].at_ns < plan.text[0].at_ns == 200_000_000
    quiet = planned(thinker, reasoning_effort="none")
    assert (quiet.reasoning, quiet.text[0].at_ns) == ((), 100_000_000)


def test_the_same_request_gets_the_same_plan() -> None:
    """Same seed, model, body and ordinal: same words at same instants; another of them: another plan."""
    script = replace(STEADY, reply_tokens=None, reply="long", jitter_relative=0.2)
    plan = planned(script)
    assert planned(script) == plan
    assert planned(script, seed=1) != plan
    assert planned(script, ordinal=1) != plan
    assert planned(script, temperature=0.5) != plan
    assert planned(replace(script, name="another")) != plan


def test_models_say_the_same_to_the_same_question() -> None:
    """The words do not depend on the model, so that two modes can be compared on the same text."""
    spark, opus = (
        planned(script, question="Tell me at length.") for script in (SEED_SCRIPTS[3], SEED_SCRIPTS[0])
    )
    assert spark.reply == opus.reply
    assert count(spark.reply) >= 700


def test_a_reply_of_a_given_length() -> None:
    """reply_tokens gives exactly that many, ending in a full stop; the request's limit still cuts it."""
    for tokens in (1, 2, 17, 400, 2000):
        plan = planned(replace(STEADY, reply_tokens=tokens))
        assert plan.usage.text == tokens
        assert plan.reply.endswith((".", "?", "!"))
        assert plan.finish == "stop"
    limited = planned(replace(STEADY, reply_tokens=400), max_completion_tokens=100)
    assert (limited.usage.text, limited.finish) == (100, "length")
