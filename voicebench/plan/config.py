"""What a run is asked to do: frozen settings from YAML, checked before anything is loaded."""

from __future__ import annotations

import difflib
import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from voicebench.errors import BadRequest
from voicebench.plan.literal_keys import literal_key
from voicebench.plan.modes import Mode, find_mode
from voicebench.plan.sets import CANDIDATES, CandidateSet, Route, composed
from voicebench.plan.settings import PluginSpec as PluginSpec
from voicebench.plan.settings import Settings as Settings
from voicebench.plan.tools import Tool
from voicebench.plan.yaml_text import plain_yaml

Model = TypeVar("Model", bound=BaseModel)

Hear = Literal["onset", "clause", "reply", "made"]
Pace = Literal["real", "tail"]

_MOST_BYTES = 512 << 10

PACKAGED_CONFIG = Path(__file__).with_name("default.yaml")
"""configs/default.yaml as it is installed, for use outside a checkout."""

SYSTEM_PROMPT = (
    "You are a helpful voice assistant. Answer in one short spoken sentence, with the answer first. "
    "No lists, no markdown, no emoji."
)


class Vad(Settings):
    """Voice activity detection: at each moment, is there a voice?"""

    kind: Literal["silero", "energy"] = "silero"
    """Silero as pipecat ships it, or plain energy (for tones and calibration)."""
    start_secs: float = Field(0.2, ge=0.0, le=2.0)
    """Speech must last this long before it counts."""
    stop_secs: float = Field(0.2, ge=0.0, le=5.0)
    """Silence must last this long before speech counts as ended: the configured part of `endpointing`."""
    confidence: float = Field(0.7, gt=0.0, lt=1.0)
    min_volume: float = Field(0.6, ge=0.0, le=1.0)


class Clause(Settings):
    """When the first piece of a reply goes to speech synthesis; the rest goes sentence by sentence."""

    rule: Literal["sentence", "natural", "words"] = "sentence"
    """`sentence`: as pipecat does. `natural`: at the first natural break. `words`: there, or after
    `most_words` where no break comes, before a word that begins a phrase if there is one in their second
    half; such a cut leaves a seam in the prosody."""
    least_words: int = Field(2, ge=1, le=20)
    """A break before so many words does not count."""
    most_words: int = Field(6, ge=1, le=50)


class Early(Settings):
    """Work begun before the turn has ended, and dropped where the person goes on."""

    transcribe_after_ms: float | None = Field(None, ge=10.0, le=2000.0)
    """Transcription begins after so much silence; the detector's stop then only confirms it. None: at the
    stop. Needs an ASR that works on whole segments on this machine (`whisper`)."""
    silence: Literal["vad", "level"] = "vad"
    """By what that silence is known. `vad`: by the detector alone. `level`: as well where the level stays
    20 dB below the person's loudest, which the detector notices 60 to 100 ms later; in noise that is louder
    the detector decides. It begins in vain more often: at any gap in the speech that is as long."""
    warm_llm: bool = False
    """Early transcripts are read into the local model's prompt cache, those that are dropped as well: the
    person's words go on from them. Nothing is generated, and no paid model is asked. Where the model is asked
    ahead, it reads the dropped ones alone."""
    speculate_llm: bool = False
    """A local model is asked on the early transcript, and its reply held until the turn has ended; dropped
    where the person goes on or the transcript turns out another. Each record counts what was in vain."""
    speculate_paid: bool = False
    """Models that cost, and the emulated ones that stand for such, are asked ahead as well: what is in vain
    is paid. Needs `speculate_llm`."""
    prefetch_tts: bool = False
    """The first clause of a held reply goes to speech synthesis at once. Needs `speculate_llm`, and a voice
    on this machine (`piper`)."""


class Pipecat(Settings):
    """pipecat's own ways that cost latency. pipecat has them at `rtvi: true`, `process_events: true`,
    `audio_downstream: true` and `out_chunk_ms: 40`."""

    rtvi: bool = False
    """Its messages for a client on the other side are made, though nobody receives them here."""
    process_events: bool = False
    """Its observers are told each frame that a processor takes, beside each pushed one; none here asks."""
    audio_downstream: bool = False
    """The person's audio goes on behind the turn detector, through the language model, the voice and the
    transport. A language model that listens for itself needs it."""
    out_chunk_ms: int = Field(10, ge=10, le=100, multiple_of=10)
    """Speech goes to the transport in pieces of this length, and only in whole ones. For recordings: a sound
    device or a page is given 10 ms at a time."""


class Conversation(Settings):
    """What the model is told, and how long it may answer. Each turn stands alone, without history."""

    system_prompt: str = SYSTEM_PROMPT
    max_tokens: int = Field(60, ge=1)


class Config(Settings):
    """A whole run."""

    name: str = "default"
    budget_ms: float = Field(800.0, gt=0, le=1e9)
    """Voice-to-voice latency is held against this."""
    slots_ms: tuple[Annotated[float, Field(gt=0, le=1e9)], ...] = (400.0, 500.0)
    """Nominal LLM slots to report, beside the residual one."""
    modes: tuple[str, ...] = ("local/smollm2-135m",)
    own_modes: tuple[Mode, ...] = ()
    sets: tuple[CandidateSet, ...] = ()
    """Modes that ask several at once and take one reply."""
    routes: tuple[Route, ...] = ()
    """Modes that pick who answers, turn by turn."""
    tools: tuple[Tool, ...] = ()
    """What models may call in a turn."""
    samples_per_mode: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """At most so many samples for this mode; without an entry all of them."""
    attempts_per_mode: dict[str, Annotated[int, Field(ge=1, le=10)]] = Field(default_factory=dict)
    """At most so many calls for one request of this mode, in place of the mode's own `attempts`."""
    longest_retry_wait_s: float = Field(5.0, ge=0, le=600)
    """Where a provider asks for a longer wait before the next attempt, there is none."""
    repeats: int = Field(1, ge=1)
    seed: int = 7
    """Orders the turns and seeds whatever is drawn."""
    warmup_turns: int = Field(1, ge=0)
    """Turns per mode before the measured ones; kept apart in warmup.jsonl."""
    turn_timeout_s: float = Field(20.0, gt=0)
    """A turn that has not ended this long after its audio has ended is `timed_out`."""
    calibration_turns: int = Field(10, ge=0)
    """Scripted turns before the run that measure the harness itself; 0 leaves the noise floor unmeasured."""
    hear: Hear = "clause"
    """How much of a reply is let sound before the next turn: `onset`, `clause` or `reply`; `made`: all its
    speech is synthesised, and its beginning is let sound."""
    pace: Pace = "real"
    """`real`: recordings are spoken in real time. `tail`: only the last part of the speech is, and a reply is
    not heard out (`made`), for a batch in less than half the time; needs an ASR that works on whole segments.
    Figures of the two are not compared."""
    asr: PluginSpec = PluginSpec(kind="whisper")
    tts: PluginSpec = PluginSpec(kind="piper")
    turn: PluginSpec = PluginSpec(kind="smart_turn")
    vad: Vad = Vad()
    clause: Clause = Clause()
    early: Early = Early()
    conversation: Conversation = Conversation()
    pipecat: Pipecat = Pipecat()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.modes:
            raise ValueError("modes: at least one mode is needed")
        if (key := literal_key(self.model_dump())) is not None:
            raise ValueError(
                f"{key}: a configuration is kept with its runs and must hold no key, token or password. Name "
                "the environment variable that holds it: in `api_key_env`, or for a further argument of a "
                f"pipecat class in `secret_arguments: {{{key}: VARIABLE}}`."
            )
        made = tuple(
            [mode.id for mode in self.own_modes]
            + [one.id for one in self.sets]
            + [route.id for route in self.routes]
        )
        named = {
            "modes": self.modes,
            "own_modes": tuple(mode.id for mode in self.own_modes),
            "own_modes, sets and routes": made,
            "tools": tuple(tool.name for tool in self.tools),
        }
        for key, names in named.items():
            repeated = {name for name in names if names.count(name) > 1}
            if repeated:
                raise ValueError(f"{key}: named twice: {', '.join(sorted(repeated))}")
        return self

    @property
    def hears(self) -> Hear:
        """How much of a reply is let sound: `hear`, and with `pace: tail` no more than its beginning."""
        return "made" if self.pace == "tail" and self.hear != "onset" else self.hear

    @property
    def own(self) -> dict[str, Mode]:
        """The modes that the config makes or changes, by id: they go before the catalogue's.

        Raises BadRequest where it names one that there is none of.
        """
        found = {mode.id: mode for mode in self.own_modes}
        for mode_id, attempts in self.attempts_per_mode.items():
            row = find_mode(mode_id, found, "attempts_per_mode")
            found[mode_id] = row.model_copy(update={"attempts": attempts})

        def find(mode_id: str, where: str) -> Mode:
            return find_mode(mode_id, found, where)

        found |= composed(self.sets, self.routes, find, self.clause.model_dump())
        for tool in self.tools:
            for mode_id in self.modes if tool.modes is None else tool.modes:
                row = find_mode(mode_id, found, f"tools, {tool.name}")
                if row.api == CANDIDATES:
                    raise BadRequest(
                        f"tools, {tool.name}: {mode_id} asks several at once, and each would call the tool.",
                        "Name the modes that may call it under the tool's `modes`.",
                    )
                found[mode_id] = row.model_copy(update={"tools": (*row.tools, tool)})
        return found


def load_config(path: Path) -> Config:
    """The configuration in a YAML file.

    Raises BadRequest naming file, key, value and what is allowed.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise BadRequest(f"No such configuration file: {path}", "See configs/ for examples.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} cannot be read: {error}") from None
    if len(content) > _MOST_BYTES:
        raise BadRequest(f"{path} is larger than {_MOST_BYTES >> 10} KiB, which no configuration is.")
    try:
        raw = plain_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Besides its own errors the loader lets through what an impossible date or endless nesting raises.
        raise BadRequest(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise BadRequest(f"{path}: the top level must be keys and values, not {type(raw).__name__}.")
    return validated(Config, raw, str(path))


def validated(model: type[Model], raw: dict[str, Any], where: str) -> Model:
    """`raw` as that model. Raises BadRequest that names `where`, the key, the value and what is allowed."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise BadRequest("\n  ".join([f"{where}:", *_told(model, error)])) from None


def _told(model: type[BaseModel], error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "(whole file)"
        if problem["type"] == "extra_forbidden":
            known = _fields_at(model, problem["loc"][:-1])
            near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            lines.append(f"unknown key {key!r}.{hint} Known keys: {', '.join(known)}.")
        elif not problem["loc"]:
            lines.append(problem["msg"].removeprefix("Value error, "))
        else:
            value = "" if problem["type"] == "missing" else f" (got {_SHORT.repr(problem['input'])})"
            message = _IN_YAML.get(problem["type"], problem["msg"].removeprefix("Value error, "))
            lines.append(f"{key}: {message}{value}")
    return lines


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80

_IN_YAML = {
    "tuple_type": "Input should be a list",
    "model_type": "Input should be keys and values",
    "dict_type": "Input should be keys and values",
}
"""What a wrong type is called in a YAML file, where the validator speaks of Python's types."""


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the (nested) model at `location`, as they are written in a file."""
    current: Any = model
    for part in location:
        annotation = getattr(current, "model_fields", {}).get(part)
        if annotation is None:
            continue
        current = annotation.annotation
        arguments = getattr(current, "__args__", ())
        current = next((item for item in arguments if hasattr(item, "model_fields")), current)
    fields = getattr(current, "model_fields", {})
    return sorted(field.alias or name for name, field in fields.items())
