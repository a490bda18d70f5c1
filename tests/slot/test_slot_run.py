"""The slot alone: what a client counts is what was sent, every request is told once, cold ones apart."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from tests.slot.slot_runs import Told, quick, ran, slot_plan, written
from voicebench.analysis.report import build_report
from voicebench.clock import NS_PER_MS
from voicebench.emulator import replay
from voicebench.errors import BadRequest, MissingExtra, MissingKey
from voicebench.plan import registry
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode, catalogue
from voicebench.plan.prompts import slot_prompts
from voicebench.slot_plan import SEED_MODES, make_slot_plan, slot_config
from voicebench.slot_run import SlotOptions, run_slot
from voicebench.slot_streams import replay_mode
from voicebench.turns.journal import read_journal
from voicebench.turns.records import Flag, Outcome, TurnRecord
from voicebench.turns.slot import clause_ready, decode_rate_tok_s, delivered
from voicebench.turns.timeline import Anchor

SLOTS = (50, 100, 250, 400, 450, 500, 2000)


async def test_the_seed_modes_deliver_what_the_emulator_wrote(tmp_path: Path) -> None:
    """For each of the four emulated modes the tokens and the text are the log's own, in total exactly and by
    any deadline never more."""
    plan = make_slot_plan(
        Config.model_validate({"modes": SEED_MODES, "conversation": {"max_tokens": 60}}), 2, variables={}
    )
    log = tmp_path / "emulator.jsonl"
    told = await ran(plan, tmp_path / "run", emulator_log=log)
    sent = written(log)
    assert len(told.records) == 8
    assert [record.mode for record in told.colds] == [record.mode for record in told.records[:4]]
    for record in [*told.records, *told.colds]:
        assert record.outcome is Outcome.COMPLETED
        assert record.request_id is not None
        server = sent[record.request_id]
        assert sum(tokens for _, _, tokens in record.deltas) == server["usage"]["text"] == 60
        assert record.reply == server["reply"]
        assert record.usage is not None
        assert record.usage.visible_tokens == 60
        assert record.token_count == "o200k, equal to usage"
        for slot_ms in SLOTS:
            there = delivered(record, slot_ms * NS_PER_MS)
            assert there is not None
            by_then = [
                event["text_tokens"]
                for event in server["events"]
                if event["before_ns"] - server["received_ns"] <= slot_ms * NS_PER_MS
            ]
            assert there.tokens <= max(by_then, default=0)
        assert record.marks_ns["llm_request"] == 0
        assert record.marks_ns["llm_first_text"] >= (100 if "spark" in record.mode else 200) * NS_PER_MS
        assert record.marks_ns["llm_first_token"] == record.marks_ns["llm_first_text"]
    assert {record.mode: record.served.get("speed") for record in told.records} == {
        "emulated/opus-4.6": "standard",
        "emulated/opus-4.6-fast": "fast",
        "emulated/gpt-5.3-codex": None,
        "emulated/gpt-5.3-codex-spark": None,
    }


async def test_every_request_is_told_once_and_the_modes_take_turns(tmp_path: Path) -> None:
    """Each mode gets the same prompts, one after the other; the first request of each opened its connection
    and stands apart."""
    modes = [
        quick("a"),
        quick("b", "openai-chat"),
        quick("c", "anthropic"),
        quick("d", "openai-responses-ws"),
    ]
    plan = slot_plan(*modes, requests=12)
    told = await ran(plan, tmp_path / "run")
    assert [record.turn for record in told.records] == list(range(48))
    for start in range(0, 48, 4):
        four = told.records[start : start + 4]
        assert {record.mode for record in four} == {"own/a", "own/b", "own/c", "own/d"}
        assert len({(record.sample, record.repeat) for record in four}) == 1
    leads = {told.records[start].mode for start in range(0, 48, 4)}
    assert len(leads) == 4
    assert {record.sample for record in told.records} == {prompt.id for prompt in slot_prompts()}
    assert all(record.new_connection is False for record in told.records)
    assert sorted(record.mode for record in told.colds) == ["own/a", "own/b", "own/c", "own/d"]
    for cold in told.colds:
        assert cold.new_connection is True
        assert cold.connect_ms is not None
        assert "new_connection" in cold.caveats
    folder = told.folder
    assert folder is not None
    assert folder.turns().records == tuple(told.records)
    assert folder.warmup().records == tuple(told.colds)
    assert folder.info().complete


async def test_the_report_is_that_of_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots, headline, pace, sweep and price come from the same builder; nothing speaks of speech."""
    # On a busy machine a request would be kept out of the figures.
    monkeypatch.setattr("voicebench.slot_record.limited", lambda *_: None)
    priced = {"input": 1.0, "output": 10.0, "source": "made", "date": "2026-11-30"}
    plan = slot_plan(quick("a", price=priced), quick("b"), requests=6, slots_ms=[1, 2000])
    told = await ran(plan, tmp_path / "run")
    assert told.folder is not None
    report = build_report(told.folder.info(), told.records, warmup=told.colds)
    first, second = report.to_dict()["modes"]
    assert (first["mode"], first["kind"], first["anchor"]) == ("own/a", "emulated", "none")
    assert first["turns"]["completed"] == 6
    assert first["voice_to_voice_ms"]["n"] == 0
    assert first["budget"]["n"] == 0
    slots = {slot["slot"]: slot for slot in first["slots"]}
    assert (slots["1"]["tokens"]["p50"], slots["2000"]["tokens"]["p50"]) == (0, 40)
    for name in ("characters", "words", "sentences", "speech_s"):
        assert slots["2000"][name]["n"] == 6
    assert slots["2000"]["clause_ready"]["n"] == 6
    headline = first["headline_tokens"]["2000"]
    assert (headline["published"], headline["assumed"]) == (8000, True)
    assert headline["measured"] == pytest.approx(2 * first["decode_rate_tok_s"]["p50"])
    assert first["decode_rate_tok_s"]["n"] == 6
    assert first["ttft_ms"]["n"] == first["ttfat_ms"]["n"] == 6
    assert first["inter_token_ms"]["n"] > 100
    assert [sweep["slot_ms"] for sweep in first["tokens_over_ttft"]] == [1, 2000]
    assert first["usd_per_turn"]["n"] == 6
    assert second["usd_per_turn"]["n"] == 0
    codes = {caveat["code"] for caveat in report.to_dict()["caveats"]}
    assert "emulated" in codes
    assert not codes & {"no_turns", "no_latency", "no_noise_floor", "mixed_anchors", "partial_run"}


FAULTY = {
    "429": Outcome.RATE_LIMITED,
    "529": Outcome.OVERLOADED,
    "500": Outcome.FAILED,
    "no-terminal": Outcome.TRUNCATED,
    "drop": Outcome.TRUNCATED,
    "empty": Outcome.EMPTY,
    "tool-call": Outcome.TOOL_CALL,
    "hang-mid": Outcome.TIMED_OUT,
    "hang-headers": Outcome.TIMED_OUT,
}
"""What becomes of requests with each fault."""


async def test_a_fault_is_an_outcome_and_the_next_mode_is_served(tmp_path: Path) -> None:
    """What goes wrong is a row with its reason, once; the other modes' requests end as they do alone."""
    bad = [quick(fault, emulation={"fault": fault}) for fault in FAULTY]
    told = await ran(slot_plan(*bad, quick("good"), requests=2), tmp_path / "run", request_timeout_s=0.5)
    expected = {**{f"own/{fault}": outcome for fault, outcome in FAULTY.items()}, "own/good": None}
    for mode, outcome in expected.items():
        kept = [record for record in told.records if record.mode == mode]
        assert [record.outcome for record in kept] == [outcome or Outcome.COMPLETED] * 2, mode
        for record in kept:
            assert (record.reason is None) == (record.outcome is Outcome.COMPLETED)
            if record.outcome is Outcome.TIMED_OUT:
                assert record.reason == "the reply had not ended after 0.5 s"
        if mode in ("own/no-terminal", "own/drop", "own/hang-mid"):
            assert all(record.reply for record in kept)
    assert len(told.records) == 2 * len(expected)


@pytest.mark.parametrize(
    ("api", "options"),
    [
        ("anthropic", {"speed": "fast"}),
        ("openai-chat", {"service_tier": "priority"}),
        ("openai-responses", {"service_tier": "fast"}),
        ("openai-responses-ws", {"service_tier": "ultrafast"}),
    ],
)
async def test_another_speed_than_asked_is_flagged(tmp_path: Path, api: str, options: dict[str, str]) -> None:
    """Asked fast and served standard keeps a reply out of the statistics; served as asked it is in them."""
    modes = [
        quick("let-down", api, options=options, emulation={"fault": "asked-not-served"}),
        quick("served", api, options=options),
    ]
    told = await ran(slot_plan(*modes, requests=3), tmp_path / "run")
    for record in told.records:
        assert (Flag.ASKED_NOT_SERVED in record.flags) == (record.mode == "own/let-down")
    assert told.folder is not None
    report = build_report(told.folder.info(), told.records).to_dict()
    down, served = report["modes"]
    # A busy machine may have held up a reply: it is kept out for that reason, with a flag of its own.
    late = sum(Flag.CLIENT_LIMITED in record.flags for record in told.records if record.mode == "own/served")
    assert (down["flags"]["asked_not_served"], served["flags"]["asked_not_served"]) == (3, 0)
    assert (down["decode_rate_tok_s"]["n"], served["decode_rate_tok_s"]["n"]) == (0, 3 - late)
    assert down["decode_rate_tok_s"]["excluded"] == 3


async def test_an_endpoint_that_is_not_there_is_a_failed_row(tmp_path: Path) -> None:
    """Without a network a live mode fails row by row, in the system's words, and the run is whole."""
    row = {
        "id": "own/away",
        "kind": "live",
        "provider": "x",
        "api": "openai-chat",
        "model": "m",
        "settings": {"base_url": "http://127.0.0.1:9/v1"},
    }
    told = await ran(slot_plan(row, requests=2), tmp_path / "run")
    assert [record.outcome for record in told.records] == [Outcome.FAILED] * 2
    assert told.colds == []
    assert "onnect" in (told.records[0].reason or "")
    assert told.folder is not None
    assert told.folder.info().complete


async def test_a_recorded_stream_replays_at_its_own_times(tmp_path: Path) -> None:
    """A stream kept as a file is a mode: the same text, each delta at its recorded time or a little later."""
    plan = slot_plan(quick("real", decode_rate_tok_s={"value": 300, "source": "made", "assumed": True}))
    told = await ran(plan, tmp_path / "run", record_streams=tmp_path / "streams")
    files = sorted((tmp_path / "streams").iterdir())
    assert len(files) == 2
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    recorded = replay.read(files[0])
    mode = replay_mode(files[0])
    assert (mode.id, mode.kind) == (f"replay/{files[0].stem}", "emulated")
    again = await ran(slot_plan(mode.model_dump(), requests=1), tmp_path / "again")
    [record] = again.records
    assert record.reply == "".join(str(text) for _, text in recorded.deltas)
    assert record.reply in {one.reply for one in told.records}
    assert len(record.deltas) == len(recorded.deltas)
    for (at_ns, _, _), (at_ms, _) in zip(record.deltas, recorded.deltas, strict=True):
        assert at_ns / NS_PER_MS >= at_ms


async def test_texts_can_be_left_out(tmp_path: Path) -> None:
    """Without texts neither journal nor recorded stream holds a word of a reply; the counts stay."""
    plan = slot_plan(quick("a"))
    told = await ran(plan, tmp_path / "run", no_text=True, record_streams=tmp_path / "streams")
    words = set((told.records[0].reply or "").split())
    kept = "".join(
        path.read_text("utf-8") for path in (tmp_path / "run").iterdir() if path.suffix in (".jsonl",)
    )
    assert not any(f" {word} " in kept for word in words if len(word) > 5)
    [record, _] = read_journal(tmp_path / "run" / "turns.jsonl").records
    assert record.reply is None
    assert record.deltas == told.records[0].deltas
    recorded = json.loads(next(iter((tmp_path / "streams").iterdir())).read_text("utf-8"))
    assert recorded["unit"] == "characters"
    lengths = {len(one.reply or "") for one in told.records}
    assert sum(count for _, count in recorded["deltas"]) in lengths


async def test_an_interrupted_run_keeps_its_rows(tmp_path: Path) -> None:
    """A run that is broken off has every finished request on disk and says that it is not whole."""
    plan = slot_plan(quick("a"), quick("slow", ttft_ms={"value": 60000, "source": "made", "assumed": True}))

    class Stopper(Told):
        first = asyncio.Event()

        def turn(self, record: TurnRecord) -> None:
            super().turn(record)
            self.first.set()

    told = Stopper()
    running = asyncio.create_task(run_slot(plan, SlotOptions(out=tmp_path / "run"), told))
    await told.first.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    info = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert info["complete"] is False
    assert info["ended_at"] is not None
    kept = read_journal(tmp_path / "run" / "turns.jsonl").records
    assert kept == tuple(told.records)


def test_without_a_key_nothing_begins() -> None:
    """A live mode whose key is not in the environment is refused before anything is started."""
    config = Config.model_validate({"modes": ["anthropic/claude-opus-5-5"]})
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
        make_slot_plan(config, 1, variables={})
    assert make_slot_plan(config, 1, variables={"ANTHROPIC_API_KEY": "k" * 20}).modes


def test_a_mode_that_only_speaks_in_a_pipeline_is_refused() -> None:
    """A scripted stage has no wire to be asked over."""
    row = {"id": "own/s", "kind": "emulated", "provider": "x", "api": "scripted", "model": "m"}
    with pytest.raises(BadRequest, match="voicebench batch"):
        slot_plan(row)


def test_the_command_lines_say_over_the_config() -> None:
    """Modes, slots, seed and limit of the command line replace the config's; the seed modes are default."""
    base = Config.model_validate({"slots_ms": [300], "seed": 4})
    plain = slot_config(base, modes=None, slots_ms=None, max_tokens=700, system_prompt="s")
    assert (plain.modes, plain.slots_ms, plain.seed) == (SEED_MODES, (300,), 4)
    assert plain.conversation.max_tokens == 700
    asked = slot_config(
        base, modes=["openai/gpt-6-luna"], slots_ms=[450, 450], max_tokens=9, system_prompt="s", seed=8
    )
    assert (asked.modes, asked.slots_ms, asked.seed) == (("openai/gpt-6-luna",), (450,), 8)
    with pytest.raises(BadRequest, match="named twice"):
        slot_config(base, modes=["a/b", "a/b"], slots_ms=None, max_tokens=9, system_prompt="s")


async def test_counts_of_a_reply_are_those_of_its_mode(tmp_path: Path) -> None:
    """Without a fitting vocabulary characters share out the count; tokens of one delta count as several."""
    modes = [quick("blind", tokenizer=None), quick("burst", emulation={"tokens_per_event": 4})]
    told = await ran(slot_plan(*modes, requests=1), tmp_path / "run")
    blind, burst = sorted(told.records, key=lambda record: record.mode)
    assert blind.token_count == "characters, scaled to usage"
    assert sum(tokens for _, _, tokens in blind.deltas) == pytest.approx(40)
    assert len(burst.deltas) == 10
    assert [tokens for _, _, tokens in burst.deltas] == [4.0] * 10
    assert decode_rate_tok_s(burst) is not None


async def test_the_first_clause_is_a_whole_sentence(tmp_path: Path) -> None:
    """A reply's first sentence is ready once the next one has begun, and the record says when."""
    told = await ran(slot_plan(quick("a"), requests=1, max_tokens=60), tmp_path / "run")
    [record] = told.records
    assert record.anchor is Anchor.NONE
    assert record.speech_in_sample is False
    assert record.first_clause is not None
    assert (record.reply or "").startswith(record.first_clause)
    assert record.first_clause.endswith((".", "?", "!"))
    assert record.clause_ready_ns is not None
    assert clause_ready(record, record.clause_ready_ns)
    assert not clause_ready(record, record.clause_ready_ns - 1)
    there = delivered(record, record.clause_ready_ns)
    assert there is not None
    assert there.sentences is not None
    assert there.sentences >= 1


def test_the_seed_modes_are_the_default() -> None:
    """All four are in the catalogue, and are emulated."""
    assert all(isinstance(catalogue()[mode_id], Mode) for mode_id in SEED_MODES)
    assert {catalogue()[mode_id].kind for mode_id in SEED_MODES} == {"emulated"}


def test_a_missing_sdk_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Anthropic's SDK its modes are refused with what to install, the emulated ones included."""
    monkeypatch.setattr(registry, "_importable", lambda library: library != "anthropic")
    for mode_id in ("emulated/opus-4.6", "anthropic/claude-opus-5-5"):
        config = Config.model_validate({"modes": [mode_id]})
        with pytest.raises(MissingExtra, match=r"voicebench-testbed\[anthropic\]"):
            make_slot_plan(config, 1, variables={"ANTHROPIC_API_KEY": "k" * 20})
    assert make_slot_plan(Config.model_validate({"modes": ["emulated/gpt-5.3-codex"]}), 1, variables={})
