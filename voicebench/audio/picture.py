"""A picture of a call: who spoke when, and how long the user waited each time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.drawing import Bars, Box, Drawing, Line, Words
from voicebench.audio.waveform import Conversation, Segment, Turn

WIDTH = 1280
ROW_S = 30.0
"""How many seconds of a long call one row holds."""
_LEFT = 84.0
_RIGHT = 24.0
_TOP = 96.0
_BAND = 58.0
_LANE = 46.0
_AXIS = 30.0
_ROW = 2 * _BAND + _LANE + _AXIS + 22.0
_COLUMN = 2.0
_LABEL_SIZE = 12.5
_BOTTOM = 20.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the picture: the time it shows and where it lies."""

    start_s: float
    length_s: float
    top: float

    def x(self, at_s: float) -> float:
        """Where an instant lies, kept within the row."""
        share = (at_s - self.start_s) / self.length_s
        return _LEFT + min(1.0, max(0.0, share)) * (WIDTH - _LEFT - _RIGHT)

    def holds(self, start_s: float, end_s: float) -> bool:
        """Does any of this stretch lie in the row?"""
        return end_s > self.start_s and start_s < self.start_s + self.length_s

    @property
    def user_top(self) -> float:
        """The upper edge of the user's band."""
        return self.top

    @property
    def lane_top(self) -> float:
        """The upper edge of the lane between the bands, where the waits stand."""
        return self.top + _BAND

    @property
    def agent_top(self) -> float:
        """The upper edge of the agent's band."""
        return self.top + _BAND + _LANE

    @property
    def bottom(self) -> float:
        """The lower edge of the agent's band."""
        return self.agent_top + _BAND


def draw_conversation(
    found: Conversation,
    user: NDArray[np.float32],
    agent: NDArray[np.float32],
    *,
    title: str,
    summary: str,
    budget_ms: float,
) -> Drawing:
    """The call as a drawing, 1280 wide: a row of at most 30 s under the other.

    `user` and `agent` are the channels that `found` was made from. Each row has the user's waveform above and
    the agent's below; between them every wait with its milliseconds, those beyond `budget_ms` marked as such,
    and where both speak. What was taken for no speech is drawn pale. `title` and `summary` head the picture.
    """
    length = _row_length(found.duration_s)
    count = max(1, math.ceil(found.duration_s / length - 1e-9))
    rows = [_Row(i * length, length, _TOP + 22 + i * _ROW) for i in range(count)]
    drawing = Drawing(
        width=WIDTH,
        height=round(_TOP + 22 + count * _ROW + _BOTTOM),
        title=f"Voice-to-voice latency in {title}",
        about=f"{summary} The user's speech above, the agent's below, the waits between them in ms.",
    )
    drawing.shapes.append(Words(_LEFT, 34, title, "ink", 19, "start", True))
    drawing.shapes.append(Words(_LEFT, 57, summary, "soft", 13.5))
    _legend(drawing, found, budget_ms)
    for row in rows:
        _background(drawing, row, found)
        _waits(drawing, row, found, budget_ms)
        _waveform(drawing, row, user, found.sample_rate, found.user.segments, "user", row.user_top)
        _waveform(drawing, row, agent, found.sample_rate, found.agent.segments, "agent", row.agent_top)
        _overlaps(drawing, row, found)
        _axis(drawing, row, found.duration_s)
    _labels(drawing, rows, found, budget_ms)
    return drawing


def _row_length(duration_s: float) -> float:
    """30 s for a long call; a short one fills the width, in whole seconds."""
    return ROW_S if duration_s > ROW_S else max(4.0, float(math.ceil(duration_s)))


def _legend(drawing: Drawing, found: Conversation, budget_ms: float) -> None:
    """What the colours mean, under the heading, and the signs of those waits that carry one."""
    x, y = _LEFT, 84.0
    for colour, hatched, text in (
        ("within", False, f"wait of at most {budget_ms:g} ms"),
        ("over", False, f"wait over {budget_ms:g} ms"),
        ("both", True, "both speak"),
        ("user", False, "user"),
        ("agent", False, "agent"),
        ("faint", False, "taken for no speech"),
    ):
        drawing.shapes.append(Box(x, y - 10, 18, 11, colour, hatched))
        drawing.shapes.append(Words(x + 24, y, text, "soft", 12))
        x += 24 + _legend_width(text) + 22
    signs = []
    if any(turn.voice_to_voice_ms is not None and turn.voice_to_voice_ms < 0 for turn in found.turns):
        signs.append("−: the agent began before the user had ended")
    if any(not turn.certain for turn in found.turns):
        signs.append("?: not certain, not in the figures")
    if signs:
        drawing.shapes.append(Words(_LEFT, y + 20, "     ".join(signs), "soft", 12))


def _background(drawing: Drawing, row: _Row, found: Conversation) -> None:
    """The bands, tinted where their speaker speaks, and their names."""
    right = row.x(min(row.start_s + row.length_s, found.duration_s))
    for top, name, segments in (
        (row.user_top, "user", found.user.segments),
        (row.agent_top, "agent", found.agent.segments),
    ):
        drawing.shapes.append(Words(_LEFT - 12, top + _BAND / 2 + 4, name, name, 13, "end", True))
        for segment in segments:
            if row.holds(segment.start_s, segment.end_s):
                x = row.x(segment.start_s)
                tip = f"{name}: {segment.start_s:.3f} to {segment.end_s:.3f} s"
                width = max(1.0, row.x(segment.end_s) - x)
                drawing.shapes.append(Box(x, top, width, _BAND, f"{name}_band", False, tip))
        drawing.shapes.append(Line(_LEFT, top + _BAND / 2, right, top + _BAND / 2, "rule"))


def _waveform(
    drawing: Drawing,
    row: _Row,
    samples: NDArray[np.float32],
    sample_rate: int,
    segments: tuple[Segment, ...],
    colour: str,
    top: float,
) -> None:
    """The channel's outline: strong where its speaker speaks, pale elsewhere; heights are compressed."""
    peak = float(np.max(np.abs(samples), initial=0.0))
    if peak <= 0:
        return
    columns = int((WIDTH - _LEFT - _RIGHT) / _COLUMN)
    edges = (row.start_s + np.arange(columns + 1) / columns * row.length_s) * sample_rate
    edges = edges.astype(np.int64)
    strong: list[tuple[float, float, float]] = []
    pale: list[tuple[float, float, float]] = []
    spans = [(s.start_s, s.end_s) for s in segments if row.holds(s.start_s, s.end_s)]
    middle = top + _BAND / 2
    for i in range(columns):
        part = samples[edges[i] : max(edges[i] + 1, edges[i + 1])]
        if part.size == 0:
            break
        height = (float(np.max(np.abs(part))) / peak) ** 0.6 * (_BAND / 2 - 3)
        if height < 0.4:
            continue
        at = (edges[i] + edges[i + 1]) / 2 / sample_rate
        inside = any(start <= at <= end for start, end in spans)
        x = _LEFT + (i + 0.5) * _COLUMN
        (strong if inside else pale).append((x, middle - height, middle + height))
    drawing.shapes.append(Bars(tuple(pale), "faint", _COLUMN * 0.7))
    drawing.shapes.append(Bars(tuple(strong), colour, _COLUMN * 0.7))


def _waits(drawing: Drawing, row: _Row, found: Conversation, budget_ms: float) -> None:
    """Each wait as a tinted block from the user's end to the agent's onset."""
    for turn in found.turns:
        if turn.agent_onset_s is None or turn.voice_to_voice_ms is None or turn.voice_to_voice_ms < 0:
            continue
        if not row.holds(turn.user_end_s, turn.agent_onset_s):
            continue
        colour = "over" if turn.voice_to_voice_ms > budget_ms else "within"
        x = row.x(turn.user_end_s)
        width = max(1.0, row.x(turn.agent_onset_s) - x)
        tip = f"{wait_text(turn)}: from {turn.user_end_s:.3f} to {turn.agent_onset_s:.3f} s"
        drawing.shapes.append(Box(x, row.user_top, width, 2 * _BAND + _LANE, colour, False, tip))


def _overlaps(drawing: Drawing, row: _Row, found: Conversation) -> None:
    """Where both speak, hatched in the lane between the bands."""
    for overlap in found.overlaps:
        if row.holds(overlap.start_s, overlap.end_s):
            x = row.x(overlap.start_s)
            width = max(2.0, row.x(overlap.end_s) - x)
            tip = f"both speak for {overlap.duration_s * 1000:.0f} ms; the {overlap.began} came in"
            drawing.shapes.append(Box(x, row.lane_top + _LANE - 13, width, 11, "both", True, tip))


def _axis(drawing: Drawing, row: _Row, duration_s: float) -> None:
    """The time axis: a tick for each second (each five in long rows), with minutes and seconds."""
    y = row.bottom + 6
    end = min(row.start_s + row.length_s, duration_s)
    drawing.shapes.append(Line(_LEFT, y, row.x(end), y, "rule"))
    step = 1 if row.length_s <= 15 else 5
    for second in range(math.ceil(row.start_s), math.floor(end + 1e-9) + 1):
        x = row.x(second)
        major = second % step == 0
        drawing.shapes.append(Line(x, y, x, y + (6 if major else 3), "soft" if major else "rule"))
        if major:
            text = f"{second // 60}:{second % 60:02d}"
            drawing.shapes.append(Words(x, y + 19, text, "soft", 11.5, "middle"))


def _labels(drawing: Drawing, rows: list[_Row], found: Conversation, budget_ms: float) -> None:
    """The waits in figures, in two lines of the lane so that close ones do not meet."""
    for row in rows:
        reached = [_LEFT - 6, _LEFT - 6]
        for turn, text, middle_s in _labelled(found, budget_ms):
            if not row.start_s <= middle_s < row.start_s + row.length_s:
                continue
            over = turn.voice_to_voice_ms is None or turn.voice_to_voice_ms > budget_ms
            early = turn.voice_to_voice_ms is not None and turn.voice_to_voice_ms < 0
            half = _text_width(text, _LABEL_SIZE) / 2 + 3
            x = min(max(row.x(middle_s), _LEFT + half - 6), WIDTH - half - 4)
            level = 0 if x - half >= reached[0] or reached[0] <= reached[1] else 1
            if x - half < reached[level]:
                x = min(reached[level] + half, WIDTH - half - 4)
            reached[level] = x + half
            y = row.lane_top + 13 + level * 15
            colour = "both" if early else "over_ink" if over else "within_ink"
            drawing.shapes.append(Box(x - half, y - 11.5, 2 * half, 15, "paper"))
            drawing.shapes.append(Words(x, y, text, colour, _LABEL_SIZE, "middle", True))


def _labelled(found: Conversation, budget_ms: float) -> Iterator[tuple[Turn, str, float]]:
    """Each turn with its label and the instant under which the label belongs."""
    for turn in found.turns:
        onset, wait = turn.agent_onset_s, turn.voice_to_voice_ms
        over = " over" if wait is not None and wait > budget_ms else ""
        middle = turn.user_end_s if onset is None else (turn.user_end_s + onset) / 2
        yield turn, wait_text(turn) + over, middle


def wait_text(turn: Turn) -> str:
    """A turn's wait as a label: "740 ms", "-400 ms" with a true minus; "?" after an uncertain one."""
    if turn.voice_to_voice_ms is None:
        text = "no reply"
    else:
        rounded = round(turn.voice_to_voice_ms)
        text = f"{'−' if rounded < 0 else ''}{abs(rounded):,} ms"
    return f"{text}{'' if turn.certain else ' ?'}{', interrupted' if turn.interrupted else ''}"


def _legend_width(text: str) -> float:
    """How wide a legend's words are at most, in pixels: the fonts differ, and more words than figures."""
    return 0.5 * 12 * len(text) + 6


def _text_width(text: str, size: float) -> float:
    """About how wide a line of text is, in pixels."""
    return 0.58 * size * len(text)
