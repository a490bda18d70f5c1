"""What a faster mode gains over its standard sibling, and at what price, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.analysis.siblings import Faster

EMPTY = "–"


def sibling_rows(worth: Sequence[Faster]) -> tuple[tuple[str, ...], ...]:
    """One row a mode that has its sibling in the run. A figure that the samples do not show is empty."""
    return tuple(
        (
            one.mode,
            one.sibling,
            _interval(one.saved_ms, one.saved_ci95, 0),
            _interval(one.points, one.points_ci95, 1),
            _figure(one.extra_usd_per_1000, 2),
            _figure(one.usd_per_1000_per_ms, 4),
            _figure(one.usd_per_1000_per_point, 3),
            str(one.samples),
        )
        for one in worth
    )


COLUMNS = (
    "mode",
    "against",
    "saved (ms)",
    "in budget (points)",
    "USD more per 1000 turns",
    "USD per ms",
    "USD per point",
    "samples",
)
NOTE = (
    "Saved: the median over samples of the difference in V2V, with its 95 % interval. USD per ms and per "
    "point are for 1000 turns, and stand only where the interval shows a gain."
)


def _figure(value: float | None, digits: int) -> str:
    return EMPTY if value is None else f"{value:.{digits}f}"


def _interval(value: float | None, ci95: tuple[float, float] | None, digits: int) -> str:
    if value is None or ci95 is None:
        return _figure(value, digits)
    return f"{value:.{digits}f} ({ci95[0]:.{digits}f} to {ci95[1]:.{digits}f})"
