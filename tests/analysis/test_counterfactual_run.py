"""A prediction held against what really happens: two emulated modes in spoken turns on the same samples."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

from tests.cli.running import voicebench
from tests.pipeline.driven import clip
from tests.recorded import write_wav
from voicebench.analysis.changes import Turns
from voicebench.analysis.counterfactual import Published, predict_with_llm_of, predict_with_published
from voicebench.turns.records import Outcome
from voicebench.turns.run_folder import RunFolder

PACES = {"own/slow": (240.0, 70.0), "own/quick": (90.0, 600.0)}
"""Ms to the first text and tokens a second of each mode, as its figures are published."""
WITHIN_MS = 30.0
CONFIG = """\
name: two paces
modes: [own/slow, own/quick]
own_modes:
  - {id: own/slow, kind: emulated, provider: x, api: openai-chat, model: m, tokenizer: o200k,
     decode_rate_tok_s: {value: 70, source: made, assumed: true},
     ttft_ms: {value: 240, source: made, assumed: true}}
  - {id: own/quick, kind: emulated, provider: x, api: openai-chat, model: m, tokenizer: o200k,
     decode_rate_tok_s: {value: 600, source: made, assumed: true},
     ttft_ms: {value: 90, source: made, assumed: true}}
asr: {kind: scripted, delay_ms: 20, text: "What is the capital city of France?"}
tts: {kind: tone, first_byte_ms: 20, leading_silence_ms: 20}
turn: {kind: speech_timeout, speech_timeout_secs: 0.0}
vad: {kind: energy, start_secs: 0.1, stop_secs: 0.2}
hear: onset
calibration_turns: 0
warmup_turns: 0
turn_timeout_s: 4
"""


def test_a_mode_predicted_from_a_run_of_another_is_as_it_then_turns_out(tmp_path: Path) -> None:
    """From the turns of one mode, the median of the other comes out within 30 ms of its real turns: by its
    published figures alone, and by its own times on the same samples. In both directions."""
    (tmp_path / "two.yaml").write_text(CONFIG, "utf-8")
    samples = [write_wav(tmp_path / f"{seconds}.wav", clip(seconds)) for seconds in (0.3, 0.4)]
    options = ("--config", "two.yaml", "--repeats", "5", "--out", "run")
    done = voicebench("batch", *samples, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = RunFolder.open(tmp_path / "run").turns().records
    assert [record.outcome for record in records] == [Outcome.COMPLETED] * 20
    turns = {name: Turns([record for record in records if record.mode == name]) for name in PACES}
    for known, other in permutations(PACES, 2):
        published = predict_with_published(Published(other, *PACES[other], True), turns[known], 800.0)
        sampled = predict_with_llm_of(other, "LLM of the other", turns[known], turns[other], 800.0)
        backwards = predict_with_published(Published(known, *PACES[known], True), turns[other], 800.0)
        real = backwards.measured_p50_ms
        assert real is not None
        for found in (published, sampled):
            assert found.p50_ms is not None, found.reason
            assert found.measured_p50_ms is not None
            assert abs(found.measured_p50_ms - real) > 3 * WITHIN_MS, "the two modes are too alike to tell"
            assert abs(found.p50_ms - real) <= WITHIN_MS
