"""The turns: one line of stages each, slowest first; opened, a waterfall with what was said and done."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from voicebench.analysis.ledger import counts, was_cut_off
from voicebench.analysis.report import Report
from voicebench.clock import NS_PER_MS
from voicebench.export.html.look import Look
from voicebench.export.html.markup import Safe, cut, join, raw, tag, text, user_text
from voicebench.export.html.streams import streams_of
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.timeline import Mark, Stage

MOST_TURNS = 200
"""Of more turns a sample is shown."""
MOST_UNFOLDED = 12
"""A mode's further turns are folded away."""
SEEN_LAG_MS = 5.0
"""A shorter delay of the event loop is not told of a single turn."""
SPAN = 1000
"""Units across a turn's drawing."""

Addressed = Callable[[str], tuple[str, bool]]
"""From a recording's path in the run folder to its address, and whether that holds the recording itself."""

_RECORDING = re.compile(r"\.(flac|wav|ogg|opus|mp3)$", re.IGNORECASE)


def chosen(records: Sequence[TurnRecord], most: int) -> list[TurnRecord]:
    """At most `most` turns, slowest first, those without a latency last.

    Of more turns the slowest, the quickest and those evenly between them by rank are taken; at least a fifth
    of the places is for turns without a latency, where there are so many.
    """
    timed = sorted(
        (record for record in records if record.voice_to_voice_ms is not None),
        key=lambda record: (-(record.voice_to_voice_ms or 0.0), record.turn),
    )
    others = sorted(
        (record for record in records if record.voice_to_voice_ms is None), key=lambda one: one.turn
    )
    if len(records) <= most:
        return [*timed, *others]
    room = min(len(others), max(most // 5, most - len(timed)))
    return [*_evenly(timed, most - room), *_evenly(others, room)]


def _evenly(records: Sequence[TurnRecord], most: int) -> list[TurnRecord]:
    if most <= 0 or not records:
        return []
    if len(records) <= most:
        return list(records)
    if most == 1:
        return [records[0]]
    return [records[round(place * (len(records) - 1) / (most - 1))] for place in range(most)]


def shares_of(sizes: Sequence[int], most: int) -> list[int]:
    """How many of `most` places each of several modes gets: all alike, what one leaves goes to the others."""
    given, left = [0] * len(sizes), most
    order = sorted(range(len(sizes)), key=lambda place: sizes[place])
    for rank, place in enumerate(order):
        given[place] = min(sizes[place], left // (len(order) - rank))
        left -= given[place]
    return given


def turns_section(
    report: Report,
    groups: Sequence[tuple[Look, Sequence[TurnRecord]]],
    address_of: Addressed,
    most: int = MOST_TURNS,
) -> Safe:
    """The turns of every mode; the slowest of the first is open."""
    places = shares_of([len(records) for _, records in groups], most)
    parts = []
    opened = False
    for (look, records), room in zip(groups, places, strict=True):
        shown = chosen(records, room)
        times = [record.voice_to_voice_ms or 0.0 for record in shown]
        span = max([report.budget_ms * 1.1, *times])
        rows = []
        for record in shown:
            first = not opened and record.stages_ms is not None
            opened = opened or first
            rows.append(_turn(report, record, span, address_of, first))
        told = "One turn." if len(shown) == 1 else f"{len(shown)} turns, slowest first."
        if len(shown) < len(records):
            told = f"A sample of {len(shown)} of {len(records)} turns, evenly by rank, slowest first."
        parts.append(
            tag(
                "section",
                tag("h3", look.chip()),
                tag("p", told, class_="mute"),
                *rows[:MOST_UNFOLDED],
                _folded(rows[MOST_UNFOLDED:]),
                class_=f"turns {look.classes}",
            )
        )
    return join(*parts)


def _folded(rows: Sequence[Safe]) -> Safe | None:
    if not rows:
        return None
    return tag("details", tag("summary", f"The other {len(rows)} turns"), *rows, class_="more")


def _turn(report: Report, record: TurnRecord, span: float, address_of: Addressed, opened: bool) -> Safe:
    summary = tag(
        "summary",
        tag("bdi", f"{cut(record.sample, 60)} · {record.repeat + 1}"),
        _stages(report, record, span),
        _latency(report, record),
        class_=None if record.stages_ms is not None else "bare",
    )
    return tag("details", summary, _body(record, address_of), name="turn", open=opened)


def _latency(report: Report, record: TurnRecord) -> Safe:
    if record.outcome is not Outcome.COMPLETED or record.voice_to_voice_ms is None:
        return tag("b", record.outcome.value.replace("_", " "), class_="over")
    kept = None if counts(record) else tag("small", "not counted")
    late = record.voice_to_voice_ms > report.budget_ms
    return tag("b", f"{record.voice_to_voice_ms:.0f}", kept, class_="over" if late else None)


def _stages(report: Report, record: TurnRecord, span: float) -> Safe:
    """The stages in one line; when the turn is opened the styles give each a line of its own."""
    if record.stages_ms is None:
        told = (
            "cut off: the agent sounded before the person had ended"
            if was_cut_off(record)
            else record.reason or ""
        )
        return tag("span", user_text(told, 120), class_="mute why")
    scale = SPAN / span
    at, bars, names = 0.0, [], []
    for stage in Stage:
        part = record.stages_ms.get(stage.value)
        x, wide = at * scale, (part or 0.0) * scale
        at += part or 0.0
        bars.append(tag("path", d=f"M{x:.0f} 6H{x + wide:.0f}"))
        shown = "–" if part is None else f"{part:.0f}"
        names.append(shown)
    budget = f"{report.budget_ms * scale:.0f}"
    drawn = tag(
        "svg",
        *bars,
        tag("path", d=f"M{budget} 0v12"),
        viewBox=f"0 0 {SPAN} 12",
        preserveAspectRatio="none",
    )
    return tag("span", drawn, tag("span", raw("\n".join(names)), class_="names"), class_="fall")


def _body(record: TurnRecord, address_of: Addressed) -> Safe:
    return tag(
        "div",
        tag("p", _heard(record)),
        tag("p", _replied(record)),
        tag("p", _beside(record)),
        streams_of(record),
        _recording(record, address_of),
        class_="said",
    )


def _heard(record: TurnRecord) -> Safe:
    if record.transcript is None:
        return tag("span", "the text was not kept", class_="mute")
    errors = f" {record.wer.errors} of {record.wer.words} words wrong" if record.wer else None
    return join(tag("q", cut(record.transcript)), tag("small", errors) if errors else None)


def _replied(record: TurnRecord) -> Safe:
    if record.reply is None:
        return tag("span", "no text, or it was not kept", class_="mute")
    clause = record.first_clause or ""
    if clause and record.reply.startswith(clause):
        rest = record.reply[len(clause) :]
        return tag("q", tag("mark", cut(clause)), " " if rest[:1].isspace() else None, cut(rest))
    first = join(" First clause: ", tag("mark", cut(clause))) if clause else None
    return join(tag("q", cut(record.reply)), first)


def _beside(record: TurnRecord) -> Safe:
    """Outcome, flags, work beside the stages, what was asked and served, caveats by their names."""
    told = [record.outcome.value.replace("_", " ")] if record.outcome is not Outcome.COMPLETED else []
    told += [record.reason] if record.reason else []
    told += [flag.value.replace("_", " ") for flag in record.flags]
    told += [f"{name} {value:.0f} ms" for name, value in record.work_ms.items()]
    request, token = (
        record.marks_ns.get(Mark.LLM_REQUEST.value),
        record.marks_ns.get(Mark.LLM_FIRST_TOKEN.value),
    )
    if request is not None and token is not None:
        told.append(f"first token {(token - request) / NS_PER_MS:.0f} ms")
    if record.deltas:
        told.append(f"{sum(count for _, _, count in record.deltas):.0f} tokens")
    told += [f"asked {name} {value}" for name, value in record.asked.items()]
    told += [f"served {name} {value}" for name, value in record.served.items()]
    told += [f"{len(record.attempts)} attempts"] if len(record.attempts) > 1 else []
    told += (
        [f"answer {'right' if record.answer_correct else 'wrong'}"]
        if record.answer_correct is not None
        else []
    )
    told += [f"${record.usd:.5f}"] if record.usd is not None else []
    told += [f"lag {record.lag_ms:.1f} ms"] if (record.lag_ms or 0) >= SEEN_LAG_MS else []
    told += [caveat.replace("_", " ") for caveat in record.caveats]
    return text(cut(" · ".join(told)))


def recording_path(record: TurnRecord) -> str | None:
    """The recording's path as a link within the run folder; None where it leads anywhere else."""
    if record.audio is None:
        return None
    path = PurePosixPath(record.audio)
    plain = all(part not in ("..", ".") for part in path.parts) and "\\" not in record.audio
    if not plain or path.is_absolute() or path.parts[:1] != ("audio",) or not _RECORDING.search(path.name):
        return None
    return ("\0" not in record.audio and str(path)) or None


def _recording(record: TurnRecord, address_of: Addressed) -> Safe | None:
    path = recording_path(record)
    if path is None:
        return None
    address, whole = address_of(path)
    return tag(
        "p",
        tag("audio", controls=True, preload="none", src=address, aria_label="Recording, the person left"),
        None if whole else tag("a", "Recording (the person left, the agent right)", href=address),
        class_="listen",
    )


def stage_names() -> str:
    """The style that puts the stages' names beside their figures, and heads over what was said, in a turn."""
    names = "\\A ".join(stage.value for stage in Stage)
    heads = "".join(
        f'.said>p:nth-child({place})::before{{content:"{head}"}}'
        for place, head in enumerate(("Heard", "Replied", "Beside"), start=1)
    )
    return f'.names::before{{content:"{names}"}}{heads}'


def stage_key() -> Safe:
    """The three families of stage colour in words, for the head of a section."""
    return join(
        tag("span", "listening", class_="listen strong"),
        " comes first, then the ",
        tag("span", "model", class_="model strong"),
        ", then the ",
        tag("span", "voice", class_="speak strong"),
    )
