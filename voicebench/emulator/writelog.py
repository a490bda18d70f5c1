"""The emulator's own record of what it wrote and when, on the machine's monotonic clock.

One JSON object a request (JSON Lines), written and flushed when the request ends, however it ends:

    request, serial, ordinal, protocol, transport, model, script, fault, status, outcome
    received_ns   the request was fully there; every due time counts from it
    asked         stream, max_tokens, speed, service_tier, thinking, retry_count, key_present
    served        speed, service_tier
    usage         input, cache_read, cache_write, reasoning, text, tool, output, in tokens; null: no plan
    reply         the visible text of the whole plan, whether or not all of it was written
    headers       {due_ns, before_ns, after_ns} of the response headers; null where none were sent
    events        [{kind, name, due_ns, before_ns, after_ns, tokens, text_tokens, characters, buffered}]
    lateness_us   {n, p50, p99, max}: after_ns - due_ns over the events, in microseconds; null without events,
                  and where a fault stretches their bytes on purpose

`before_ns` and `after_ns` bracket the hand-over of an event's bytes to the socket; `tokens` (reasoning
included), `text_tokens` and `characters` are cumulative; `buffered` counts the bytes that the socket did
not take at once. `outcome` is `complete`, `clean` (ended properly with something missing), `drop`, `reset`,
`refused`, `client_gone` (the client left first), `cancelled` (by its own message), or null while it runs.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from voicebench.emulator.plan import Usage
from voicebench.errors import BadRequest

_KEPT_RECORDS = 5_000
_KEPT_EVENTS = 100_000
_KEPT_LATENESSES = 100_000


Written = tuple[str, str, int, int, int, int, int, int, int]
"""One event as it went out: the values of `FIELDS`. A plain tuple, which the garbage collector soon leaves
alone."""

FIELDS = (
    "kind",
    "name",
    "due_ns",
    "before_ns",
    "after_ns",
    "tokens",
    "text_tokens",
    "characters",
    "buffered",
)


@dataclass
class Record:
    """What is known of one request; filled while it runs."""

    request: str
    serial: int
    received_ns: int
    protocol: str
    transport: str
    model: str = ""
    script: str = ""
    ordinal: int = 0
    fault: str = ""
    status: int = 200
    outcome: str | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    served: dict[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    reply: str = ""
    headers: tuple[int, int, int] | None = None
    events: list[Written] = field(default_factory=list)

    def latenesses_ns(self) -> list[int]:
        """How long after its instant the socket had each event, in ns; none where a fault slows it."""
        if self.fault.partition(";")[0] in ("drip", "utf8-split"):
            return []
        return [after_ns - due_ns for _, _, due_ns, _, after_ns, *_ in self.events]

    def head(self) -> dict[str, Any]:
        """All but the events, as plain data."""
        usage = self.usage
        return {
            "request": self.request,
            "serial": self.serial,
            "ordinal": self.ordinal,
            "protocol": self.protocol,
            "transport": self.transport,
            "model": self.model,
            "script": self.script,
            "fault": self.fault,
            "status": self.status,
            "outcome": self.outcome,
            "received_ns": self.received_ns,
            "asked": self.asked,
            "served": self.served,
            "usage": None if usage is None else {**vars(usage), "output": usage.output},
            "reply": self.reply,
            "headers": self.headers
            and dict(zip(("due_ns", "before_ns", "after_ns"), self.headers, strict=True)),
            "lateness_us": lateness(self.latenesses_ns()),
        }

    async def render(self) -> str:
        """The record as one line of JSON. Yields to the event loop between events, so that no stream is
        held up."""
        head = json.dumps(self.head(), ensure_ascii=False)
        parts: list[str] = []
        for start in range(0, len(self.events), 50):
            rows = (dict(zip(FIELDS, written, strict=True)) for written in self.events[start : start + 50])
            parts.extend(json.dumps(row) for row in rows)
            await asyncio.sleep(0)
        return f'{head[:-1]}, "events": [{", ".join(parts)}]}}'


def lateness(latenesses_ns: Iterable[int]) -> dict[str, float] | None:
    """Number, median, 99th percentile (nearest rank) and maximum, in us; None where there are none."""
    ordered = sorted(latenesses_ns)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] / 1000

    return {"n": len(ordered), "p50": rank(0.5), "p99": rank(0.99), "max": ordered[-1] / 1000}


class WriteLog:
    """Keeps the latest records in memory and appends every finished one to a file."""

    def __init__(self, path: Path | None = None) -> None:
        """Open `path` (created 0600) for appending. Raises `BadRequest` where it cannot be written."""
        self._file: TextIO | None = None
        if path is not None:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise BadRequest(f"{path}: the log cannot be written: {error.strerror}.") from None
            self._file = os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._events = 0
        self._serial = 0
        self._latenesses: deque[int] = deque(maxlen=_KEPT_LATENESSES)
        self._writing: set[asyncio.Task[None]] = set()
        self.served = 0

    def begin(self, received_ns: int, protocol: str, transport: str) -> Record:
        """A new record under a passing name; `name` gives it the one that the client sees."""
        self._serial += 1
        return Record(f"req_{self._serial:024x}", self._serial, received_ns, protocol, transport)

    def name(self, record: Record, request: str) -> None:
        """Give a record its request id and make it findable; a name that is taken gets its serial added."""
        record.request = request if request not in self._records else f"{request}-{record.serial}"
        self._records[record.request] = record

    def finish(self, record: Record, outcome: str) -> None:
        """Close a record and write it out soon; a record that is closed stays as it is."""
        if record.outcome is not None:
            return
        record.outcome = outcome
        self.served += 1
        self._records.setdefault(record.request, record)
        self._latenesses.extend(record.latenesses_ns())
        self._events += len(record.events)
        while len(self._records) > _KEPT_RECORDS or (self._events > _KEPT_EVENTS and len(self._records) > 1):
            _, oldest = self._records.popitem(last=False)
            if oldest.outcome is not None:
                self._events -= len(oldest.events)
        if self._file is not None:
            task = asyncio.get_running_loop().create_task(self._append(record))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _append(self, record: Record) -> None:
        line = await record.render()
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()

    def find(self, request: str) -> Record | None:
        """The record with this request id; None where it is unknown or no longer kept."""
        return self._records.get(request)

    def requests(self) -> list[str]:
        """The ids of the kept records, oldest first."""
        return list(self._records)

    def statistics(self) -> dict[str, Any]:
        """Finished requests, and the lateness of the latest events of all of them."""
        return {"requests": self.served, "lateness_us": lateness(self._latenesses)}

    async def close(self) -> None:
        """Write what is left and close the file."""
        while self._writing:
            await asyncio.gather(*self._writing)
        if self._file is not None:
            self._file.close()
