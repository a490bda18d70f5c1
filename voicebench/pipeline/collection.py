"""When garbage is collected: between turns, since a collection stops everything for many ms.

The collector is one for the whole process, and so is this account: with several sessions at once it is off
while any of them is in a turn.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MOST_NEW = 200_000
"""Where turns follow one another without a gap, so many new objects are collected all the same: the pause is
then in the account of the turns that run."""

_in_turn = 0


def collect(*, needed: bool = True) -> None:
    """Collect now, if no turn runs and it is `needed`, or if so much has gathered that it must be."""
    if (needed and _in_turn == 0) or gc.get_count()[0] > MOST_NEW:
        gc.collect()


def suspend() -> None:
    """A turn begins: no collection until it has ended."""
    global _in_turn
    _in_turn += 1
    gc.disable()


def resume() -> None:
    """A turn has ended. With the last one the collector works again."""
    global _in_turn
    _in_turn -= 1
    if _in_turn == 0:
        gc.enable()


@contextmanager
def suspended(*, collect_first: bool = True) -> Iterator[None]:
    """Collect now, where it is to be done first, and not until the end."""
    collect(needed=collect_first)
    suspend()
    try:
        yield
    finally:
        resume()


@contextmanager
def frozen_heap() -> Iterator[None]:
    """What is loaded now is not looked through again by the collector, which is then done in a moment."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
