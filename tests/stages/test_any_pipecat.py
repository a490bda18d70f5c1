"""Any pipecat service by its name: what is wrong with the name or the settings is said in words."""

from __future__ import annotations

from typing import Any

import pytest

from voicebench.errors import BadRequest
from voicebench.plan.config import Conversation, validated
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Plugin
from voicebench.stages.any_pipecat import (
    ASR,
    ServiceSettings,
    build_asr,
    build_llm,
    build_tts,
    find_class,
    make,
    needs,
)
from voicebench.stages.any_pipecat import LLM as LLM_PLUGIN
from voicebench.stages.any_pipecat import TTS as TTS_PLUGIN
from voicebench.stages.llm import Tap
from voicebench.stages.shared import Shared, WorkLog

STT = "pipecat.services.openai.stt.OpenAISTTService"
TTS = "pipecat.services.openai.tts.OpenAITTSService"
LLM = "pipecat.services.openai.llm.OpenAILLMService"


def settings(name: str, **more: Any) -> ServiceSettings:
    """The settings of a class as a file would give them."""
    return validated(ServiceSettings, {"class": name, "api_key_env": "SOME_KEY", **more}, "here")


SHARED = Shared(environment={"SOME_KEY": "a-key"})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("OpenAISTTService", "no dotted class name"),
        ("pipecat.services.nobody.stt.NobodySTTService", "no module 'pipecat.services.nobody'"),
        ("pipecat.services.openai.stt.OpenAISTService", "Did you mean OpenAISTTService"),
        ("no_such_package.stt.X", "no module 'no_such_package'"),
        ("pipecat.services.openai.stt.logger", "has no class"),
    ],
)
def test_a_name_that_is_none_is_told(name: str, words: str) -> None:
    """A name without dots, of no module, near a class, or of something else is refused in words."""
    with pytest.raises(BadRequest, match=words):
        find_class(name)


@pytest.mark.parametrize(
    ("plugin", "name", "base"),
    [(ASR, TTS, "STTService"), (LLM_PLUGIN, STT, "LLMService"), (TTS_PLUGIN, "pathlib.Path", "TTSService")],
)
def test_a_class_of_another_kind_is_refused_early(plugin: Plugin, name: str, base: str) -> None:
    """A voice where a recogniser is wanted, or no service at all, is refused before anything is built."""
    with pytest.raises(BadRequest, match=f"{name} is no {base} of pipecat"):
        plugin.check(settings(name))


def test_a_class_of_the_right_kind_is_accepted() -> None:
    """Each plug point takes its own kind of service."""
    ASR.check(settings(STT))
    LLM_PLUGIN.check(settings(LLM))
    TTS_PLUGIN.check(settings(TTS))


def test_a_service_whose_package_is_missing_names_what_to_install() -> None:
    """A vendor whose SDK is not there is asked for with pipecat's own extra."""
    with pytest.raises(BadRequest) as caught:
        find_class("pipecat.services.google.stt.GoogleSTTService")
    assert "cannot be imported" in str(caught.value)
    assert "pipecat-ai[google]" in caught.value.remedy


def test_a_key_is_named_and_needed_before_anything_is_built() -> None:
    """The variable that holds the key is what the plug-in needs; without one nothing is needed."""
    assert needs(settings(STT)).keys == ("SOME_KEY",)
    assert needs(validated(ServiceSettings, {"class": STT}, "here")).keys == ()


async def test_each_kind_of_service_can_be_built() -> None:
    """An STT, a TTS and an LLM service are made with their key and settings, without code."""
    asr = build_asr(settings(STT, settings={"model": "whisper-1"}), SHARED, WorkLog())
    assert asr._settings.model == "whisper-1"
    tts = build_tts(settings(TTS, settings={"voice": "alloy"}, sample_rate=24000), SHARED, WorkLog())
    assert tts.native_rate == 24000
    mode = Mode(id="m", kind="live", provider="x", api="pipecat", model="gpt-x")
    llm = build_llm(mode, settings(LLM), Conversation(max_tokens=7), SHARED, Tap())
    assert llm._settings.model == "gpt-x"
    assert llm._settings.max_tokens == 7
    for service in (asr, tts, llm):
        await service.cleanup()


async def test_a_setting_that_the_class_does_not_have_names_the_nearest() -> None:
    """A mistyped setting is refused with the class, what was meant and what there is."""
    with pytest.raises(BadRequest) as caught:
        make(find_class(STT), settings(STT, settings={"modell": "x"}), SHARED)
    assert "OpenAISTTService has no setting 'modell'. Did you mean 'model'?" in str(caught.value)
    assert "language" in caught.value.remedy


async def test_an_argument_that_the_class_does_not_take_is_told() -> None:
    """What the class itself refuses is said in its words, with where to correct it."""

    class Picky:
        def __init__(self, **arguments: Any) -> None:
            raise TypeError(f"unexpected arguments {sorted(arguments)}")

    with pytest.raises(BadRequest, match=r"Picky cannot be made: unexpected arguments"):
        make(Picky, settings("a.B", arguments={"speed": 3}), SHARED)


def test_a_service_needs_a_class() -> None:
    """Without `class` nothing can be built, and the key is named."""
    with pytest.raises(BadRequest, match="class"):
        validated(ServiceSettings, {"settings": {}}, "c.yaml")
