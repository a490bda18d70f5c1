"""A key that somebody writes into a configuration, which is kept with each run: refused, and not repeated."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.keys_and_text.canary import CANARY, leaks
from voicebench.__main__ import main
from voicebench.errors import MissingKey
from voicebench.plan import registry
from voicebench.plan.config import Config, validated
from voicebench.plan.literal_keys import literal_key
from voicebench.stages.any_pipecat import ServiceSettings, make, needs
from voicebench.stages.llm_keys import redact
from voicebench.stages.shared import Shared

SAMPLE = Path(__file__).parents[2] / "audio_samples" / "yes.wav"
MODE = """\
asr: {{kind: scripted}}
tts: {{kind: tone}}
modes: [x/y]
own_modes:
- {{id: x/y, kind: live, provider: x, api: openai-chat, model: m, settings: {{{0}}}, options: {{{1}}}}}
"""
URL = "base_url: 'http://127.0.0.1:9/v1'"
STT = (
    "asr: {{kind: pipecat, class: pipecat.services.openai.stt.OpenAISTTService, {0}}}\ntts: {{kind: tone}}\n"
)
KEY = f"'{CANARY}'"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (STT.format(f"arguments: {{api_key: {KEY}}}"), "api_key"),
        (STT.format(f"settings: {{extra: [{{Authorization: 'Bearer {CANARY}'}}]}}"), "Authorization"),
        (STT.format(f"arguments: {{aws_secret_access_key: {KEY}}}"), "aws_secret_access_key"),
        (STT.format(f"arguments: {{token: {KEY}}}"), "token"),
        (STT.format("arguments: {password: 4711}"), "password"),
        (STT.format(f"arguments: {{url: 'wss://gw.example/?api_key={CANARY}'}}"), "address"),
        (STT.format(f"api_key_env: {KEY}"), "api_key_env"),
        (STT.format(f"secret_arguments: {{x: {KEY}}}"), "secret_arguments"),
        (STT.format(f"api_key: {KEY}"), "api_key"),
        (MODE.format(URL, f"extra_headers: {{x-api-key: {KEY}}}"), "x-api-key"),
        (MODE.format(f"{URL}, extra: {{extra_query: {{access_token: {KEY}}}}}", ""), "access_token"),
        (MODE.format(f"{URL}, api_key_env: {KEY}", ""), "api_key_env"),
        (
            MODE.format("base_url: 'https://me:sk-Qz7Vw3+Kt9xGh5RbN2@gw.example', api_key_env: X", ""),
            "base_url",
        ),
        (MODE.format("base_url: 'https://gw.example?api_key=9xGh5RbN2mY', api_key_env: X", ""), "base_url"),
    ],
)
def test_a_key_in_a_configuration_is_refused_unseen(
    config: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever it stands, the run is refused before anything is written, by the name of the setting alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keyed.yaml").write_text(config, "utf-8")
    assert main(["batch", str(SAMPLE), "--config", "keyed.yaml"]) == 2
    told = capsys.readouterr()
    assert leaks(told.out + told.err) == []
    assert named in told.err
    assert os.listdir(tmp_path) == ["keyed.yaml"]


def test_what_only_sounds_like_a_key_is_let_through() -> None:
    """Limits of tokens, cache keys, names of variables and a tool's own parameters are no keys."""
    parameters = {"type": "object", "properties": {"password": {"type": "string"}}}
    harmless: dict[str, Any] = {
        "options": {"max_tokens": 5, "prompt_cache_key": "voice", "token_budget": "low"},
        "settings": {"api_key_env": "MY_KEY", "secret_arguments": {"password": "MY_PASSWORD"}},
        "tools": [{"parameters": parameters}],
    }
    assert literal_key(harmless) is None
    assert literal_key({"a": [{"Api-Key": "x"}]}) == "Api-Key"
    assert validated(Config, {}, "here") == Config()


def test_a_secret_argument_comes_from_the_environment() -> None:
    """It is asked for by the variable's name, given to the class, and taken out of every text from now on."""
    given = ServiceSettings.model_validate({"class": "x.Y", "secret_arguments": {"password": "MY_PASSWORD"}})
    with pytest.raises(MissingKey, match="MY_PASSWORD"):
        registry.require(needs(given), "ASR", {})
    registry.require(needs(given), "ASR", {"MY_PASSWORD": "x"})
    made = make(SimpleNamespace, given, Shared(environment={"MY_PASSWORD": "pw-7Hn2Kq9Zt4"}))
    assert made.password == "pw-7Hn2Kq9Zt4"
    assert "2Kq9Zt4" not in redact("it is pw-7Hn2Kq9Zt4.")
