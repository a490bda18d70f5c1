"""The latency from the schedule beside the service time: a list, each figure with its pointer."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.statistics import Summary
from voicebench.export.html.look import Look, figure
from voicebench.export.html.markup import Safe, join, tag
from voicebench.export.tables import number


def load_list(looks: Sequence[Look]) -> Safe | None:
    """A line for each mode that was run on a schedule; None where none was."""
    rows = [_row(look) for look in looks if look.entry.load.scheduled]
    return tag("ul", *rows, class_="ledger") if rows else None


def _row(look: Look) -> Safe:
    load, base = look.entry.load, f"/modes/{look.place}/load"
    return tag(
        "li",
        look.chip(),
        ": from the schedule ",
        _figures(f"{base}/from_schedule_ms", load.from_schedule),
        "; service ",
        _figures(f"{base}/service_ms", load.service),
        "; wait for a session ",
        _figures(f"{base}/queue_ms", load.queue),
        "; waited: ",
        figure(f"{base}/waited", load.waited, str(load.waited)),
    )


def _figures(pointer: str, summary: Summary) -> Safe:
    told = [
        join(
            ", " if place else "",
            f"{name} ",
            figure(f"{pointer}/{name}", getattr(summary, name), number(getattr(summary, name))),
        )
        for place, name in enumerate(("mean", "p50", "max"))
    ]
    return join(*told, " ms")
