"""When a turn is over, and how it ended: pure, from what was heard of it so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voicebench.audio.played import Played
from voicebench.audio.presence import WINDOW_MS
from voicebench.clock import NS_PER_MS, NS_PER_S
from voicebench.pipeline.marks import Attempt
from voicebench.pipeline.observer import Event, Kind
from voicebench.plan.config import Hear

if TYPE_CHECKING:
    from voicebench.pipeline.session import Heard

QUIET_S = 1.5
"""So long after the last sign of life a turn that nobody answers is over."""
UNHEARD_S = 5.0
"""So long after the last sign of life a person's turn is over of which no transcript comes."""
TAIL_S = 0.1
"""So much of a reply's end may chunking and resampling hold back."""
MADE_S = 0.2
"""So much of a reply sounds that need only be made."""


def open_turn(events: list[Event]) -> bool:
    """Has the person's turn begun and not ended?"""
    last = next((event for event in reversed(events) if event.kind in (Kind.TURN_START, Kind.TURN_END)), None)
    return last is not None and last.kind is Kind.TURN_START


def _unheard(heard: Heard) -> bool:
    """Has the person's open turn been detected to its end without a transcript, and is none being made?"""
    since = [event for event in heard.events if event.at_ns >= _last(heard.events, Kind.TURN_START)]
    stopped = _last(since, Kind.VAD_STOP) > _last(since, Kind.VAD_START)
    return stopped and not any(event.kind is Kind.TRANSCRIPT for event in since) and not heard.asr.running


def _last(events: list[Event], kind: Kind) -> int:
    return max((event.at_ns for event in events if event.kind is kind), default=0)


def judge(heard: Heard, now: int, hear: Hear) -> str | None:
    """Is the turn over at `now`, and how did it end? None: not yet.

    Called only when the person's speech is over.
    """
    found = heard.attempts()
    end = heard.speech_end_ns
    fresh = [one for one in found if end is None or one.turn_end_ns >= end]
    for attempt in fresh:
        ending = _judge_attempt(attempt, heard, now, hear)
        if ending is not None:
            # A transcript that is still being made would tell what the reply did not know.
            return None if ending == "answered" and heard.asr.running else ending
    speaking = open_turn(heard.events)
    if speaking and not _unheard(heard):
        return None
    if any(one.streams and one.streams[-1].running for one in found):
        return None
    cancelled = [one for one in fresh if _cancelled(one, heard.events)]
    broken = any(event.kind is Kind.ERROR for event in heard.events)
    owed = heard.asr.running or heard.tools.running or any(one.owed for one in fresh if one not in cancelled)
    if owed and not broken:
        return None
    quiet_since = max(
        [heard.playback.end_ns, heard.played.cursor_ns, *(event.at_ns for event in heard.events)]
        + [stream.end_ns or 0 for stream in heard.streams]
        + [call.end_ns or 0 for call in heard.tools.calls]
    )
    if now - quiet_since < (UNHEARD_S if speaking else QUIET_S) * NS_PER_S:
        return None
    return _judge_silence(heard, found, fresh, cancelled)


def _judge_attempt(attempt: Attempt, heard: Heard, now: int, hear: Hear) -> str | None:
    """How this attempt ends the turn; None where it does not, or not yet."""
    stream = attempt.stream
    if stream is None or stream.running:
        return None
    if stream.status in ("failed", "rate_limited", "overloaded", "timed_out"):
        if attempt.first_audible_ns is None or _heard_enough(attempt, heard.played, now, "onset"):
            return "error"
        return None
    if stream.first_text_ns is None and stream.status in ("ok", "truncated"):
        # A tool's result leads to a further request, whose reply is the answer.
        return None if stream.tool_calls and heard.tools.tools else "no_reply"
    if attempt.first_audible_ns is not None and _heard_enough(attempt, heard.played, now, hear):
        return "answered"
    return None


def _judge_silence(heard: Heard, found: list[Attempt], fresh: list[Attempt], cancelled: list[Attempt]) -> str:
    """How a turn ended in which nothing moves any more."""
    if any(one.first_audible_ns is not None for one in fresh):
        return "answered"
    if any(event.kind is Kind.ERROR for event in heard.events):
        return "error"
    if not any(one.streams for one in found):
        return "nobody_spoke"
    if not fresh:
        return "stale"
    if cancelled:
        return "cancelled"
    if any(one.stream is not None and one.stream.first_text_ns is not None for one in fresh):
        return "silent_reply"
    return "no_reply" if any(one.streams for one in fresh) else "stale"


def _cancelled(attempt: Attempt, events: list[Event]) -> bool:
    """Was this attempt's reply cancelled, as by a noise that was taken for speech, before it sounded?"""
    if attempt.stream is None or attempt.first_audible_ns is not None:
        return False
    asked = attempt.streams[0].request_ns
    after = max(asked, attempt.turn_end_ns)
    return attempt.stream.status == "cancelled" or _last(events, Kind.INTERRUPTION) > after


def _heard_enough(attempt: Attempt, played: Played, now: int, hear: Hear) -> bool:
    """Has as much of the reply sounded as is asked for?"""
    onset = attempt.first_audible_ns
    if onset is None or now < onset + WINDOW_MS * NS_PER_MS:
        # Before its first window has sounded whole, an interruption would leave no sound of it.
        return False
    if hear == "onset":
        return True
    if hear in ("reply", "made") and (attempt.owed or not attempt.speech_ended):
        return False
    wanted = attempt.first_clause_s if hear == "clause" else attempt.speech_s
    if wanted is None:
        return False
    if hear == "made":
        wanted = min(wanted, MADE_S)
    first_byte = attempt.audio[0].at_ns
    sounded = sum(min(now, run.end_ns) - run.start_ns for run in played.runs if run.start_ns >= first_byte)
    left = wanted - sounded / NS_PER_S
    return left <= 0 or (left <= TAIL_S and now >= played.cursor_ns)
