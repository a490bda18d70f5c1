"""The order of the planned turns: every mode meets the same samples, in an order that a seed repeats."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from voicebench.plan.plan import PlannedTurn, expand

names = st.text(alphabet="abcdefgh", min_size=1, max_size=3)
mode_lists = st.lists(names, min_size=1, max_size=4, unique=True)
sample_lists = st.lists(names, min_size=1, max_size=7, unique=True)
repeat_counts = st.integers(1, 4)
seeds = st.integers(-(2**40), 2**40)


@given(mode_lists, sample_lists, repeat_counts, seeds)
def test_the_same_request_gives_the_same_turns(
    modes: list[str], samples: list[str], repeats: int, seed: int
) -> None:
    """Expanding twice gives equal lists, numbered from 0 without a gap."""
    first = expand(modes, samples, repeats=repeats, seed=seed)
    assert first == expand(modes, samples, repeats=repeats, seed=seed)
    assert [turn.index for turn in first] == list(range(len(first)))


@given(mode_lists, sample_lists, repeat_counts, seeds)
def test_every_mode_meets_every_sample_in_every_repeat_once(
    modes: list[str], samples: list[str], repeats: int, seed: int
) -> None:
    """The turns are exactly the product of modes, samples and repeats."""
    turns = expand(modes, samples, repeats=repeats, seed=seed)
    wanted = {(mode, sample, repeat) for mode in modes for sample in samples for repeat in range(repeats)}
    met = Counter((turn.mode, turn.sample, turn.repeat) for turn in turns)
    assert set(met) == wanted
    assert set(met.values()) == {1}


@given(mode_lists, sample_lists, repeat_counts, seeds)
def test_the_modes_of_a_sample_follow_each_other(
    modes: list[str], samples: list[str], repeats: int, seed: int
) -> None:
    """Each sample of a repeat is one unbroken block that holds every mode, and repeats do not mix."""
    turns = expand(modes, samples, repeats=repeats, seed=seed)
    for start in range(0, len(turns), len(modes)):
        block = turns[start : start + len(modes)]
        assert len({(turn.sample, turn.repeat) for turn in block}) == 1
        assert {turn.mode for turn in block} == set(modes)
    assert [turn.repeat for turn in turns] == sorted(turn.repeat for turn in turns)


@given(mode_lists, sample_lists, repeat_counts, seeds)
def test_no_mode_is_always_first(modes: list[str], samples: list[str], repeats: int, seed: int) -> None:
    """The mode that begins a block rotates: over all blocks no two modes differ by more than one."""
    turns = expand(modes, samples, repeats=repeats, seed=seed)
    first = Counter(turns[start].mode for start in range(0, len(turns), len(modes)))
    counts = [first[mode] for mode in modes]
    assert max(counts) - min(counts) <= 1


@given(mode_lists, sample_lists, repeat_counts, seeds, st.data())
def test_a_limit_takes_the_first_samples_of_the_list(
    modes: list[str], samples: list[str], repeats: int, seed: int, data: st.DataObject
) -> None:
    """A limited mode meets just the first so many samples; its other turns fall away, the rest stays."""
    limited = data.draw(st.sampled_from(modes))
    limit = data.draw(st.integers(0, len(samples) + 2))
    whole = expand(modes, samples, repeats=repeats, seed=seed)
    cut = expand(modes, samples, repeats=repeats, seed=seed, at_most={limited: limit})
    allowed = set(samples[:limit])

    def keys(turns: list[PlannedTurn]) -> set[tuple[str, str, int]]:
        return {(turn.mode, turn.sample, turn.repeat) for turn in turns}

    assert keys(cut) == {
        (mode, sample, repeat) for mode, sample, repeat in keys(whole) if mode != limited or sample in allowed
    }


def test_another_seed_gives_another_order() -> None:
    """Two seeds shuffle the samples differently, and so do two repeats of one seed."""
    samples = [str(number) for number in range(20)]

    def order(seed: int, repeat: int) -> list[str]:
        turns = expand(["m"], samples, repeats=2, seed=seed)
        return [turn.sample for turn in turns if turn.repeat == repeat]

    assert order(1, 0) != order(2, 0)
    assert order(1, 0) != order(1, 1)
    assert sorted(order(1, 0)) == sorted(samples)


def test_the_order_does_not_depend_on_the_process() -> None:
    """The order for a seed is a fixed one: a resumed run in another process finds the same turns."""
    turns = expand(["a", "b"], ["one", "two", "three", "four"], seed=5)
    assert [(turn.mode, turn.sample) for turn in turns] == [
        ("a", "two"),
        ("b", "two"),
        ("b", "one"),
        ("a", "one"),
        ("a", "three"),
        ("b", "three"),
        ("b", "four"),
        ("a", "four"),
    ]
