"""The examples in configs/: each is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from voicebench.audio.manifest import Sample
from voicebench.errors import MissingKey
from voicebench.plan.config import PACKAGED_CONFIG, load_config
from voicebench.runner import make_plan

FOLDER = Path(__file__).parents[1] / "configs"
CONFIGS = sorted(FOLDER.glob("*.yaml"))
KEYS = {
    "asr-deepgram": "DEEPGRAM_API_KEY",
    "asr-deepgram-flux-own-turns": "DEEPGRAM_API_KEY",
    "llm-pipecat-class": "GOOGLE_API_KEY",
    "tts-cartesia": "CARTESIA_API_KEY",
    "tts-elevenlabs": "ELEVENLABS_API_KEY",
}
SAMPLE = Sample(id="one", path=FOLDER / "no-audio-is-read-for-a-plan.wav")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_example_is_a_plan_or_names_the_key_it_needs(path: Path) -> None:
    """Every example configuration makes a plan, or is refused with the variable that must hold its key."""
    config = load_config(path)
    if path.stem in KEYS:
        with pytest.raises(MissingKey) as refused:
            make_plan(config, [SAMPLE], where=path.name, variables={})
        assert refused.value.variable == KEYS[path.stem]
        assert KEYS[path.stem] in refused.value.remedy
    else:
        plan = make_plan(config, [SAMPLE], where=path.name, variables={})
        assert [turn.mode for turn in plan.turns] == list(config.modes)


def test_the_installed_default_is_that_of_the_checkout() -> None:
    """Outside a checkout the same tuned stack runs: the two files are the same to the byte."""
    assert PACKAGED_CONFIG.read_bytes() == (FOLDER / "default.yaml").read_bytes(), (
        "copy configs/default.yaml to voicebench/plan/default.yaml"
    )


def test_every_plug_point_has_an_example() -> None:
    """There is an example for each of ASR, LLM, TTS and turn detection."""
    assert {path.stem.split("-")[0] for path in CONFIGS} >= {"asr", "llm", "tts", "turn", "default"}
