"""API keys: which one belongs to which address, and keeping them out of every text that is written down."""

from __future__ import annotations

import base64
import logging
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator, model_validator

from voicebench.plan.config import Settings
from voicebench.plan.literal_keys import address_with_key, is_variable
from voicebench.plan.registry import Needs
from voicebench.stages.shared import Shared
from voicebench.turns.records import TurnRecord

VENDOR_KEYS = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "api.cerebras.ai": "CEREBRAS_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
}
"""The environment variable that holds the key for each vendor's host, and goes to no other host."""

NO_KEY = "none"
"""What an SDK is given where the endpoint wants no key."""


class Endpoint(Settings):
    """Where a language model is asked, and which variable holds the key for that address.

    Settings are refused that would send a vendor's key to another host, or over an open connection.
    """

    base_url: str
    api_key_env: str | None = None
    """None: the vendor's own variable at a vendor's address, no key at one on this machine. Empty: no key."""
    model: str | None = None
    """The model's name in the request; None: the mode's own."""
    timeout_s: float = Field(60.0, gt=0)
    """So long the endpoint may be silent."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """More request fields, as the SDK's `create` takes them."""

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http or https address")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _keys_stay_home(self) -> Self:
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        # What is refused is not shown: it is a key.
        if address_with_key(self.base_url):
            raise ValueError("base_url: must hold no key or password; name its variable in api_key_env")
        if self.api_key_env and not is_variable(self.api_key_env):
            raise ValueError("api_key_env: must be the name of an environment variable, not the key itself")
        if vendor_of(host) is not None:
            if not self.base_url.startswith("https://"):
                raise ValueError(f"base_url: {host} must be asked over https")
        elif self.api_key_env is None and not is_loopback(host):
            raise ValueError(
                f"api_key_env: name the variable that holds the key for {host}, or give it empty for no key"
            )
        owner = next((name for name, variable in VENDOR_KEYS.items() if variable == self.api_key_env), None)
        if owner is not None and vendor_of(host) != owner:
            raise ValueError(
                f"api_key_env: {self.api_key_env} belongs to {owner} and is not sent to {host}; "
                "put that host's key into a variable of its own"
            )
        return self

    @property
    def key_variable(self) -> str | None:
        """The environment variable that holds the key; None where no key is wanted."""
        if self.api_key_env is not None:
            return self.api_key_env or None
        vendor = vendor_of(urlsplit(self.base_url).hostname or "")
        return None if vendor is None else VENDOR_KEYS[vendor]

    @property
    def on_this_machine(self) -> bool:
        """Does the address lead no further than this machine?"""
        return is_loopback(urlsplit(self.base_url).hostname or "")


def vendor_of(host: str) -> str | None:
    """The vendor's host that `host` is, or is a regional form of; None where it is neither."""
    return next((name for name in VENDOR_KEYS if host == name or host.endswith(f".{name}")), None)


def is_loopback(host: str) -> bool:
    """Does this host name this machine?"""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def endpoint_needs(settings: Endpoint, libraries: tuple[tuple[str, str], ...] = ()) -> Needs:
    """The key, where one is wanted, and libraries."""
    variable = settings.key_variable
    return Needs(libraries=libraries, keys=(variable,) if variable else ())


def key_for(settings: Endpoint, shared: Shared) -> str:
    """The key for this endpoint; from now on no text that passes `redact` shows any of it."""
    variable = settings.key_variable
    if variable is None:
        return NO_KEY
    key = shared.environment.get(variable, "").strip()
    guard(key)
    return key


_FRAGMENT = 8
"""So many characters of a key in a row are a part of it; fewer are chance."""
_REMOVED = "[key]"
_fragments: set[str] = set()
_lock = threading.Lock()


def guard(key: str) -> None:
    """Let `redact` remove this key, also from what is logged. One of fewer than 8 characters is not looked
    for."""
    with _lock:
        if not _fragments:
            _watch_logs()
        for form in _forms(key):
            _fragments.update(form[at : at + _FRAGMENT] for at in range(len(form) - _FRAGMENT + 1))


def _watch_logs() -> None:
    """Let every log record, and every traceback that Python prints, pass `redact`: SDKs log answers where
    asked to, and a thread or a destructor may break with a key in its error."""
    make, crash = logging.getLogRecordFactory(), sys.excepthook
    crash_of_thread, crash_of_destructor = threading.excepthook, sys.unraisablehook

    def made(*given: Any, **more: Any) -> logging.LogRecord:
        record = make(*given, **more)
        try:
            said = record.getMessage()
        except (TypeError, ValueError):
            return record  # logging itself tells of a wrong format
        if redact(said) != said:
            record.msg, record.args = redact(said), ()
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info))).rstrip()
        return record

    def crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        told = "".join(traceback.format_exception(kind, error, trace))
        if redact(told) == told:
            crash(kind, error, trace)
        else:
            sys.stderr.write(redact(told))

    def thread_crashed(args: threading.ExceptHookArgs) -> None:
        told = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
        if redact(told) == told:
            crash_of_thread(args)
        else:
            sys.stderr.write(f"Exception in thread {redact(args.thread.name if args.thread else '?')}:\n")
            sys.stderr.write(redact(told))

    def destructor_crashed(args: sys.UnraisableHookArgs) -> None:
        error = traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback)
        told = f"{args.err_msg or 'Exception ignored in'}: {args.object!r}\n{''.join(error)}"
        if redact(told) == told:
            crash_of_destructor(args)
        else:
            sys.stderr.write(redact(told))

    logging.setLogRecordFactory(made)
    sys.excepthook = crashed
    threading.excepthook, sys.unraisablehook = thread_crashed, destructor_crashed


def redact(text: str) -> str:
    """`text` without any 8 characters in a row of a guarded key, whether plain, URL-encoded or base64."""
    if not _fragments:
        return text
    starts = [at for at in range(len(text) - _FRAGMENT + 1) if text[at : at + _FRAGMENT] in _fragments]
    parts, done = [], 0
    for begin, end in _joined(starts):
        parts += [text[done:begin], _REMOVED]
        done = end
    return "".join([*parts, text[done:]])


def without_keys(record: TurnRecord) -> TurnRecord:
    """The record without any part of a guarded key in its texts: a vendor may name it in a reply, too."""
    if not _fragments:
        return record
    told = record.model_dump(exclude={"deltas"})
    kept = _kept(told)
    if kept == told:
        return record
    return TurnRecord.model_validate({**kept, "deltas": record.deltas})


def _kept(value: Any) -> Any:
    """`value` with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {_kept(key): _kept(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_kept(part) for part in value)
    return value


def _joined(starts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where the fragments that begin at `starts` lie, those that touch taken together."""
    begin = end = -1
    for at in starts:
        if at > end:
            if end > 0:
                yield begin, end
            begin = at
        end = at + _FRAGMENT
    if end > 0:
        yield begin, end


def _forms(key: str) -> list[str]:
    """The key as it may turn up: plain, URL-encoded, and in base64 at each of the three alignments."""
    forms = [key, quote(key, safe="")]
    for shift in range(3):
        raw = b"\0" * shift + key.encode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(raw).decode().rstrip("=")
            # The first characters hold bits of the padding before the key, the last ones of what follows it.
            forms.append(text[(0, 2, 3)[shift] : len(text) - 1])
    return forms
