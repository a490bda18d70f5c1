"""Sessions whose language model is the emulator, the other stages scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from tests.pipeline.driven import Driver, scripted
from voicebench.emulator.timing import TimingScript
from voicebench.pipeline.build import Stage
from voicebench.plan.config import Config
from voicebench.plan.modes import Mode

APIS = ("anthropic", "openai-chat", "openai-responses", "openai-responses-ws")
QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris, on the river Seine."
SCRIPTS = (
    TimingScript("quick", headers_ms=1.0, preamble_ms=1.0, first_text_ms=20.0, rate_tok_s=2000.0),
    TimingScript(
        "cached",
        headers_ms=1.0,
        preamble_ms=1.0,
        first_text_ms=20.0,
        rate_tok_s=2000.0,
        cache_read_tokens=40,
        cache_write_tokens=7,
    ),
)


class Listening(Protocol):
    """A server on this machine."""

    @property
    def port(self) -> int:
        """Where it takes connections."""


def emulated_mode(api: str, emulator: Listening, model: str, **fields: Any) -> Mode:
    """A mode over this API at the running emulator, or at another server."""
    path = "" if api == "anthropic" else "/v1"
    given = {
        "id": f"test/{api}",
        "kind": "emulated",
        "provider": "test",
        "api": api,
        "model": model,
        "settings": {"base_url": f"http://127.0.0.1:{emulator.port}{path}"},
    }
    return Mode.model_validate({**given, **fields})


class ModelDriver(Driver):
    """A driver that can let the service ask for another model from its next turn on."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.service: Any = None
        stage = self.specs.llm[self.mode.id]

        def build(*arguments: Any) -> Any:
            self.service = stage.plugin.build(*arguments)
            return self.service

        self.specs.llm[self.mode.id] = Stage(replace(stage.plugin, build=build), stage.settings)

    def ask_from_now_on(self, model: str) -> None:
        """The service's next request is for this model."""
        self.service._settings.model = model


def config_of(mode: Mode, **changes: Any) -> Config:
    """Scripted stages around this mode."""
    return scripted(
        **{"modes": (mode.id,), "own_modes": (mode,), "asr": {"text": QUESTION, "delay_ms": 10}, **changes}
    )


def made_of(entry: dict[str, Any], *members: Mode, route: bool = False) -> Config:
    """A configuration whose only mode is a set or a route over these."""
    base = config_of(members[0])
    key = "routes" if route else "sets"
    given = {**base.model_dump(), "own_modes": [one.model_dump() for one in members], "modes": [entry["id"]]}
    config = Config.model_validate({**given, key: [entry]})
    return config.model_copy(update={"own_modes": (config.own[entry["id"]],), "sets": (), "routes": ()})


@asynccontextmanager
async def talking_to(mode: Mode, **changes: Any) -> AsyncIterator[ModelDriver]:
    """A driver of this mode, closed afterwards."""
    async with running(ModelDriver(config_of(mode, **changes))) as driver:
        yield driver


Made = TypeVar("Made", bound=Driver)


@asynccontextmanager
async def running(driver: Made) -> AsyncIterator[Made]:
    """The driver, closed afterwards with all connections to the emulator."""
    try:
        yield driver
    finally:
        await driver.close()
        for made in driver.shared._made.values():
            await made.close()
        driver.shared.close()
