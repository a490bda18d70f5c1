"""What a record says of work done ahead of the turn's end: what of it served, and what was in vain. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voicebench.clock import ms
from voicebench.pipeline.marks import Answer, Attempt
from voicebench.plan.modes import Mode
from voicebench.stages.prefetch import Fetched
from voicebench.turns.price import usd_of
from voicebench.turns.records import Usage
from voicebench.turns.stream import StreamLog
from voicebench.turns.stream_fields import total_usd, usd_of_stream
from voicebench.turns.timeline import Mark
from voicebench.turns.tokens import share_out


def note_prefetch(answer: Answer, made: Fetched | None) -> None:
    """Set the marks of speech synthesis to what they were, where the answer's first clause was made ahead."""
    attempt = answer.attempt
    if made is None or attempt is None or not attempt.requests or not attempt.streams:
        return
    if attempt.requests[0].text.strip() != made.text or made.request_ns < attempt.streams[0].request_ns:
        return
    for mark, at in ((Mark.TTS_REQUEST, made.request_ns), (Mark.TTS_FIRST_BYTE, made.first_byte_ns)):
        if at is not None and mark in answer.marks:
            answer.marks[mark] = min(answer.marks[mark], at)


def speculation_fields(mode: Mode, streams: Sequence[StreamLog], found: Sequence[Attempt]) -> dict[str, Any]:
    """The fields of a turn in which requests were made ahead of its end; none where there were none.

    Wasted are those that no committed end of turn took up. What they produced is counted by the provider's
    usage, and where none came, as for a stream that was broken off, by the text that had come.
    """
    ahead = [stream for stream in streams if stream.speculative]
    if not ahead:
        return {}
    taken = {id(stream) for attempt in found for stream in attempt.streams}
    wasted = [stream for stream in ahead if id(stream) not in taken]
    told: dict[str, Any] = {"speculative_requests": len(ahead), "wasted_requests": len(wasted)}
    if wasted:
        prompts = [one.usage.input_tokens for one in streams if one.usage and one.usage.input_tokens]
        prompt = max(prompts, default=None)
        told["wasted_tokens"] = sum(_tokens(mode, stream) for stream in wasted)
        told["wasted_usd"] = total_usd([_usd(mode, stream, prompt) for stream in wasted])
    return told


def speculation_ms(streams: Sequence[StreamLog], found: Sequence[Attempt]) -> float | None:
    """How long models were at work ahead of the turn's end, in ms; None where none was.

    A request that was taken up counts until its turn's end, a wasted one until its own.
    """
    ends = {id(stream): attempt.turn_end_ns for attempt in found for stream in attempt.streams}
    spent = [
        max(0, min(end, ends.get(id(stream), end)) - stream.request_ns)
        for stream in streams
        if stream.speculative and (end := stream.end_ns or ends.get(id(stream))) is not None
    ]
    return ms(sum(spent)) if spent else None


def _tokens(mode: Mode, stream: StreamLog) -> float:
    if stream.usage is not None and stream.usage.output_tokens is not None:
        return float(stream.usage.output_tokens)
    counts, _, _ = share_out([text for _, text in stream.deltas], None, mode.tokenizer)
    return sum(counts)


def _usd(mode: Mode, stream: StreamLog, prompt_tokens: int | None) -> float | None:
    """Its cost; without usage by the longest prompt of the turn and the text that had come."""
    known = usd_of_stream(mode, stream)
    if known is not None or prompt_tokens is None:
        return known
    usage = Usage(input_tokens=prompt_tokens, output_tokens=round(_tokens(mode, stream)))
    return usd_of(mode.price, usage)
