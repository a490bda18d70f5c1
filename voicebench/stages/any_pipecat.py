"""Any pipecat service by its dotted name: no code to write.

```yaml
asr:
  kind: pipecat
  class: pipecat.services.deepgram.stt.DeepgramSTTService
  api_key_env: DEEPGRAM_API_KEY
  settings: {model: nova-3}
```
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from voicebench.errors import BadRequest
from voicebench.plan.config import Conversation, Settings
from voicebench.plan.literal_keys import address_with_key, is_variable
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Needs, Plugin
from voicebench.stages.frame_tap import tapped
from voicebench.stages.llm import Tap
from voicebench.stages.llm_keys import guard, redact
from voicebench.stages.quiet import hush_pipecat
from voicebench.stages.service_clients import keep_home, tame
from voicebench.stages.shared import Shared, WorkLog

PREFIX = "pipecat."


class ServiceSettings(Settings):
    """Which class, and what it is made with."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    class_name: str = Field(alias="class")
    """The dotted name, e.g. pipecat.services.openai.stt.OpenAISTTService."""
    api_key_env: str | None = None
    """The environment variable whose value is given as `api_key`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of the class."""
    secret_arguments: dict[str, str] = Field(default_factory=dict)
    """Further arguments that are secret: the argument's name to the environment variable that holds it."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Fields of the class's own `Settings`."""
    sample_rate: int | None = None
    """For speech synthesis: the rate in Hz that the service speaks at; None: 24000."""

    @model_validator(mode="after")
    def _no_keys(self) -> Self:
        named = [self.api_key_env or "X", *self.secret_arguments.values()]
        if not all(map(is_variable, named)):
            raise ValueError(
                "api_key_env and secret_arguments: must be names of environment variables, not the keys"
            )
        return self


def needs(settings: ServiceSettings) -> Needs:
    """The keys that are named."""
    own = (settings.api_key_env,) if settings.api_key_env else ()
    return Needs(keys=(*own, *settings.secret_arguments.values()))


def checked(base: str) -> Callable[[ServiceSettings], None]:
    """Refuses a class that does not exist, cannot be imported, or is none of pipecat's `base` services, an
    address that a vendor's key does not belong to, and a retry that nobody would see."""

    def check(settings: ServiceSettings) -> None:
        for value in settings.arguments.values():
            if isinstance(value, str) and "://" in value:
                if address_with_key(value):
                    raise BadRequest(
                        f"{settings.class_name}: an address must hold no key or password.",
                        "Name its variable in api_key_env or secret_arguments.",
                    )
                keep_home(needs(settings).keys, value)
        if settings.arguments.get("retry_on_timeout"):
            raise BadRequest(
                f"{settings.class_name}: retry_on_timeout would hide a second request in the latency.",
                "Leave it out.",
            )
        found = find_class(settings.class_name)
        if not any(kind.__name__ == base for kind in found.__mro__):
            raise BadRequest(
                f"{settings.class_name} is no {base} of pipecat.",
                f"Name a class that is derived from {base}.",
            )

    return check


def by_segment(settings: ServiceSettings) -> bool:
    """Is the ASR one of pipecat's services that transcribe whole segments?"""
    return any(kind.__name__ == "SegmentedSTTService" for kind in find_class(settings.class_name).__mro__)


def find_class(dotted: str) -> type[Any]:
    """The class of that name.

    Raises BadRequest where there is no such module or class, naming near ones, or where the module wants
    a package that is not installed, naming pipecat's extra.
    """
    hush_pipecat()
    module_name, _, name = dotted.rpartition(".")
    if not module_name:
        raise BadRequest(f"{dotted!r} is no dotted class name, such as pipecat.services.x.stt.XSTTService.")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = str(error.name or "")
        if missing and (module_name == missing or module_name.startswith(f"{missing}.")):
            raise BadRequest(f"There is no module {missing!r}, asked for as {dotted!r}.") from None
        raise _wants_package(dotted, error) from None
    except Exception as error:
        # pipecat's modules raise a plain ImportError or Exception where their vendor's SDK is missing.
        raise _wants_package(dotted, error) from None
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        near = difflib.get_close_matches(name, classes, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise BadRequest(f"{module_name} has no class {name!r}.{hint}")
    return found


def _wants_package(dotted: str, error: BaseException) -> BadRequest:
    parts = dotted.split(".")
    vendor = parts[2] if dotted.startswith("pipecat.services.") and len(parts) > 3 else None
    remedy = f"Try:  pip install 'pipecat-ai[{vendor}]'" if vendor else "Install the package it needs."
    return BadRequest(f"{dotted} cannot be imported: {' '.join(str(error).split())[:200]}", remedy)


def make(service_class: type[Any], settings: ServiceSettings, shared: Shared, **more: Any) -> Any:
    """An instance of the class with key, arguments and settings; its SDK asks once and follows no redirect.

    Raises BadRequest where they do not fit, or where a vendor's key would go to another host.
    """
    arguments = {**settings.arguments, **more}
    if settings.api_key_env:
        arguments["api_key"] = shared.environment.get(settings.api_key_env, "")
        guard(arguments["api_key"])
    for name, variable in settings.secret_arguments.items():
        arguments[name] = shared.environment.get(variable, "")
        guard(arguments[name])
    own = getattr(service_class, "Settings", None)
    values = dict(settings.settings)
    if own is not None and values:
        known = [field.name for field in dataclasses.fields(own)]
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise BadRequest(
                    f"{service_class.__name__} has no setting {key!r}.{hint}", f"Known: {', '.join(known)}."
                )
        arguments["settings"] = own(**values)
    elif values:
        arguments.update(values)
    try:
        service = service_class(**arguments)
    except (TypeError, ValueError) as error:
        raise BadRequest(
            f"{service_class.__name__} cannot be made: {redact(' '.join(str(error).split()))[:300]}",
            "Correct `arguments` and `settings`.",
        ) from error
    tame(service, needs(settings).keys)
    return service


def build_asr(settings: ServiceSettings, shared: Shared, work: WorkLog) -> Any:
    """Any STT service."""
    return make(find_class(settings.class_name), settings, shared)


def build_tts(settings: ServiceSettings, shared: Shared, work: WorkLog) -> Any:
    """Any TTS service; the pipeline runs at `sample_rate`."""
    service = make(find_class(settings.class_name), settings, shared)
    if settings.sample_rate is not None:
        service.native_rate = settings.sample_rate
    return service


def build_llm(
    mode: Mode, settings: ServiceSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """Any LLM service, measured by its frames."""
    base = find_class(settings.class_name)
    service_class = tapped(base, tap, mode.model)
    fields = {field.name for field in dataclasses.fields(base.Settings)}
    given = {
        "model": mode.model,
        "system_instruction": conversation.system_prompt,
        "max_tokens": conversation.max_tokens,
        **settings.settings,
    }
    kept = {name: value for name, value in given.items() if name in fields or name in settings.settings}
    return make(service_class, settings.model_copy(update={"settings": kept}), shared)


ASR = Plugin(
    settings=ServiceSettings,
    build=build_asr,
    needs=needs,
    check=checked("STTService"),
    by_segment=by_segment,
    title="a pipecat STT service",
)
LLM = Plugin(
    settings=ServiceSettings,
    build=build_llm,
    needs=needs,
    check=checked("LLMService"),
    title="a pipecat LLM service",
)
TTS = Plugin(
    settings=ServiceSettings,
    build=build_tts,
    needs=needs,
    check=checked("TTSService"),
    title="a pipecat TTS service",
)
