"""The arms of the stack benchmark: plain pipecat, voicebench's stack, and that with one setting off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voicebench.models.resolve import resolve_piper, resolve_whisper
from voicebench.plan.config import Config, load_config
from voicebench.plan.modes import Mode, find_mode

CONFIGS = Path(__file__).parents[2] / "configs"
TEN = (
    "capital-of-france",
    "clear-sky",
    "two-plus-two",
    "spider-legs",
    "opposite-of-cold",
    "months-in-a-year",
    "frozen-water",
    "first-month",
    "capital-of-england",
    "hours-in-a-day",
)
"""The ten short clips by which the stack is judged; bench.json names each one's file and its hash."""


def plain() -> Config:
    """pipecat's own services as they come, on the same models: nothing of ours but source, sink and clock.

    WhisperSTTService and PiperTTSService with their own loading, threads, beam and 30 s window; Smart Turn
    with its own waits; sentences as pipecat cuts them; RTVI on, 40 ms chunks and 24 kHz out. Two things are
    in its favour: Whisper's weights are read as 8-bit integers as ours are (its default would be 32-bit
    floats on this kind of machine), and pipecat's metrics are off. The language model is the same server
    with the same request for all arms.
    """
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
            "pipecat": {
                "rtvi": True,
                "process_events": True,
                "audio_downstream": True,
                "out_chunk_ms": 40,
            },
        }
    )


def ours() -> Config:
    """voicebench's own stack as `voicebench batch` runs it, on the local model alone."""
    default = load_config(CONFIGS / "default.yaml")
    return default.model_copy(update={"name": "voicebench", "modes": plain().modes, "samples_per_mode": {}})


def _local(**settings: Any) -> list[Mode]:
    """The local mode with other settings of its server, as `own_modes` takes it."""
    mode = find_mode(plain().modes[0], {})
    return [mode.model_copy(update={"settings": {**mode.settings, **settings}})]


OFF: dict[str, dict[str, Any]] = {
    "short window": {"asr": {"window": "full", "beam_size": 1}},
    "early transcription": {"early": {"transcribe_after_ms": None}},
    "silence by level": {"early": {"silence": "vad", "transcribe_after_ms": 64}},
    "early at 40 ms (60)": {"early": {"transcribe_after_ms": 60}},
    "first clause": {"clause": {"rule": "sentence"}},
    "first clause cut (natural)": {"clause": {"rule": "natural"}},
    "voice in pieces": {"tts": {"pieces": False}},
    "trimmed silence": {"tts": {"trim_leading_silence": False}},
    "asr on 1 thread (2)": {"asr": {"cpu_threads": 2}},
    "tts on 2 threads (1)": {"tts": {"threads": 1}},
    "tts does not spin (spins)": {"tts": {"spin": True}},
    "llm on 2 threads (1)": {"own_modes": _local(threads=1)},
    "llm as others (niceness 10)": {"own_modes": _local(niceness=10)},
    "frames spared (sent on)": {"pipecat": {"process_events": True, "audio_downstream": True}},
    "wait of 0.2 s (0.35)": {"vad": {"stop_secs": 0.35}},
    "vad only (Smart Turn)": {"turn": {"kind": "smart_turn", "silence_secs": 3.0}},
}
"""What is changed, one setting at a time, from voicebench's stack. With early transcription all goes that is
begun on it."""

AHEAD = ("speculate_llm", "prefetch_tts")
"""The further steps of early work, each resting on the one before: a model asked ahead (in place of warming
its prompt), its clause spoken ahead."""


def changes() -> dict[str, dict[str, Any]]:
    """By the arm's name, what is changed from voicebench's stack: each setting off, and those that it has off
    by itself on."""
    early = ours().early.model_dump()
    on = [key for key in AHEAD if early[key]]
    found = dict(OFF)
    for place, key in enumerate(AHEAD):
        if key in on:
            found[key] = {"early": dict.fromkeys(AHEAD[place:], False)}
        else:
            steps = AHEAD[: place + 1]
            found[f"with {' and '.join(steps)}"] = {"early": dict.fromkeys(steps, True)}
    return found


def off_arms() -> list[str]:
    """The names of the arms with one setting changed."""
    return list(changes())


def without(name: str) -> Config:
    """Our stack with one setting changed. Raises KeyError where there is no arm of that name."""
    raw = ours().model_dump()
    for key, part in changes()[name].items():
        raw[key] = part if key in ("turn", "own_modes") else {**raw[key], **part}
    if raw["early"]["transcribe_after_ms"] is None:
        raw["early"] = {key: False if value is True else value for key, value in raw["early"].items()}
    return Config.model_validate({**raw, "name": name})


def arm(name: str) -> Config:
    """The configuration of the arm called so, with as little said of each reply as tells all of its latency:
    the next turn begins when its speech is made and has begun to sound."""
    found = plain() if name == "plain" else ours() if name == "voicebench" else without(name)
    return found.model_copy(update={"hear": "made"})
