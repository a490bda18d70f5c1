"""The timing script of one emulated model: when each part of a reply is due, counted from the request's
receipt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from voicebench.emulator import replay as replays
from voicebench.emulator.replay import Replay
from voicebench.errors import BadRequest

REPLIES = ("auto", "short", "long", "unicode")


@dataclass(frozen=True)
class TimingScript:
    """How one emulated model answers. All times are ms and count from the instant the request is fully
    received.

    The event that carries the first text is due at `first_text_ms`; a later one at `first_text_ms +
    (visible tokens up to and with it - those of the first event) / rate_tok_s`, so the decode rate that a
    client measures by that definition is `rate_tok_s` itself. Stalls and jitter come on top.
    """

    name: str
    """What a request calls it; the alias names below are answered alike."""
    headers_ms: float = 0.0
    """The response headers leave."""
    preamble_ms: float = 0.0
    """The events before any token leave (message_start, role chunk, response.created ...)."""
    first_text_ms: float = 0.0
    """The first delta of the answer's text leaves, reasoning included in the wait."""
    first_text_jitter_ms: float = 0.0
    """Standard deviation of a normal spread of the first text; it never comes before the preamble."""
    reasoning_tokens: int = 0
    """Reasoning before the answer, in tokens; counted in the usage. 0: none. A request that turns thinking
    off gets none, and its first text comes `reasoning_gap_ms` sooner."""
    reasoning_gap_ms: float = 0.0
    """The reasoning takes this long, ending at the first text."""
    rate_tok_s: float = 100.0
    """Decode rate, tokens a second."""
    tokens_per_event: int = 1
    """Visible tokens in one event."""
    burst: tuple[int, ...] = ()
    """Tokens of the successive events, repeated in a cycle; replaces `tokens_per_event`."""
    jitter_relative: float = 0.0
    """Each gap between two events is multiplied by 1 + a normal number of this standard
    deviation, at least 0."""
    jitter_ms: float = 0.0
    """Each gap gets a normal number of this standard deviation in ms added; it never falls below 0."""
    stalls: tuple[tuple[int, float], ...] = ()
    """(token, ms): the event that holds this visible token (from 0), and all after it, come so much later."""
    reply: str = "auto"
    """`short` (an everyday answer), `long` (plain prose), `unicode` (many-byte characters); `auto` is long
    where the request asks for it in words, else short."""
    reply_tokens: int | None = None
    """The answer has exactly this many visible tokens, unless the request's token limit is lower. None: as
    it comes."""
    served_speed: str = "standard"
    """What Anthropic's `usage.speed` says: the speed that was served."""
    served_service_tier: str | None = None
    """The served tier in the reply. None: the one that was asked for (`auto` and none become `default`)."""
    cache_read_tokens: int = 0
    """Prompt tokens reported as read from the cache, beyond those that are counted in the request's text."""
    cache_write_tokens: int = 0
    """Prompt tokens reported as written to the cache, likewise."""
    ping_ms: float = 0.0
    """A ping (a comment on OpenAI's streams) after each such stretch of silence. 0: only the one in the
    preamble."""
    fault: str = ""
    """A fault for every request, `NAME[;key=value...]`; see `voicebench emulate --list-faults`."""
    aliases: tuple[str, ...] = ()
    """Further model names that are answered with this script."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Asked speed or service tier -> name of the script that serves it. What is not here is served as this
    script."""
    replay: Replay | None = None
    """A recorded stream in place of the generated one: its deltas at its times, whatever the rest says."""

    def __post_init__(self) -> None:
        for name in _NON_NEGATIVE:
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or value > 1e9:
                raise self._wrong(name, value, "a number from 0 to 1e9")
        if not math.isfinite(self.rate_tok_s) or not 0 < self.rate_tok_s <= 1e7:
            raise self._wrong("rate_tok_s", self.rate_tok_s, "a number above 0, at most 1e7")
        if self.tokens_per_event < 1:
            raise self._wrong("tokens_per_event", self.tokens_per_event, "1 or more")
        if any(size < 1 for size in self.burst):
            raise self._wrong("burst", list(self.burst), "a list of numbers, each 1 or more")
        if any(token < 0 or not 0 <= ms <= 1e9 for token, ms in self.stalls):
            raise self._wrong("stalls", list(self.stalls), "a list of [token from 0, ms from 0] pairs")
        if self.reply not in REPLIES:
            raise self._wrong("reply", self.reply, "one of " + ", ".join(REPLIES))
        if self.reply_tokens is not None and not 1 <= self.reply_tokens <= 200_000:
            raise self._wrong("reply_tokens", self.reply_tokens, "1 to 200000")
        start = self.first_text_ms - self.reasoning_gap_ms
        if not self.headers_ms <= self.preamble_ms <= start:
            raise BadRequest(
                f"timing script {self.name!r}: headers_ms {self.headers_ms}, preamble_ms "
                f"{self.preamble_ms} and the first token at {start} ms are out of order.",
                "Use headers_ms <= preamble_ms <= first_text_ms - reasoning_gap_ms.",
            )

    def _wrong(self, name: str, value: object, allowed: str) -> BadRequest:
        return BadRequest(f"timing script {self.name!r}: {name} is {value!r}.", f"Use {allowed}.")

    def to_dict(self) -> dict[str, Any]:
        """The script as plain data (JSON, TOML); fields at their default are left out."""
        data: dict[str, Any] = {}
        default = TimingScript(self.name)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name != "name" and value == getattr(default, entry.name):
                continue
            if isinstance(value, Replay):
                value = value.to_dict()
            elif entry.name == "stalls":
                value = [list(stall) for stall in value]
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            data[entry.name] = value
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path | None = None) -> TimingScript:
        """A script from plain data. `replay` may name a file, taken from `folder`.

        Raises `BadRequest` that names the script, the field, its value and what is allowed.
        """
        name = data.get("name")
        if not isinstance(name, str) or not name or "!" in name:
            raise BadRequest(f"timing script: name is {name!r}.", "Give a name without an exclamation mark.")
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in _HINTS:
                raise BadRequest(
                    f"timing script {name!r}: unknown field {key!r}.", f"Known: {', '.join(_HINTS)}."
                )
            values[key] = _coerce(name, key, value, folder)
        return cls(**values)


def with_settings(script: TimingScript, settings: Mapping[str, str]) -> TimingScript:
    """`script` with single values replaced, given as text (`{"rate_tok_s": "1000"}`).

    An earlier first text takes headers and preamble along, where they are not set, too. Raises `BadRequest`
    for a field that is unknown, is no single value, or gets a wrong one.
    """
    data = script.to_dict()
    for key, text in settings.items():
        if key not in SETTABLE:
            raise BadRequest(f"{key!r} cannot be set.", f"Known: {', '.join(SETTABLE)}.")
        kind, value = _HINTS[key], text.strip()
        if kind is float or kind is int or kind == int | None:
            try:
                data[key] = float(value) if kind is float else int(value)
            except ValueError:
                raise BadRequest(f"{key} is {value!r}.", "Give a number.") from None
        else:
            data[key] = value
    latest = data.get("first_text_ms", 0.0) - data.get("reasoning_gap_ms", 0.0)
    for key, after in (("preamble_ms", latest), ("headers_ms", min(latest, data.get("preamble_ms", 0.0)))):
        if key not in settings:
            data[key] = max(0.0, min(data.get(key, 0.0), after))
    return TimingScript.from_dict(data)


def _coerce(name: str, key: str, value: Any, folder: Path | None) -> Any:
    """One field of `from_dict`, in its type. Raises `BadRequest`."""
    kind = _HINTS[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "replay" and isinstance(value, str):
        return replays.read((folder or Path()) / value)
    if key == "replay" and isinstance(value, Mapping):
        return Replay.from_dict(value)
    if key == "stalls" and isinstance(value, list | tuple):
        if all(
            isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], int) for pair in value
        ):
            return tuple((pair[0], float(pair[1])) for pair in value)
    elif key == "burst" and isinstance(value, list | tuple):
        if all(isinstance(size, int) and not isinstance(size, bool) for size in value):
            return tuple(value)
    elif key == "aliases" and isinstance(value, list | tuple):
        if all(isinstance(alias, str) for alias in value):
            return tuple(value)
    elif key == "variants" and isinstance(value, Mapping):
        if all(isinstance(asked, str) and isinstance(served, str) for asked, served in value.items()):
            return dict(value)
    elif kind is float and is_number:
        return float(value)
    elif (kind is int or kind == int | None) and is_number and value == int(value):
        return int(value)
    elif (kind is str or kind == str | None) and isinstance(value, str):
        return value
    raise BadRequest(f"timing script {name!r}: {key} is {value!r}, which is not of the right kind.")


_HINTS: dict[str, Any] = get_type_hints(TimingScript)
_NON_NEGATIVE = [name for name, kind in _HINTS.items() if kind in (int, float) and name != "rate_tok_s"]
SETTABLE = [name for name, kind in _HINTS.items() if kind in (int, float, str, int | None, str | None)]
SETTABLE.remove("name")
