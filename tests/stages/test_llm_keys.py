"""Keys stay with their own address, and out of every text."""

from __future__ import annotations

import base64
from urllib.parse import quote

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from voicebench.stages.llm import classify, typed_problem
from voicebench.stages.llm_keys import Endpoint, endpoint_needs, guard, key_for, redact
from voicebench.stages.llm_openai import ChatSettings, endpoint_client
from voicebench.stages.shared import Shared

CANARY = "sk-canary-0Lq8/Zt+5wXe2RkV9uHd"


@pytest.mark.parametrize(
    ("address", "variable"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://eu.api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("http://127.0.0.1:8123/v1", None),
        ("http://[::1]:8123/v1", None),
        ("http://localhost:8123/v1", None),
    ],
)
def test_each_address_has_its_own_key(address: str, variable: str | None) -> None:
    """A vendor's address takes that vendor's variable, one on this machine none."""
    settings = Endpoint(base_url=address)
    assert settings.key_variable == variable
    assert endpoint_needs(settings).keys == ((variable,) if variable else ())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "https://gateway.example/v1"}, "name the variable that holds the key"),
        ({"base_url": "https://api.openai.com.evil.example/v1"}, "name the variable"),
        ({"base_url": "https://127.0.0.1.evil.example/v1"}, "name the variable"),
        ({"base_url": "https://evil.example", "api_key_env": "OPENAI_API_KEY"}, "belongs to api.openai.com"),
        ({"base_url": "http://127.0.0.1:1", "api_key_env": "ANTHROPIC_API_KEY"}, "belongs to api.anthropic"),
        ({"base_url": "https://api.groq.com", "api_key_env": "OPENAI_API_KEY"}, "belongs to api.openai.com"),
        ({"base_url": "http://api.openai.com/v1"}, "over https"),
        ({"base_url": "ftp://api.openai.com"}, "http or https"),
        ({"base_url": "https://user:secret@gateway.example"}, "no key or password"),
    ],
)
def test_a_key_goes_to_no_other_host(settings: dict[str, str], said: str) -> None:
    """A changed address never gets a vendor's key, nor does a plain connection, nor is one left unnamed."""
    with pytest.raises(ValidationError, match=said) as caught:
        Endpoint(**settings)
    assert "secret" not in str(caught.value.errors(include_input=False, include_url=False))


def test_another_host_takes_a_variable_of_its_own_or_none() -> None:
    """A gateway's key is named by the config; an empty name asks without a key."""
    assert Endpoint(base_url="https://gw.example", api_key_env="GW_KEY").key_variable == "GW_KEY"
    assert Endpoint(base_url="https://gw.example", api_key_env="").key_variable is None


async def test_nothing_of_the_environment_goes_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Organisation, project and custom headers that the SDK finds in the environment stay with its vendor."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-canary: custom-canary")
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(500)

    settings = ChatSettings(base_url="https://gw.example/v1", api_key_env="")
    client = endpoint_client(settings, key_for(settings, Shared(environment={"OPENAI_API_KEY": CANARY})))
    client._client._transport = httpx2.MockTransport(answer)
    client._client._mounts = {}
    async with client:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="m", messages=[])
    [request] = seen
    told = f"{request.url} {dict(request.headers)}"
    assert "canary" not in told
    assert request.headers["authorization"] == "Bearer none"


def forms(key: str) -> list[str]:
    """The key as it may turn up in a text."""
    raw = key.encode()
    return [
        key,
        quote(key, safe=""),
        key[5:13],
        base64.b64encode(raw).decode(),
        base64.b64encode(b"Bearer " + raw).decode(),
        base64.b64encode(b"x:" + raw + b":y").decode(),
        base64.urlsafe_b64encode(b"{" + raw).decode(),
    ]


@pytest.mark.parametrize("place", range(7))
def test_a_key_is_taken_out_in_every_form(place: int) -> None:
    """Plain, URL-encoded, in base64 at any alignment, or eight characters of it: none is left in a text."""
    guard(CANARY)
    form = forms(CANARY)[place]
    told = redact(f"before {form} after")
    assert "[key]" in told
    assert told.startswith("before ")
    assert told.endswith("after")
    left = told.removeprefix("before ").removesuffix(" after").replace("[key]", "")
    # In base64 a few characters are left of what stood before and behind the key.
    assert len(left) <= (0 if form in (CANARY, quote(CANARY, safe=""), CANARY[5:13]) else 14)


@given(st.text(alphabet="abc ", max_size=40))
def test_other_text_is_left_as_it_is(text: str) -> None:
    """What holds nothing of a key comes out unchanged."""
    guard(CANARY)
    assert redact(text) == text


@given(st.integers(0, len(CANARY) - 8), st.text(max_size=20), st.text(max_size=20))
def test_no_eight_characters_in_a_row_are_left(at: int, before: str, after: str) -> None:
    """Wherever a part of a key stands, no eight of its characters in a row come through."""
    guard(CANARY)
    told = redact(before + CANARY[at:] + after)
    assert not any(CANARY[start : start + 8] in told for start in range(len(CANARY) - 7))


def test_an_error_that_quotes_the_key_is_told_without_it() -> None:
    """Vendors repeat a wrong key in their answer: neither an error nor an event hands it on."""
    guard(CANARY)
    request = httpx2.Request("POST", "https://api.openai.com/v1/responses")
    message = f"Incorrect API key provided: {CANARY}."
    error = openai.AuthenticationError(
        message, response=httpx2.Response(401, request=request), body={"message": message}
    )
    status, detail = classify(error)
    assert (status, CANARY[:8] in detail, CANARY[-8:] in detail) == ("failed", False, False)
    assert "Incorrect API key" in detail
    assert CANARY not in typed_problem({"code": "invalid_api_key", "message": message})[1]


def test_a_connection_error_names_its_cause() -> None:
    """The SDK's bare words get the system's reason behind them."""
    request = httpx2.Request("POST", "https://api.openai.com/v1/responses")
    error = openai.APIConnectionError(request=request)
    error.__cause__ = OSError(-3, "Temporary failure in name resolution")
    assert "name resolution" in classify(error)[1]
