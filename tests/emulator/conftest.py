"""One emulator for all tests of this room, and the official SDKs' clients pointed at it, without retries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import anthropic
import openai
import pytest

from tests.emulator.readers import Clients
from voicebench.emulator.process import EmulatorProcess, start
from voicebench.emulator.timing import TimingScript

QUICK = TimingScript("quick", headers_ms=1.0, preamble_ms=1.0, first_text_ms=2.0, rate_tok_s=5000.0)
"""A model that answers at once."""
THINKER = TimingScript(
    "thinker",
    headers_ms=1.0,
    preamble_ms=1.0,
    first_text_ms=6.0,
    reasoning_tokens=12,
    reasoning_gap_ms=4.0,
    rate_tok_s=5000.0,
)
"""A model that thinks for 12 tokens first."""


@pytest.fixture(scope="session")
def emulator() -> Iterator[EmulatorProcess]:
    """The emulator, in a process of its own."""
    with start(scripts=[QUICK, THINKER], seed=7) as running:
        yield running


@pytest.fixture
def claude(emulator: EmulatorProcess) -> Iterator[anthropic.Anthropic]:
    """Anthropic's client."""
    with anthropic.Anthropic(api_key="k", base_url=emulator.base_url_anthropic, max_retries=0) as client:
        yield client


@pytest.fixture
async def async_claude(emulator: EmulatorProcess) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Anthropic's asynchronous client."""
    base_url = emulator.base_url_anthropic
    async with anthropic.AsyncAnthropic(api_key="k", base_url=base_url, max_retries=0) as client:
        yield client


@pytest.fixture
def gpt(emulator: EmulatorProcess) -> Iterator[openai.OpenAI]:
    """OpenAI's client."""
    with openai.OpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=0) as client:
        yield client


@pytest.fixture
async def async_gpt(emulator: EmulatorProcess) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's asynchronous client."""
    async with openai.AsyncOpenAI(api_key="k", base_url=emulator.base_url_openai, max_retries=0) as client:
        yield client


@pytest.fixture
def clients(claude: anthropic.Anthropic, gpt: openai.OpenAI) -> Clients:
    """Both clients, asked in one form."""
    return Clients(claude, gpt)
