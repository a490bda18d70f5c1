"""From what was heard in a turn to its record: outcome, flags, marks, deltas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voicebench.clock import NS_PER_MS, ms
from voicebench.pipeline import marks
from voicebench.pipeline.ahead import note_prefetch, speculation_fields, speculation_ms
from voicebench.pipeline.contamination import limited
from voicebench.pipeline.marks import Answer, Attempt
from voicebench.pipeline.observer import Kind
from voicebench.pipeline.session import Heard
from voicebench.pipeline.tool_fields import request_fields, tool_fields, tool_work_ms
from voicebench.plan.modes import Mode
from voicebench.stages.prefetch import NOTE as PREFETCHED
from voicebench.turns.markup import holds_markup
from voicebench.turns.quality import answers_correctly, word_errors
from voicebench.turns.records import EXCLUDING_FLAGS, Flag, Outcome, TurnRecord, stages_as_ms
from voicebench.turns.stream import StreamLog
from voicebench.turns.stream_fields import (
    stream_caveats,
    stream_fields,
    stream_flags,
    stream_work_ms,
    total_usd,
)
from voicebench.turns.timeline import Anchor, Mark, Timeline

LATE_CHUNK_NS = 30 * NS_PER_MS
"""A frame of the source that is later than this is worth knowing."""


@dataclass(frozen=True)
class TurnFacts:
    """What is known of a turn before it is run."""

    run: str
    index: int
    repeat: int
    mode: Mode
    sample: str
    anchor: Anchor
    condition: str | None = None
    has_speech: bool | None = None
    reference: str | None = None
    acceptable: tuple[str, ...] = ()
    language: str | None = None
    caveats: tuple[str, ...] = ()
    heard: str = "clause"

    @property
    def fixed(self) -> dict[str, Any]:
        """The fields of a record that do not depend on how the turn went."""
        return {
            "run": self.run,
            "turn": self.index,
            "mode": self.mode.id,
            "mode_kind": self.mode.kind,
            "model": self.mode.model,
            "sample": self.sample,
            "condition": self.condition,
            "repeat": self.repeat,
            "speech_in_sample": self.has_speech,
            "anchor": self.anchor,
            "heard": self.heard,
        }


def failed_record(facts: TurnFacts, reason: str) -> TurnRecord:
    """The record of a turn that could not be run at all."""
    return TurnRecord(**facts.fixed, outcome=Outcome.FAILED, reason=reason, caveats=facts.caveats)


def record(facts: TurnFacts, heard: Heard) -> TurnRecord:
    """The record of a turn that was run."""
    found = heard.attempts()
    answer = marks.answer(found, heard.speech_end_ns)
    note_prefetch(answer, heard.notes.get(PREFETCHED))
    outcome, reason = judge_outcome(facts, heard, answer)
    timeline = Timeline(answer.marks)
    attempt = answer.attempt
    stream = attempt.stream if attempt else None
    transcript = " ".join(e.text.strip() for e in heard.events if e.kind is Kind.TRANSCRIPT and e.text)
    reply = stream.text if stream and stream.deltas else None
    told, estimated = _stream_fields(facts.mode, answer, heard, timeline)
    told |= _ahead_fields(facts.mode, heard, found, told)
    v2v = timeline.voice_to_voice_ns
    completed = outcome is Outcome.COMPLETED
    return TurnRecord(
        **facts.fixed,
        outcome=outcome,
        reason=reason,
        flags=_flags(facts.mode, heard, answer, stream, estimated) if completed else (),
        marks_ns=timeline.relative(),
        stages_ms=stages_as_ms(timeline) if completed else None,
        voice_to_voice_ms=None if v2v is None else ms(v2v),
        work_ms=_work(heard, stream, found),
        transcript=transcript or None,
        reply=reply,
        first_clause=attempt.requests[0].text if attempt and attempt.requests else None,
        spoken=" ".join(event.text for event in attempt.requests[: attempt.spoken])
        if attempt and attempt.spoken
        else None,
        clause_ready_ns=_from_slot(timeline, timeline.at(Mark.TTS_REQUEST)),
        speech_s=attempt.speech_s if attempt and attempt.audio else None,
        speech_wait_ms=None
        if attempt is None or attempt.first_audible_ns is None
        else ms(heard.played.waited_ns(attempt.first_audible_ns)),
        cutoffs=answer.cutoffs,
        wer=word_errors(facts.reference, transcript, facts.language),
        answer_correct=None
        if facts.mode.kind == "emulated" or not completed
        else answers_correctly(reply, facts.acceptable, facts.language),
        language=heard.notes.get("language"),
        language_probability=heard.notes.get("language_probability"),
        lag_ms=ms(heard.lag_ns),
        pipecat_ms=_pipecat_says(heard),
        cpu_busy=heard.load.busy,
        cpu_stolen=heard.load.stolen,
        caveats=_caveats(facts, heard, answer, timeline, outcome),
        **told,
    )


def judge_outcome(facts: TurnFacts, heard: Heard, answer: Answer) -> tuple[Outcome, str | None]:
    """Exactly one outcome, by the precedence of `Outcome`, and why."""
    attempt = answer.attempt
    stream = attempt.stream if attempt else None
    audible = attempt is not None and attempt.first_audible_ns is not None
    errors = [event for event in heard.events if event.kind is Kind.ERROR]
    if stream is not None and stream.status == "failed":
        return Outcome.FAILED, f"LLM: {stream.detail}"
    told = stream is not None and stream.status in ("rate_limited", "overloaded", "timed_out", "truncated")
    if errors and not audible and not told:
        return Outcome.FAILED, f"{errors[0].by}: {errors[0].text}"[:300]
    if heard.ending == "error" and not told:
        return Outcome.FAILED, "the pipeline stopped"
    has_text = stream is not None and stream.first_text_ns is not None
    if heard.ending == "silent_reply" or (heard.ending == "answered" and not audible):
        return Outcome.FAILED, "the reply has text, but no sound came of it"
    if heard.ending == "timed_out":
        return Outcome.TIMED_OUT, f"not over {_waiting_for(heard, answer)}"
    if stream is not None and stream.status in ("timed_out", "rate_limited", "overloaded"):
        return Outcome(stream.status), f"LLM: {stream.detail}"
    if stream is not None and stream.status == "truncated":
        return Outcome.TRUNCATED, stream.detail
    if heard.ending == "nobody_spoke":
        if any(event.kind is Kind.TRANSCRIPT for event in heard.events):
            return Outcome.FAILED, "a transcript came, but the language model was not asked"
        return Outcome.NO_SPEECH, None if facts.has_speech is False else "no speech was recognised"
    if heard.ending == "cancelled":
        return (
            Outcome.INTERRUPTED,
            "cancelled by noise: sound without words cancelled the reply before it sounded",
        )
    if not audible and (heard.ending == "stale" or answer.stale_heard):
        return Outcome.INTERRUPTED, "only a reply to half of what was said was heard"
    if not has_text:
        if stream is not None and stream.tool_calls:
            return Outcome.TOOL_CALL, "the reply is a tool call without text"
        return Outcome.EMPTY, "the reply has no text"
    return Outcome.COMPLETED, None


def _waiting_for(heard: Heard, answer: Answer) -> str:
    attempt = answer.attempt
    if attempt is None:
        said = any(event.kind is Kind.TRANSCRIPT for event in heard.events)
        return "and the turn was not ended" if said else "and no transcript came"
    stream = attempt.stream
    if stream is None:
        return "and the language model was not asked"
    if stream.running:
        return "and the language model's stream was still open"
    return "and the reply had not sounded"


def _stream_fields(
    mode: Mode, answer: Answer, heard: Heard, timeline: Timeline
) -> tuple[dict[str, Any], bool]:
    """What the stream says of the reply, as fields of a record, and whether its counts are an estimate."""
    attempt = answer.attempt
    stream = attempt.stream if attempt else None
    if attempt is None or stream is None:
        return {}, False
    origin = timeline.at(Mark.SPEECH_END)
    start = origin if origin is not None else min(timeline.marks.values(), default=stream.request_ns)
    fields, estimated = stream_fields(mode, stream, timeline.slot_start_ns, start)
    fields |= request_fields(mode, attempt.streams, start)
    return fields | tool_fields(heard.calls, start), estimated


def _from_slot(timeline: Timeline, at: int | None) -> int | None:
    start = timeline.slot_start_ns
    return None if at is None or start is None else max(0, at - start)


def _ahead_fields(mode: Mode, heard: Heard, found: list[Attempt], told: dict[str, Any]) -> dict[str, Any]:
    """What was asked ahead of the turn's end, and the turn's price with what was in vain."""
    fields = speculation_fields(mode, heard.streams, found)
    if fields.get("wasted_requests") and mode.price is not None:
        fields["usd"] = total_usd([fields["wasted_usd"], *([told["usd"]] if "usd" in told else [])])
    return fields


def _work(heard: Heard, stream: StreamLog | None, found: list[Attempt]) -> dict[str, float]:
    spent: dict[str, float] = {}
    ahead = speculation_ms(heard.streams, found)
    if ahead is not None:
        spent["llm_speculative"] = ahead
    for item in heard.work:
        spent[item.name] = spent.get(item.name, 0.0) + ms(item.end_ns - item.start_ns)
    if stream is not None:
        spent.update(stream_work_ms(stream))
    spent.update(tool_work_ms(heard.calls, None if stream is None else stream.first_text_ns))
    return spent


def _pipecat_says(heard: Heard) -> dict[str, float]:
    """pipecat's own latency figures of this turn: a cross-check, never the truth."""
    latency = heard.notes.get("pipecat_user_bot_latency_ms")
    return {} if latency is None else {"user_bot_latency": latency}


def _flags(
    mode: Mode, heard: Heard, answer: Answer, stream: StreamLog | None, estimated: bool
) -> tuple[Flag, ...]:
    found = []
    if limited(ms(heard.lag_ns), heard.load) is not None:
        found.append(Flag.CLIENT_LIMITED)
    if answer.cutoffs or _asked_too_early(heard, answer):
        found.append(Flag.CUTOFF)
    # Silence that is late once the turn's end is committed moves nothing.
    until = None if answer.attempt is None else answer.attempt.turn_end_ns
    if heard.playback.worst_late_until(until) > LATE_CHUNK_NS:
        found.append(Flag.LATE_CHUNK)
    if stream is not None:
        found.extend(stream_flags(mode, stream, estimated))
    if answer.attempt is not None:
        for other in answer.attempt.streams:
            found.extend(flag for flag in stream_flags(mode, other, False) if flag in EXCLUDING_FLAGS)
    return tuple(dict.fromkeys(found))


def _late_transcripts(heard: Heard, answer: Answer) -> bool:
    """Did a transcript come after the answered turn's end?"""
    attempt = answer.attempt
    return attempt is not None and any(
        event.kind is Kind.TRANSCRIPT and event.at_ns > attempt.turn_end_ns for event in heard.events
    )


def _asked_too_early(heard: Heard, answer: Answer) -> bool:
    """Was the model asked without the person's last words? Then the turn's end cut them off.

    A segment's transcript comes after its stop: where the turn ended on an earlier one and another came
    later, the request held half of what was said, and its latency flatters.
    """
    attempt = answer.attempt
    return (
        attempt is not None
        and heard.asr.by_segment
        and (attempt.transcript_ns or 0) < (attempt.vad_stop_ns or 0)
        and _late_transcripts(heard, answer)
    )


def _caveats(
    facts: TurnFacts, heard: Heard, answer: Answer, timeline: Timeline, outcome: Outcome
) -> tuple[str, ...]:
    """Codes of what a reader should know of this turn."""
    found = list(facts.caveats)
    attempt = answer.attempt
    stream = attempt.stream if attempt else None
    if stream is not None:
        found.extend(stream_caveats(facts.mode, stream))
    if outcome is Outcome.COMPLETED:
        found.extend(f"missing_{mark.value}" for mark in timeline.missing())
        if facts.has_speech is False:
            found.append("answered_silence")
    if attempt is not None:
        if _late_transcripts(heard, answer) and outcome is Outcome.COMPLETED:
            found.append("transcript_after_turn_end")
        if _asked_too_early(heard, answer):
            found.append("asked_before_last_transcript")
        if any(holds_markup(clause.text) for clause in attempt.requests):
            found.append("markup_spoken")
    noted = ("asr_fallback", "asr_out_of_time", "tts_whole_sentences")
    found.extend(code for code in noted if code in heard.notes)
    return tuple(dict.fromkeys(found))
