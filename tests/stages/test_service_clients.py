"""The SDK clients inside pipecat's own services ask once, follow no redirect, and keep a vendor's key."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from tests.stages.asked import QUESTION
from voicebench.emulator.process import EmulatorProcess
from voicebench.errors import BadRequest
from voicebench.plan.config import Conversation, validated
from voicebench.plan.modes import Mode
from voicebench.stages.any_pipecat import LLM, ServiceSettings, build_asr, build_llm, build_tts
from voicebench.stages.llm import Tap
from voicebench.stages.shared import Shared, WorkLog

OPENAI = "pipecat.services.openai.llm.OpenAILLMService"
ANTHROPIC = "pipecat.services.anthropic.llm.AnthropicLLMService"
SHARED = Shared(environment={"SOME_KEY": "a-key", "OPENAI_API_KEY": "sk-made-0Qz7Vw", "GROQ_API_KEY": "gk-9"})


def given(name: str, key: str = "SOME_KEY", **more: Any) -> ServiceSettings:
    """The settings of a class as a file would give them."""
    return validated(ServiceSettings, {"class": name, "api_key_env": key, **more}, "here")


async def asked_once(service_class: str, port: int, model: str) -> BaseException:
    """What the service's own client raises when it asks this model of the emulator."""
    path = "" if service_class == ANTHROPIC else "/v1"
    mode = Mode(id="m", kind="live", provider="x", api="pipecat", model=model)
    arguments: dict[str, Any] = {}
    if service_class == ANTHROPIC:
        client = anthropic.AsyncAnthropic(api_key="a-key", base_url=f"http://127.0.0.1:{port}")
        arguments["client"] = client
    else:
        arguments["base_url"] = f"http://127.0.0.1:{port}{path}"
    service = build_llm(mode, given(service_class, arguments=arguments), Conversation(), SHARED, Tap())
    said = [{"role": "user", "content": QUESTION}]
    asking = service._client
    create = asking.beta.messages.create if service_class == ANTHROPIC else asking.chat.completions.create
    try:
        with pytest.raises((openai.APIError, anthropic.APIError)) as caught:
            await create(model=model, messages=said, max_tokens=9, stream=True)
    finally:
        await service._client.close()
        await service.cleanup()
    return caught.value


@pytest.mark.parametrize("service_class", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize(("fault", "status"), [("429", 429), ("503", 503), ("redirect", 307)])
async def test_a_service_of_pipecats_asks_once(
    emulator: EmulatorProcess, service_class: str, fault: str, status: int
) -> None:
    """A busy vendor is not asked again behind our back, and a redirect is not followed with the key."""
    before = len(emulator.requests())
    error = await asked_once(service_class, emulator.port, f"quick!{fault}")
    assert getattr(error, "status_code", None) == status
    seen = [emulator.record(request)["status"] for request in emulator.requests()[before:]]
    assert seen == [status]


async def test_recognisers_and_voices_ask_once_too() -> None:
    """The SDK clients of hosted STT and TTS services are tamed alike."""
    stt = build_asr(given("pipecat.services.openai.stt.OpenAISTTService"), SHARED, WorkLog())
    tts = build_tts(given("pipecat.services.openai.tts.OpenAITTSService"), SHARED, WorkLog())
    for service in (stt, tts):
        assert service._client.max_retries == 0
        assert service._client._client.follow_redirects is False
        await service._client.close()
        await service.cleanup()


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ("OPENAI_API_KEY", "https://gateway.example/v1"),
        ("OPENAI_API_KEY", "https://api.openai.com.evil.example/v1"),
        ("OPENAI_API_KEY", "http://127.0.0.1:9/v1"),
        ("GROQ_API_KEY", "https://api.openai.com/v1"),
        ("OPENAI_API_KEY", "http://api.openai.com/v1"),
    ],
)
def test_a_vendors_key_goes_to_no_other_address_of_a_service(key: str, address: str) -> None:
    """A changed address, or an open connection, never gets a vendor's key: it is refused with the plan."""
    with pytest.raises(BadRequest, match=r"belongs to|over https"):
        LLM.check(given(OPENAI, key, arguments={"base_url": address}))
    with pytest.raises(BadRequest, match=r"belongs to|over https"):
        LLM.check(given(OPENAI, arguments={"base_url": address}, secret_arguments={"api_secret": key}))
    LLM.check(given(OPENAI, "SOME_KEY", arguments={"base_url": address}))


def test_an_address_from_the_environment_gets_no_vendors_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the SDK itself takes another address from the environment, the vendor's key is not sent there."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    mode = Mode(id="m", kind="live", provider="x", api="pipecat", model="m")
    with pytest.raises(BadRequest, match=r"belongs to api\.openai\.com") as caught:
        build_llm(mode, given(OPENAI, "OPENAI_API_KEY"), Conversation(), SHARED, Tap())
    assert "sk-made" not in str(caught.value)


def test_a_retry_that_a_service_would_make_unseen_is_refused() -> None:
    """`retry_on_timeout` would hide a second request in the latency."""
    with pytest.raises(BadRequest, match="retry_on_timeout"):
        LLM.check(given(OPENAI, arguments={"retry_on_timeout": True}))
