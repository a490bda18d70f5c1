"""From a configuration and samples to the list of planned turns. Pure and deterministic."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedTurn:
    """One turn to run: the sample `sample`, asked of `mode`, for the `repeat`-th time (from 0)."""

    index: int
    mode: str
    sample: str
    repeat: int


def expand(
    modes: Sequence[str],
    samples: Sequence[str],
    *,
    repeats: int = 1,
    seed: int = 0,
    at_most: Mapping[str, int] | None = None,
) -> list[PlannedTurn]:
    """All turns in the order in which they are run.

    Every mode meets the same samples, paired by sample and repeat; within a sample the modes follow each
    other in an order that rotates, so that a drift of the machine hits all alike. The samples are shuffled
    anew for each repeat by `seed`. `at_most` limits a mode to the first so many samples.
    """
    limits = at_most or {}
    turns: list[PlannedTurn] = []
    position = {sample: index for index, sample in enumerate(samples)}
    rotation = 0
    for repeat in range(repeats):
        order = list(samples)
        random.Random(f"{seed}/{repeat}").shuffle(order)
        for sample in order:
            takers = [mode for mode in modes if position[sample] < limits.get(mode, len(samples))]
            start = rotation % len(takers) if takers else 0
            rotation += 1
            for mode in takers[start:] + takers[:start]:
                turns.append(PlannedTurn(len(turns), mode, sample, repeat))
    return turns
