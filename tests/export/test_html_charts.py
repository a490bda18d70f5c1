"""The charts' parts: scales, and labels that do not cover one another."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_run import run_info
from tests.turns.made import made, made_deltas
from voicebench.analysis.report import build_report
from voicebench.export.html.courses import curves_of
from voicebench.export.html.labels import fitted, rows_of, spread, width_of
from voicebench.export.html.look import looks_of
from voicebench.export.html.markup import cut, join, tag, text, tight
from voicebench.export.html.notes import common_ends
from voicebench.export.html.scales import Linear, LogFromZero, nice_end, nice_step, simplified
from voicebench.export.html.waterfalls import chosen, shares_of

PLACES = st.lists(st.floats(0, 500), min_size=1, max_size=8)


@given(PLACES, st.floats(1, 60))
def test_labels_never_cover_one_another_and_keep_their_order(wanted: list[float], size: float) -> None:
    """Wherever labels want to be, they stand apart by their sizes, inside the axis where they fit."""
    found = spread(wanted, [size] * len(wanted), 0, 500)
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    for one, other in pairwise(order):
        assert found[other] - found[one] >= size - 1e-6
    if size * len(wanted) <= 500:
        assert min(found) >= size / 2 - 1e-6
        assert max(found) <= 500 - size / 2 + 1e-6


def test_labels_that_fit_stay_where_they_want_to_be() -> None:
    """Labels far apart are not moved."""
    assert spread([50, 200, 400], [20, 20, 20], 0, 500) == [50, 200, 400]
    assert spread([100, 100], [20, 20], 0, 500) == [90, 110]


def test_rows_keep_labels_of_one_row_apart() -> None:
    """Labels that would touch stand in different rows."""
    assert rows_of([(0, 50), (40, 90), (60, 100), (120, 150)]) == [0, 1, 0, 0]


def test_a_text_that_is_too_wide_is_cut() -> None:
    """What is left fits, with an ellipsis; what fits is whole."""
    assert fitted("short", 200) == "short"
    told = fitted("a-name-that-is-much-too-long", 80)
    assert told.endswith("…")
    assert width_of(told) <= 80


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_the_logarithmic_axis_has_a_true_zero_and_never_falls(one: float, other: float) -> None:
    """0 lies at the beginning, more lies further."""
    scale = LogFromZero(1000, 300, 0)
    assert scale(0) == 300
    assert scale(1000) == pytest.approx(0)
    if one < other:
        assert scale(one) >= scale(other)


def test_ticks_are_round_and_apart() -> None:
    """Ticks of both axes lie within them and are legible."""
    assert Linear(0, 1200, 0, 600).ticks(6) == [0, 200, 400, 600, 800, 1000, 1200]
    ticks = LogFromZero(500, 300, 0).ticks()
    assert ticks == [0, 1, 3, 10, 30, 100, 300]
    assert nice_step(0) == 1
    assert nice_end(1013) == 1200
    assert Linear(5, 5, 0, 100)(5) == 0


@given(st.lists(st.floats(0, 100), min_size=2, max_size=40))
def test_a_simplified_line_stays_near_the_line(heights: list[float]) -> None:
    """Ends stay, and no point that is left out lies farther than the tolerance from what is drawn."""
    points = [(float(10 * place), height) for place, height in enumerate(heights)]
    kept = simplified(points, 0.5)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    for x, y in points:
        (x1, y1), (x2, y2) = next(pair for pair in pairwise(kept) if pair[0][0] <= x <= pair[1][0])
        off = abs((x2 - x1) * (y1 - y) - (x1 - x) * (y2 - y1)) / math.hypot(x2 - x1, y2 - y1)
        assert off <= 0.5 + 1e-6


def test_markup_escapes_everything_but_itself() -> None:
    """Text and attributes are escaped, nested elements are not escaped twice."""
    assert tag("p", "<b>", tag("i", "&"), title='"x') == '<p title="&quot;x">&lt;b&gt;<i>&amp;</i></p>'
    assert tag("path", d="M0 0", class_="a", hidden=False, id=None) == '<path d="M0 0" class=a />'
    assert join(None, 1, " x ") == "1 x "
    assert tag("a", href="") == '<a href=""></a>'
    assert text("a\n\tb\u202e") == "a b"
    assert tight("70 % [58–80] in 800 ms") == "70&nbsp;% [58–&#8288;80] in 800&nbsp;ms"
    assert cut("x" * 700).endswith("…")


def test_common_words_are_told_once() -> None:
    """Texts that differ in a count share what stands around it."""
    assert common_ends(["Turns: 1. Few.", "Turns: 12. Few."]) == ("Turns: ", ". Few.")
    assert common_ends(["one"]) == ("", "")
    assert common_ends(["same", "same"])[0] == "same"


def test_curves_are_medians_over_the_turns() -> None:
    """Of three replies that start at 100, 200 and 300 ms, the median one has 11 tokens by 350 ms."""
    records = [made(n, deltas=made_deltas(20, 100 * (n + 1), 15)) for n in range(3)]
    curve = curves_of(records, 700, 150)["tokens"]
    place = list(curve.at_ms).index(360)
    assert curve.p50[place] == 11
    assert (curve.p50[0], curve.n, curve.of) == (0, 3, 3)


def test_curves_without_text_have_no_words() -> None:
    """A run whose text was left out has tokens and characters, and no curve of words."""
    curves = curves_of([made(0, reply=None)], 700, 150)
    assert set(curves) == {"tokens", "characters"}


def test_siblings_share_a_hue_and_the_faster_has_the_darker_tone() -> None:
    """The standard mode has tone a, its fast form tone b of the same hue; others have hues of their own."""
    names = ("emulated/opus-4.6", "emulated/opus-4.6-fast", "emulated/gpt-5.3-codex", "local/x")
    records = [made(n, mode=name, mode_kind=name.partition("/")[0]) for n, name in enumerate(names)]
    colours = [look.colour for look in looks_of(build_report(run_info(), records))]
    assert colours == ["m0a", "m0b", "m1b", "m4b"]


def test_many_modes_have_colours() -> None:
    """More families than hues begin again, without an error."""
    records = [made(n, mode=f"x/{n}") for n in range(14)]
    assert len(looks_of(build_report(run_info(), records))) == 14


def test_places_for_turns_are_shared_fairly() -> None:
    """What a small mode leaves goes to the others; no more than there are turns."""
    assert shares_of([10, 300, 300], 200) == [10, 95, 95]
    assert shares_of([3, 4], 200) == [3, 4]
    assert sum(shares_of([100] * 7, 200)) == 200


def test_a_sample_of_turns_holds_the_edges_and_the_failed() -> None:
    """The slowest, the quickest and some turns without a latency are among the chosen, in order."""
    records = [made(n, v2v_ms=500 + n) for n in range(300)]
    records += [made(400 + n, outcome="failed", reason="x") for n in range(100)]
    found = chosen(records, 50)
    assert len(found) == 50
    times = [record.voice_to_voice_ms for record in found if record.voice_to_voice_ms is not None]
    assert (times[0], times[-1]) == (799, 500)
    assert times == sorted(times, reverse=True)
    assert sum(record.voice_to_voice_ms is None for record in found) == 10
