"""Keys that stand in a configuration itself: it is kept with every run, so they belong elsewhere."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_KEY_NAME = re.compile(
    r"(?:^|_)(?:api_?key|subscription_key|secret|password|passwd|passphrase|credentials?|"
    r"authorization|cookie|private_key|secret_(?:access_)?key|(?:access|api|auth|bearer|hf|refresh|session)_token)$|^token$"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BY_NAME = ("api_key_env", "secret_arguments")
"""Under these stand names of environment variables."""


def literal_key(values: Any) -> str | None:
    """The name, anywhere in settings, under which a key, token or password stands; None where none does."""
    if isinstance(values, dict):
        for name, value in values.items():
            if name in BY_NAME:
                continue
            plain = str(name).lower().replace("-", "_")
            if _KEY_NAME.search(plain) and value not in (None, "") and not isinstance(value, dict | bool):
                return str(name)
            if (inside := literal_key(value)) is not None:
                return inside
    if isinstance(values, list | tuple):
        return next((found for value in values if (found := literal_key(value)) is not None), None)
    return None


def address_with_key(address: str) -> bool:
    """Does an address hold a person's name, a password, or a key in its query?"""
    parts = urlsplit(address)
    return bool(parts.username or parts.password or literal_key(dict(parse_qsl(parts.query))))


def is_variable(name: str) -> bool:
    """Can it be the name of an environment variable? Most keys cannot."""
    return bool(_VARIABLE.fullmatch(name))
