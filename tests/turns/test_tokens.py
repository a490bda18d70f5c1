"""Tokens per delta: the provider's usage is the only truth, and it is shared out to the last token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicebench.turns.tokens import TOKENIZERS, share_out

texts_of_deltas = st.lists(st.text(max_size=12), min_size=1, max_size=30)
tokenizers = st.sampled_from([None, *TOKENIZERS])


def test_three_tokens_an_event_and_usage_of_thirty_means_thirty() -> None:
    """Ten events that hold three tokens each are thirty tokens, not ten."""
    events = [" one two three"] * 10
    for tokenizer in (None, "o200k"):
        counts, method, estimated = share_out(events, 30, tokenizer)
        assert sum(counts) == pytest.approx(30, abs=1e-9)
        assert counts == pytest.approx([3.0] * 10, rel=0.25)
        assert method is not None
        assert not estimated


@given(texts_of_deltas, st.integers(0, 5000), tokenizers)
def test_the_shares_add_up_to_the_usage(texts: list[str], visible: int, tokenizer: str | None) -> None:
    """Whatever the deltas hold, their tokens sum to the visible tokens, none is negative, and it is no
    estimate."""
    counts, method, estimated = share_out(texts, visible, tokenizer)
    assert len(counts) == len(texts)
    assert sum(counts) == pytest.approx(visible, abs=1e-6)
    assert min(counts) >= 0
    assert method
    assert not estimated


@given(texts_of_deltas, tokenizers)
def test_without_usage_the_count_is_an_estimate(texts: list[str], tokenizer: str | None) -> None:
    """Where the provider told no usage, the count says that it is an estimate and how it was made."""
    counts, method, estimated = share_out(texts, None, tokenizer)
    assert len(counts) == len(texts)
    assert estimated
    assert method == ("one per delta" if tokenizer is None else tokenizer)
    assert min(counts) >= 0


def test_without_text_there_is_nothing_to_count() -> None:
    """No delta gives no count and no method, whatever usage says."""
    assert share_out([], 12, None) == ([], None, False)
    assert share_out([], None, "o200k") == ([], None, False)


def test_characters_share_out_where_no_tokenizer_fits() -> None:
    """Without a tokenizer a delta of twice the length gets twice the tokens, and the record says so."""
    counts, method, _ = share_out(["abcd", "ab", ""], 9, None)
    assert counts == pytest.approx([6.0, 3.0, 0.0])
    assert method == "characters, scaled to usage"


def test_empty_deltas_share_evenly() -> None:
    """Usage that no character can be blamed for is shared out evenly."""
    counts, method, _ = share_out(["", ""], 5, None)
    assert counts == [2.5, 2.5]
    assert method == "evenly, scaled to usage"


def test_a_tokenizer_that_agrees_with_usage_says_so() -> None:
    """Whole tokens stay whole where the tokenizer counts what the provider billed."""
    texts = ["Paris", " is", " the", " capital", "."]
    counts, method, estimated = share_out(texts, 5, "o200k")
    assert counts == [1.0] * 5
    assert method == "o200k, equal to usage"
    assert not estimated


def test_a_text_that_needs_fewer_tokens_as_it_grows_takes_none_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the next delta merges tokens of the last one, it holds none, and the later ones only the rest."""
    counts = {"a": 3, "ab": 2, "abc": 4}
    monkeypatch.setitem(TOKENIZERS, "shrinking", lambda: counts.__getitem__)
    assert share_out(["a", "b", "c"], None, "shrinking")[0] == [3.0, 0.0, 1.0]


def test_a_word_cut_between_two_deltas_is_not_counted_twice() -> None:
    """The cumulative text is tokenised, so cutting a word in pieces makes no more tokens of it."""
    whole, _, _ = share_out(["unbelievable"], None, "o200k")
    pieces, _, _ = share_out(["u", "n", "believ", "able"], None, "o200k")
    assert sum(pieces) <= sum(whole) + 1
    assert min(pieces) >= 0
