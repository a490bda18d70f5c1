"""A request that the emulator turns down, told in one neutral form; each protocol words it its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Problem:
    """Why a request fails.

    `status` is the HTTP status; `kind` the neutral reason, one of the keys of each protocol's own table
    (`invalid_request`, `authentication`, `permission`, `not_found`, `too_large`, `rate_limit`, `server`,
    `unavailable`, `overloaded`); `code` and `param` are OpenAI's fields, None where they do not apply.
    """

    status: int
    kind: str
    message: str
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """Carries a `Problem` from where it is found to where the answer is written."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def invalid(message: str, param: str | None = None, code: str | None = None) -> Refused:
    """A request whose body or headers are wrong: status 400."""
    return Refused(Problem(400, "invalid_request", message, param, code))
