"""The connections that the sessions of a run share: closed when the run ends, whatever one of them does."""

from __future__ import annotations

import pytest

from voicebench.stages import any_pipecat, llm_anthropic, llm_openai
from voicebench.stages.llm_keys import redact
from voicebench.stages.shared import Shared


async def test_both_sdks_clients_are_closed_at_the_end() -> None:
    """A client of each SDK, one inside a pair, and one that cannot be closed: all are tried, none raises."""
    shared = Shared()
    chat = llm_openai.ChatSettings(base_url="http://127.0.0.1:9/v1")
    messages = llm_anthropic.AnthropicSettings(base_url="http://127.0.0.1:9")

    class Stubborn:
        tried = False

        async def close(self) -> None:
            """Fail."""
            self.tried = True
            raise OSError("already gone")

    gpt = llm_openai.shared_client(chat, shared)
    claude = shared.get(("a",), lambda: llm_anthropic.endpoint_client(messages, "k"))
    address, local = shared.get(("b",), lambda: ("address", llm_openai.endpoint_client(chat, "k")))
    stubborn = shared.get(("c",), Stubborn)
    model = shared.get(("d",), object)
    await shared.close_clients()
    assert gpt.is_closed()
    assert claude.is_closed()
    assert local.is_closed()
    assert address == "address"
    assert stubborn.tried
    assert shared.get(("d",), object) is model
    shared.close()


@pytest.mark.parametrize("make", ["openai", "anthropic"])
async def test_no_sdk_client_follows_a_redirect(make: str) -> None:
    """A key given for one host is never sent along to the place that a redirect names."""
    if make == "openai":
        client = llm_openai.endpoint_client(llm_openai.ChatSettings(base_url="http://127.0.0.1:9/v1"), "k")
    else:
        settings = llm_anthropic.AnthropicSettings(base_url="http://127.0.0.1:9")
        client = llm_anthropic.endpoint_client(settings, "k")
    assert client._client.follow_redirects is False
    assert client.max_retries == 0
    await client.close()


def test_the_key_of_any_pipecat_service_is_guarded_too() -> None:
    """A service that quotes its key when it cannot be made does not get it into the error."""
    key = "pc-0Zr8Tk3Wq6Lm"

    class Quotes:
        def __init__(self, api_key: str) -> None:
            raise ValueError(f"the key {api_key} is refused")

    given = any_pipecat.ServiceSettings(**{"class": "x.Quotes", "api_key_env": "K"})
    with pytest.raises(Exception, match="cannot be made") as caught:
        any_pipecat.make(Quotes, given, Shared(environment={"K": key}))
    assert key[:8] not in str(caught.value)
    assert key[-8:] not in str(caught.value)
    assert key not in redact(f"x {key}")
