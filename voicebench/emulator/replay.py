"""Recorded streams: when each delta came and how much it held, to be served again at exactly those times.

File format (JSON, UTF-8):

    {"format": "voicebench-replay", "version": 1,
     "unit": "text" | "characters" | "tokens",
     "headers_ms": 42.0, "preamble_ms": 45.5,
     "deltas": [[203.25, "Paris"], [218.5, " is"], ...]}

`deltas` are `[ms after the request was fully received, the text | its number of characters | of o200k
tokens]`, in order of time. With `characters` or `tokens` the text is made up, at the recorded lengths.
`headers_ms` and `preamble_ms` default to the first delta's time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicebench.clock import NS_PER_MS
from voicebench.errors import BadRequest

FORMAT = "voicebench-replay"
VERSION = 1
UNITS = ("text", "characters", "tokens")


@dataclass(frozen=True)
class Replay:
    """A recorded stream. `deltas` are (ms since the request was received, text or count), `unit` says
    which."""

    deltas: tuple[tuple[float, str | int], ...]
    unit: str = "text"
    headers_ms: float | None = None
    preamble_ms: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise BadRequest(f"replay: unit {self.unit!r} is unknown.", f"Use one of: {', '.join(UNITS)}.")
        if not self.deltas:
            raise BadRequest("replay: there are no deltas.", "Give at least one [ms, text or count] pair.")
        last = 0.0
        for index, (at_ms, held) in enumerate(self.deltas):
            if not isinstance(at_ms, int | float) or isinstance(at_ms, bool) or not last <= at_ms < 1e9:
                raise BadRequest(
                    f"replay: delta {index} is at {at_ms!r} ms, after {last} ms.",
                    "Times are milliseconds since the request was received, from 0 and never falling.",
                )
            wanted = str if self.unit == "text" else int
            if not isinstance(held, wanted) or isinstance(held, bool) or (isinstance(held, int) and held < 1):
                raise BadRequest(
                    f"replay: delta {index} holds {held!r}.",
                    "Give text." if self.unit == "text" else f"Give a number of {self.unit}, 1 or more.",
                )
            last = at_ms
        for name in ("headers_ms", "preamble_ms"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= self.deltas[0][0]:
                raise BadRequest(
                    f"replay: {name} is {value!r}.", f"Use 0 to {self.deltas[0][0]} (the first delta)."
                )

    def to_dict(self) -> dict[str, Any]:
        """The file's content as plain data."""
        data: dict[str, Any] = {"format": FORMAT, "version": VERSION, "unit": self.unit}
        if self.headers_ms is not None:
            data["headers_ms"] = self.headers_ms
        if self.preamble_ms is not None:
            data["preamble_ms"] = self.preamble_ms
        data["deltas"] = [[at_ms, held] for at_ms, held in self.deltas]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Replay:
        """The reverse of `to_dict`. Raises `BadRequest` that names the field which is wrong."""
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise BadRequest(
                f"replay: format {data.get('format')!r}, version {data.get('version')!r}.",
                f'Expected "format": "{FORMAT}", "version": {VERSION}.',
            )
        unknown = sorted(set(data) - {"format", "version", "unit", "headers_ms", "preamble_ms", "deltas"})
        if unknown:
            raise BadRequest(f"replay: unknown field {unknown[0]!r}.")
        deltas = data.get("deltas")
        if not isinstance(deltas, list) or any(
            not isinstance(delta, list | tuple) or len(delta) != 2 for delta in deltas
        ):
            raise BadRequest("replay: deltas is not a list of [ms, text or count] pairs.")
        return cls(
            deltas=tuple((at_ms, held) for at_ms, held in deltas),
            unit=data.get("unit", "text"),
            headers_ms=data.get("headers_ms"),
            preamble_ms=data.get("preamble_ms"),
        )


def read(path: Path) -> Replay:
    """The replay in a file. Raises `BadRequest` that names the file and what is wrong in it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest(f"{path}: cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{path}: is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise BadRequest(f"{path}: replay: expected an object.")
    try:
        return Replay.from_dict(data)
    except BadRequest as error:
        raise BadRequest(f"{path}: {error.what}", error.remedy) from None


def write(path: Path, replay: Replay) -> None:
    """Write a replay as a file that `read` reads back unchanged."""
    path.write_text(json.dumps(replay.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")


def from_deltas(deltas_ns: Sequence[tuple[int, str | int]], unit: str) -> Replay:
    """A replay from (ns since the request was received, text or count) pairs, as a client recorded them."""
    return Replay(tuple((at_ns / NS_PER_MS, held) for at_ns, held in deltas_ns), unit)


def from_log(record: Mapping[str, Any]) -> Replay:
    """A replay of one record of the emulator's own write log: each text delta, when the socket had it."""
    received, reply = int(record["received_ns"]), str(record["reply"])
    deltas: list[tuple[int, str | int]] = []
    characters = 0
    for event in record["events"]:
        if event["kind"] == "text" and event["characters"] > characters:
            deltas.append((event["after_ns"] - received, reply[characters : event["characters"]]))
            characters = event["characters"]
    return from_deltas(deltas, "text")
