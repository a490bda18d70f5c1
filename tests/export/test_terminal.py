"""The terminal: the table of a report, the line and the waterfall of a turn."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.analysis.made_run import made_run, run_info
from tests.turns.made import made, made_marks
from voicebench.analysis.report import Report, build_report
from voicebench.export.terminal import fitted, print_report, turn_line, waterfall
from voicebench.turns.timeline import Mark

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m"


def printed(report: Report, width: int = 160) -> str:
    """What print_report writes to a screen that shows no colours."""
    file = io.StringIO()
    print_report(report, Console(file=file, width=width, color_system=None))
    return file.getvalue()


def test_the_report_shows_its_figures_with_n() -> None:
    """V2V, the budget's share with its turns, stages with their sum, slots, quality and caveats are there."""
    info, records = made_run()
    report = build_report(info, records)
    shown = printed(report)
    for entry in report.modes:
        assert f"{entry.voice_to_voice.p50:.0f}" in shown
        assert f"{entry.budget.hit} of {entry.budget.n}" in shown
        assert entry.near_p50 is not None
        assert f"{entry.near_p50.total:.1f}" in shown
    for word in ("within 800 ms", "endpointing", "clause ready", "word errors", "timed_out", "Caveats"):
        assert word in shown
    assert "scripted" in shown


def test_few_turns_show_the_maximum_and_no_p95() -> None:
    """Below twenty turns the maximum stands where p95 would."""
    shown = printed(build_report(run_info(), [made(turn, v2v_ms=700 + turn) for turn in range(9)]))
    assert "max 708" in shown


def test_a_partial_run_says_so_first() -> None:
    """The first line of a partial run's report says that it is one."""
    shown = printed(build_report(run_info(complete=False), [made(0)]))
    assert shown.startswith("PARTIAL")


def test_emulated_modes_are_marked_also_under_another_name() -> None:
    """A mode that is emulated and does not say so in its id is marked in tables and lines."""
    record = made(0, mode="own/replay", mode_kind="emulated")
    assert "own/replay (emulated)" in printed(build_report(run_info(), [record]))
    assert "own/replay (emulated)" in turn_line(record)
    assert "(emulated)" not in turn_line(made(0, mode="emulated/x", mode_kind="emulated"))


@pytest.mark.parametrize("width", [80, 100, 110, 200])
def test_no_line_is_wider_than_the_screen_and_no_word_of_a_table_is_broken(width: int) -> None:
    """At 80 columns and more, all figures of a report with three modes are whole."""
    info, records = made_run(20)
    report = build_report(info, records)
    lines = printed(report, width).splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert {"endpointing", "llm_ttfat", "headline", "completed", "timed_out", "assumed"} - words <= {
        "assumed"
    }


def test_columns_are_as_wide_as_their_longest_word_or_left_to_break() -> None:
    """Widths fit the room and hold every word; where they cannot, none is fixed."""
    columns = [["a name", "long-unbroken-word"], ["1234", "some more words here"]]
    assert fitted(columns, 80) == [18, 20]
    widths = fitted(columns, 32)
    assert widths[0] == 18
    assert sum(width or 0 for width in widths) <= 28
    assert fitted(columns, 20) == [None, None]


def test_hostile_names_and_texts_do_not_reach_the_terminal() -> None:
    """Escapes in mode, sample, reply, reason, notes and the run's own facts are stripped everywhere."""
    fields: dict[str, Any] = {
        "mode": f"x/{HOSTILE}",
        "sample": f"s{HOSTILE}",
        "reply": HOSTILE,
        "condition": HOSTILE,
        "served": {"tier": HOSTILE},
        "caveats": [HOSTILE],
    }
    good, bad = made(0, **fields), made(1, **fields, outcome="failed", reason=f"no {HOSTILE}")
    report = build_report(run_info(id=HOSTILE, noise_floor_ms=None, noise_floor_reason=HOSTILE), [good, bad])
    shown = "".join(
        (printed(report), printed(report, 80), turn_line(good), turn_line(bad), waterfall(good, 800))
    )
    assert not set(shown) & set("\x1b\x9b\x07\u202e")
    assert "owned" not in shown
    assert "evil" in shown


def test_rich_markup_in_names_is_shown_as_it_is() -> None:
    """Square brackets in a name are text, not colours or an error."""
    record = made(0, mode="x/[bold]y[/nothing]")
    assert "x/[bold]y[/nothing]" in printed(build_report(run_info(), [record]))


def test_a_turn_is_one_line() -> None:
    """Number, mode, sample, latency with the model's part, flags and reply stand on one line."""
    line = turn_line(made(11, flags=["client_limited", "length"], reply="Nine\no'clock."))
    assert line == (
        "  12  local/made  sample-011  700 ms (LLM 300)  [client_limited, not counted]  [length]"
        "  “Nine o'clock.”"
    )


def test_a_turn_that_failed_says_why_instead() -> None:
    """Outcome and reason stand where the latency would, and no latency is made up."""
    line = turn_line(made(0, outcome="timed_out", reason="no reply", reply=None))
    assert line == "   1  local/made  sample-000  timed_out: no reply"
    assert "no voice-to-voice latency" in turn_line(made(0, without=(Mark.FIRST_AUDIBLE,)))


def test_a_waterfall_tiles_the_latency_and_shows_the_budget() -> None:
    """Each bar begins where the last one ended, all end at V2V, and the line stands at the budget."""
    rows = waterfall(made(), 800, 100).splitlines()
    bars = [row[25:] for row in rows[:8]]
    ends = [bar.rfind("█") + 1 for bar in bars]
    starts = [bar.find("█") for bar in bars]
    assert starts[0] == 0
    assert all(start == end for start, end in zip(starts[1:], ends, strict=False))
    assert {bar.index("┊") for bar in bars} == {round(ends[-1] * 800 / 700)}
    assert rows[0].split()[:2] == ["endpointing", "200"]
    assert "700 ms" in rows[8]
    assert "100 ms within the budget of 800 ms" in rows[8]


def test_a_waterfall_tells_what_is_missing_or_beyond() -> None:
    """A stage without its mark shows a dash, a turn over budget how far, a turn without stages why."""
    assert "–" in waterfall(made(without=(Mark.TRANSCRIPT_FINAL,)), 800).splitlines()[1]
    assert "400 ms beyond the budget" in waterfall(made(marks=made_marks(vad_stop=700)), 800)
    assert waterfall(made(v2v_ms=-30), 800).endswith("the agent sounded before the person had ended")
    assert waterfall(made(outcome="timed_out", without=(Mark.FIRST_AUDIBLE,)), 800).endswith("timed_out")


def test_a_waterfall_keeps_to_its_width_and_to_ascii_where_asked() -> None:
    """No row of bars is wider than asked, also for long turns, and ascii_only gives ASCII alone."""
    for v2v in (10, 800, 9000):
        text = waterfall(made(marks=made_marks(llm_first_text=v2v)), 800, 70, ascii_only=True)
        assert max(map(len, text.splitlines())) <= 70
        assert text.isascii()
