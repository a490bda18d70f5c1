"""Was the machine too busy to be believed? Event-loop lag, stolen and used processor time through a turn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LAG_LIMIT_MS = 60.0
"""An event loop that is later than this in a turn has moved that turn's marks: `client_limited`."""
STEAL_LIMIT = 0.10
"""More than this share of processor time taken by other guests of the host: `client_limited`."""


@dataclass(frozen=True)
class CpuTicks:
    """Processor time of the machine since it started, in ticks."""

    total: int
    busy: int
    stolen: int


@dataclass(frozen=True)
class Load:
    """Shares of the machine's processor time in a turn, 0 to 1; None where the system does not tell."""

    busy: float | None
    stolen: float | None
    waiting: float | None
    """Runnable tasks per core, averaged over a minute."""


def ticks(path: Path = Path("/proc/stat")) -> CpuTicks | None:
    """The machine's counters now; None where the system has none."""
    try:
        line = path.read_text("ascii").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        return None
    if not line.startswith("cpu "):
        return None
    fields = [int(value) for value in line.split()[1:9]]
    if len(fields) < 8:
        return None
    idle = fields[3] + fields[4]
    return CpuTicks(sum(fields), sum(fields) - idle, fields[7])


def load_between(before: CpuTicks | None, after: CpuTicks | None) -> Load:
    """What the counters say of the time between two readings."""
    waiting = None
    if hasattr(os, "getloadavg"):
        waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    if before is None or after is None or after.total <= before.total:
        return Load(None, None, waiting)
    span = after.total - before.total
    return Load((after.busy - before.busy) / span, (after.stolen - before.stolen) / span, waiting)


def limited(lag_ms: float, load: Load) -> str | None:
    """Why a turn is not to be believed, None where it is."""
    if lag_ms > LAG_LIMIT_MS:
        return f"the event loop was {lag_ms:.0f} ms late"
    if load.stolen is not None and load.stolen > STEAL_LIMIT:
        return f"{load.stolen:.0%} of the processor time was taken by others"
    return None
