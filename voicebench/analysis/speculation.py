"""What was asked of models ahead of the turn's end in a run, and what of it was in vain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from voicebench.turns.records import TurnRecord


@dataclass(frozen=True)
class Speculation:
    """Sums over all turns of a mode, whatever their outcome."""

    requests: int
    """Requests made ahead of the turn's end."""
    wasted: int
    """Those of them that no turn's end took up."""
    turns: int
    """Turns with any of them."""
    wasted_tokens: float | None
    """What the wasted ones had produced; None: none was wasted."""
    wasted_usd: float | None
    """What they cost; None: none was wasted, or one of the prices is not known."""

    def to_dict(self) -> dict[str, Any]:
        """The sums by name."""
        return asdict(self)

    @property
    def words(self) -> str:
        """The sums as one phrase; empty where nothing was asked ahead."""
        if not self.requests:
            return ""
        told = f"{self.requests} asked ahead in {self.turns} turns, {self.wasted} in vain"
        if not self.wasted:
            return told
        cost = "no price" if self.wasted_usd is None else f"{self.wasted_usd:.5f} USD"
        return f"{told} ({self.wasted_tokens or 0:.0f} tokens, {cost})"


def speculation_of(records: Iterable[TurnRecord]) -> Speculation:
    """The sums over these records."""
    asked = [record for record in records if record.speculative_requests]
    vain = [record for record in asked if record.wasted_requests]
    bills = [record.wasted_usd for record in vain if record.wasted_usd is not None]
    return Speculation(
        requests=sum(record.speculative_requests for record in asked),
        wasted=sum(record.wasted_requests for record in vain),
        turns=len(asked),
        wasted_tokens=sum(record.wasted_tokens or 0.0 for record in vain) if vain else None,
        wasted_usd=sum(bills) if vain and len(bills) == len(vain) else None,
    )
