"""The arms of the stack benchmark: plain pipecat, voicebench's stack, and that with one thing off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voicebench.models.resolve import resolve_piper, resolve_whisper
from voicebench.plan.config import Config, load_config

CONFIGS = Path(__file__).parents[2] / "configs"
TEN = (
    ("capital-of-france", "capital-of-france.wav"),
    ("clear-sky", "clear-sky.flac"),
    ("two-plus-two", "two-plus-two.wav"),
    ("spider-legs", "spider-legs.flac"),
    ("opposite-of-cold", "opposite-of-cold.opus"),
    ("months-in-a-year", "months-in-a-year.mp3"),
    ("frozen-water", "frozen-water.wav"),
    ("first-month", "first-month.wav"),
    ("capital-of-england", "capital-of-england.wav"),
    ("hours-in-a-day", "hours-in-a-day.wav"),
)
"""The ten short clips by which the stack is judged; bench.json holds the hash of each."""


def plain() -> Config:
    """pipecat's own services as they come, on the same models: nothing of ours but source and sink."""
    whisper = resolve_whisper("tiny.en").folder
    voice = resolve_piper("en_US-joe-medium").model
    assert whisper is not None
    assert voice is not None
    return Config.model_validate(
        {
            "name": "plain",
            "asr": {
                "kind": "pipecat",
                "class": "pipecat.services.whisper.stt.WhisperSTTService",
                "arguments": {"device": "cpu", "compute_type": "int8"},
                "settings": {"model": str(whisper), "language": "en"},
            },
            "turn": {"kind": "smart_turn", "silence_secs": 3.0},
            "tts": {
                "kind": "pipecat",
                "class": "pipecat.services.piper.tts.PiperTTSService",
                "arguments": {"download_dir": voice.parent},
                "settings": {"voice": "en_US-joe-medium"},
            },
            "hear": "clause",
        }
    )


def ours() -> Config:
    """voicebench's own stack, early work included."""
    return load_config(CONFIGS / "speculative.yaml")


OFF: dict[str, dict[str, Any]] = {
    "window off": {"asr": {"window": "full", "beam_size": 1}},
    "asr 2 threads": {"asr": {"cpu_threads": 2}},
    "clause off": {"clause": {"rule": "sentence"}},
    "early off": {"early": {"transcribe_after_ms": None, "warm_llm": False}},
    "warm off": {"early": {"warm_llm": False}},
    "trim off": {"tts": {"trim_leading_silence": False}},
    "tts 1 thread": {"tts": {"threads": 1}},
    "smart turn on": {"turn": {"kind": "smart_turn", "silence_secs": 3.0}},
}
"""What is changed, one thing at a time, from voicebench's stack."""


def without(name: str) -> Config:
    """Our stack with one thing off."""
    raw = ours().model_dump()
    for key, change in OFF[name].items():
        raw[key] = change if key == "turn" else {**raw[key], **change}
    return Config.model_validate({**raw, "name": name})


def arm(name: str) -> Config:
    """The configuration of the arm called so."""
    return plain() if name == "plain" else ours() if name == "voicebench" else without(name)
