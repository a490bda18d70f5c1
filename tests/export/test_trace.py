"""The Chrome trace and the OpenTelemetry spans: what a viewer draws is what was measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_run import made_run, run_info
from tests.turns.made import made, made_marks
from tests.turns.strategies import timelines
from voicebench.analysis.report import build_report
from voicebench.errors import MissingExtra
from voicebench.export import chrome_trace, otel
from voicebench.export.laid_out import lay_out
from voicebench.export.registry import exporter
from voicebench.turns.records import TurnRecord, stages_as_ms
from voicebench.turns.timeline import Mark, Stage, Timeline


def trace_of(records: Sequence[TurnRecord]) -> dict[str, Any]:
    """The trace, read strictly."""
    data = chrome_trace.export(build_report(run_info(records), records), records)
    told: dict[str, Any] = json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    return told


def spans_of(records: Sequence[TurnRecord]) -> list[dict[str, Any]]:
    """The spans of the OTLP file."""
    pytest.importorskip("opentelemetry.sdk")
    data = otel.export(build_report(run_info(records), records), records)
    (resource,) = json.loads(data)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    spans: list[dict[str, Any]] = scope["spans"]
    return spans


def slices(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    """The events with a length of one category."""
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


def test_each_mode_is_a_process_and_each_stage_a_track() -> None:
    """Processes bear the modes' names, emulated ones marked, and each has all stages as named tracks."""
    records = [made(0), made(1, mode="own/replay", mode_kind="emulated")]
    events = trace_of(records)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert list(names.values()) == ["local/made", "own/replay (emulated)"]
    for process in names:
        tracks = [
            event["args"]["name"]
            for event in events
            if event["name"] == "thread_name" and event["pid"] == process
        ]
        assert set(tracks) >= {stage.value for stage in Stage} | {"whole turn", "marks"}


REQUIRED = {
    "X": {"name", "ts", "dur", "pid", "tid"},
    "i": {"name", "ts", "pid", "tid", "s"},
    "M": {"name", "args", "pid"},
}
"""What the Trace Event Format asks of each kind of event used: complete, instant, metadata."""


def test_the_trace_is_what_viewers_of_the_trace_event_format_take() -> None:
    """Every event has its kind's keys, whole microseconds from 0 on and a named track of a named process;
    slices of one track lie apart or within one another; each turn of an emulated mode says that it is one."""
    _, records = made_run()
    trace = trace_of(records)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    events = trace["traceEvents"]
    named: dict[str, set[tuple[int, int]]] = {"process_name": set(), "thread_name": set()}
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        assert event.keys() >= REQUIRED[event["ph"]]
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        if event["ph"] == "M":
            if event["name"] in named:
                assert isinstance(event["args"]["name"], str)
                named[event["name"]].add((event["pid"], event["tid"]))
            continue
        assert type(event["ts"]) is int
        assert event["ts"] >= 0
        if event["ph"] == "i":
            assert event["s"] in ("g", "p", "t")
            continue
        assert type(event["dur"]) is int
        assert event["dur"] >= 0
        slices_there = tracks.setdefault((event["pid"], event["tid"]), [])
        slices_there.append((event["ts"], event["ts"] + event["dur"]))
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] != "M"} <= named["thread_name"]
    assert {event["pid"] for event in events} == {process for process, _ in named["process_name"]}
    for spans in tracks.values():
        open_until: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)
    kinds = {record.turn: record.mode_kind for record in records}
    for event in slices(trace, "turn"):
        assert event["args"]["emulated"] == (kinds[event["args"]["turn"]] == "emulated")


def test_stages_meet_and_add_up_to_the_latency_in_whole_microseconds() -> None:
    """In every turn each stage begins where the one before ended, and all together last as long as V2V."""
    _, records = made_run()
    trace = trace_of(records)
    for record in records:
        own = [event for event in slices(trace, "stage") if event["args"]["turn"] == record.turn]
        stages = [event for event in own if event["name"] != "reply text"]
        if record.voice_to_voice_ms is None:
            assert stages == []
            continue
        assert [event["name"] for event in stages] == [stage.value for stage in Stage]
        for before, after in pairwise(stages):
            assert before["ts"] + before["dur"] == after["ts"]
        total = stages[-1]["ts"] + stages[-1]["dur"] - stages[0]["ts"]
        assert total == pytest.approx(record.voice_to_voice_ms * 1000, abs=1)
    for event in trace["traceEvents"]:
        for field in ("ts", "dur"):
            assert type(event.get(field, 0)) is int
            assert event.get(field, 0) >= 0


@given(st.lists(timelines, max_size=6))
def test_turns_never_overlap_and_hold_all_their_instants(made_timelines: list[Timeline]) -> None:
    """Whatever marks turns have, they lie one after another, each around its own marks and stages."""
    records = [
        made(place, marks=one.marks or made_marks(), without=() if one.marks else tuple(Mark), deltas=[])
        for place, one in enumerate(made_timelines)
    ]
    end = -1
    for turn in lay_out(records):
        assert turn.begin_ns > end
        end = turn.end_ns
        instants = [*turn.marks_ns.values(), *(at for _, *both in turn.stages_ns for at in both)]
        assert all(turn.begin_ns <= at <= turn.end_ns for at in instants)
        stages = stages_as_ms(turn.record.timeline)
        lengths = {stage.value: (last - first) / 1e6 for stage, first, last in turn.stages_ns}
        assert lengths == pytest.approx({k: v for k, v in (stages or {}).items() if v is not None})


def test_marks_are_instants_and_texts_are_arguments_unless_left_out() -> None:
    """Each mark is one instant of its turn; transcript and reply stand in the turn's arguments where kept."""
    records = [made(0), made(1, transcript=None, reply=None, first_clause=None)]
    trace = trace_of(records)
    marks = [
        event["name"] for event in trace["traceEvents"] if event["ph"] == "i" and event["args"]["turn"] == 0
    ]
    assert set(marks) == {mark.value for mark in Mark}
    kept, left_out = (event["args"] for event in slices(trace, "turn"))
    assert kept["reply"] == made(0).reply
    assert kept["transcript"] == "when do you open"
    assert not {"reply", "transcript"} & left_out.keys()


def test_a_turn_that_failed_is_there_with_its_outcome() -> None:
    """A turn without any mark shows as a slice of no length, named with how it ended."""
    records = [made(0, outcome="failed", reason="gone", without=tuple(Mark), deltas=[]), made(1)]
    first, second = slices(trace_of(records), "turn")
    assert (first["name"], first["dur"]) == ("sample-000, repeat 0: failed", 0)
    assert first["args"]["reason"] == "gone"
    assert second["ts"] > first["ts"]


def test_a_turn_is_a_span_with_a_child_for_each_stage() -> None:
    """Child spans carry the turn's ids, tile its V2V to the nanosecond, and the marks are events."""
    spans = spans_of([made(0, usage={"input_tokens": 7, "output_tokens": 20})])
    root, *children = spans
    assert [child["name"] for child in children] == [stage.value for stage in Stage]
    assert {child["traceId"] for child in children} == {root["traceId"]}
    assert {child["parentSpanId"] for child in children} == {root["spanId"]}
    assert "parentSpanId" not in root
    assert len({span["spanId"] for span in spans}) == len(spans)
    for before, after in pairwise(children):
        assert before["endTimeUnixNano"] == after["startTimeUnixNano"]
    length = int(children[-1]["endTimeUnixNano"]) - int(children[0]["startTimeUnixNano"])
    assert length == 700_000_000
    assert {event["name"] for event in root["events"]} == {mark.value for mark in Mark}
    told = {one["key"]: one["value"] for one in root["attributes"]}
    assert told["gen_ai.usage.output_tokens"] == {"intValue": "20"}
    assert told["voicebench.emulated"] == {"boolValue": False}
    assert told["voicebench.reply"] == {"stringValue": made(0).reply}


def test_spans_of_failed_turns_are_errors_and_ids_are_those_of_the_run() -> None:
    """A failed turn's span has the status error with the reason; a second export is the same to the byte."""
    records = [made(0, outcome="timed_out", reason="not over"), made(1)]
    failed = spans_of(records)[0]
    assert failed["status"] == {"code": 2, "message": "timed_out: not over"}
    assert spans_of(records) == spans_of(records)
    assert len({span["traceId"] for span in spans_of(records)}) == 2


def test_texts_that_utf8_cannot_hold_break_no_trace() -> None:
    """Lone surrogates in names, texts and reasons leave the trace and the spans readable."""
    half = "half \ud83d"
    records = [made(0, reply=half, sample=half, mode=half, outcome="failed", reason=half)]
    (turn,) = slices(trace_of(records), "turn")
    assert turn["args"]["reply"] == "half \ufffd"
    assert spans_of(records)[0]["status"]["message"] == "failed: half \ufffd"


def test_ids_are_hexadecimal_of_their_length() -> None:
    """OTLP's JSON form wants 32 and 16 lower-case hexadecimal digits, and times as text."""
    for span in spans_of([made(0)]):
        assert len(span["traceId"]) == 32
        assert len(span["spanId"]) == 16
        assert int(span["traceId"], 16) > 0
        assert isinstance(span["startTimeUnixNano"], str)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without opentelemetry-sdk the export says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtra, match=r"voicebench-testbed\[otel\]"):
        otel.export(build_report(run_info(), [made(0)]), [made(0)])


@pytest.mark.parametrize(
    ("name", "suffix"), [("trace", "trace.json"), ("otel", "otlp.json"), ("parquet", "parquet")]
)
def test_the_formats_are_known_by_name(name: str, suffix: str) -> None:
    """`--format` knows the name, and each file has a suffix of its own."""
    assert exporter(name)[1] == suffix
