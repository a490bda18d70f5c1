"""A whole turn of a pipeline whose language model is emulated at its published speed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import voicebench

SAMPLES = Path(__file__).parents[2] / "audio_samples"
CONFIG = """\
name: emulated
modes: [emulated/opus-4.6-fast, own/let-down, own/ws]
own_modes:
  - {id: own/let-down, kind: emulated, provider: x, api: anthropic, model: m, options: {speed: fast},
     tokenizer: o200k, emulation: {fault: asked-not-served},
     decode_rate_tok_s: {value: 900, source: made, assumed: true},
     ttft_ms: {value: 5, source: made, assumed: true}}
  - {id: own/ws, kind: emulated, provider: x, api: openai-responses-ws, model: m, tokenizer: o200k,
     options: {service_tier: fast}, decode_rate_tok_s: {value: 900, source: made, assumed: true},
     ttft_ms: {value: 5, source: made, assumed: true}}
asr: {kind: scripted, delay_ms: 20, text: "What is the capital city of France?"}
tts: {kind: tone, first_byte_ms: 10, leading_silence_ms: 20}
turn: {kind: speech_timeout, speech_timeout_secs: 0.0}
hear: onset
calibration_turns: 0
warmup_turns: 0
"""


def test_emulated_modes_run_in_the_pipeline(tmp_path: Path) -> None:
    """Turns complete at the emulated speed with usage, served speed and price; another speed than asked is
    flagged and stays out of the statistics; no key is needed."""
    (tmp_path / "c.yaml").write_text(CONFIG, "utf-8")
    done = voicebench(
        *("batch", SAMPLES / "capital-of-france.wav", "--config", "c.yaml", "--out", "run", "--json"),
        cwd=tmp_path,
        ANTHROPIC_API_KEY="",
        OPENAI_API_KEY="",
    )
    assert done.returncode == 0, done.stderr
    rows = {
        row["mode"]: row
        for row in map(json.loads, (tmp_path / "run" / "turns.jsonl").read_text("utf-8").splitlines())
    }
    fast, down, socket = rows["emulated/opus-4.6-fast"], rows["own/let-down"], rows["own/ws"]
    assert {row["outcome"] for row in rows.values()} == {"completed"}
    assert fast["served"]["speed"] == "fast"
    assert fast["model"] == "claude-opus-4-6"
    assert fast["token_count"] == "o200k, equal to usage"
    assert fast["usage"]["output_tokens"] == sum(tokens for _, _, tokens in fast["deltas"])
    assert fast["usd"] > 0
    assert fast["request_id"]
    assert fast["marks_ns"]["llm_first_text"] - fast["marks_ns"]["llm_request"] >= 200_000_000
    assert fast["answer_correct"] is None
    assert "asked_not_served" in down["flags"]
    # A busy machine may limit the client; of the mode itself there is nothing to flag.
    assert set(socket["flags"]) <= {"client_limited", "late_chunk"}
    assert socket["new_connection"] is False
    report = json.loads(done.stdout)
    excluded = {entry["mode"]: entry["voice_to_voice_ms"]["excluded"] for entry in report["modes"]}
    limited = {mode: int("client_limited" in row["flags"]) for mode, row in rows.items()}
    assert excluded == {**limited, "own/let-down": 1}
    assert {entry["kind"] for entry in report["modes"]} == {"emulated"}
