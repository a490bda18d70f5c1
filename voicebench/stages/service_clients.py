"""The vendors' SDK clients inside pipecat's own services: none may ask again unseen, follow a redirect with
the key, or hand a vendor's key to another host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from voicebench.errors import BadRequest
from voicebench.stages.llm_keys import VENDOR_KEYS, vendor_of


def sdk_clients(service: Any) -> Iterator[Any]:
    """The clients of OpenAI's and Anthropic's SDKs, and of those made from them, that a service holds."""
    for held in vars(service).values():
        if isinstance(getattr(held, "max_retries", None), int) and hasattr(held, "base_url"):
            yield held


def tame(service: Any, key_variable: str | None) -> None:
    """Turn the SDKs' own retries off (they hide in the latency) and let them follow no redirect.

    `key_variable` names the environment variable whose value the service was given as its key. Raises
    BadRequest where that is a vendor's and the service would send it to another host.
    """
    for client in sdk_clients(service):
        client.max_retries = 0
        transport = getattr(client, "_client", None)
        if transport is not None:
            transport.follow_redirects = False
        keep_home(key_variable, str(client.base_url))


def keep_home(key_variable: str | None, address: str) -> None:
    """Refuse to send a vendor's key to an address that is not that vendor's, or over an open connection."""
    owner = next((host for host, variable in VENDOR_KEYS.items() if variable == key_variable), None)
    if owner is None:
        return
    parts = urlsplit(address)
    host = parts.hostname or ""
    if vendor_of(host) != owner:
        raise BadRequest(
            f"api_key_env: {key_variable} belongs to {owner} and is not sent to {host or 'another address'}.",
            "Put that host's key into a variable of its own.",
        )
    if parts.scheme not in ("https", "wss"):
        raise BadRequest(f"{host} must be asked over https: its key does not go over an open connection.")
