"""The vendors' SDK clients inside pipecat's own services: none may ask again unseen, follow a redirect with
the key, or hand a vendor's key to another host.

Seen are the clients that a service holds itself once it is made. One that it makes later, or that is no
client of OpenAI's or Anthropic's SDK, does as its own code says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from voicebench.errors import BadRequest
from voicebench.stages.llm_keys import VENDOR_KEYS, vendor_of


def sdk_clients(service: Any) -> Iterator[Any]:
    """The clients of OpenAI's and Anthropic's SDKs, and of those made from them, that a service holds."""
    for held in vars(service).values():
        if isinstance(getattr(held, "max_retries", None), int) and hasattr(held, "base_url"):
            yield held


def tame(service: Any, key_variables: Sequence[str]) -> None:
    """Turn the SDKs' own retries off (they hide in the latency) and let them follow no redirect.

    `key_variables` names the environment variables whose values the service was given. Raises BadRequest
    where one is a vendor's key and the service would send it to another host.
    """
    for client in sdk_clients(service):
        client.max_retries = 0
        transport = getattr(client, "_client", None)
        if transport is not None:
            transport.follow_redirects = False
        keep_home(key_variables, str(client.base_url))


def keep_home(key_variables: Sequence[str], address: str) -> None:
    """Refuse to send a vendor's key to an address that is not that vendor's, or over an open connection."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    for owner, variable in VENDOR_KEYS.items():
        if variable not in key_variables:
            continue
        if vendor_of(host) != owner:
            raise BadRequest(
                f"{variable} belongs to {owner} and is not sent to {host or 'another address'}.",
                "Put that host's key into a variable of its own.",
            )
        if parts.scheme not in ("https", "wss"):
            raise BadRequest(f"{host} must be asked over https: its key does not go over an open connection.")
