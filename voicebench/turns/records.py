"""What is kept of a turn: outcome, flags, marks, text, and what the provider said: a line of the journal."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from voicebench.clock import ms
from voicebench.turns.deltas import Deltas
from voicebench.turns.timeline import Anchor, Mark, Stage, Timeline

ModeKind = Literal["live", "local", "emulated"]


class Outcome(StrEnum):
    """How a planned turn ended: exactly one, and where several fit the first in this order."""

    FAILED = "failed"
    TIMED_OUT = "timed_out"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TRUNCATED = "truncated"
    NO_SPEECH = "no_speech"
    INTERRUPTED = "interrupted"
    EMPTY = "empty"
    TOOL_CALL = "tool_call"
    COMPLETED = "completed"


class Flag(StrEnum):
    """What is worth knowing of a completed turn."""

    ASKED_NOT_SERVED = "asked_not_served"
    """The provider served another speed or tier than was asked for."""
    RETRIED = "retried"
    """A request was repeated by our own retry; latency runs from the first attempt."""
    CLIENT_LIMITED = "client_limited"
    """This machine was too busy to be believed."""
    CUTOFF = "cutoff"
    """The turn was ended before the person had stopped speaking."""
    LENGTH = "length"
    """The reply was cut by the token limit."""
    LATE_CHUNK = "late_chunk"
    """The audio source was late by more than its tolerance."""
    COUNT_ESTIMATED = "count_estimated"
    """Tokens were counted without the provider's final usage."""


EXCLUDING_FLAGS = frozenset({Flag.ASKED_NOT_SERVED, Flag.RETRIED, Flag.CLIENT_LIMITED, Flag.CUTOFF})
"""A turn that carries one of these stays out of the latency statistics, and is counted as excluded."""


class Frozen(BaseModel):
    """A value: immutable, and any unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Usage(Frozen):
    """Tokens as the provider reported them at the end of its stream. None: not reported."""

    input_tokens: int | None = None
    """All prompt tokens, cached ones included."""
    output_tokens: int | None = None
    """All tokens produced, reasoning included."""
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def visible_tokens(self) -> int | None:
        """Output tokens less the reasoning ones; None where the output was not reported."""
        if self.output_tokens is None:
            return None
        return max(0, self.output_tokens - (self.reasoning_tokens or 0))


class Attempt(Frozen):
    """One call to the provider within a turn's request."""

    request_ns: int
    """Instant of the call, in ns from the turn's `speech_end`."""
    end_ns: int | None = None
    """Instant at which the stream or the error ended, likewise."""
    status: str
    """`ok`, `truncated`, `cancelled`, `rate_limited`, `overloaded`, `failed` or `timed_out`."""
    detail: str = ""


class StreamRecord(Frozen):
    """One stream of a turn that had several: a candidate of a set, or a request before or after a tool call.
    Instants are ns from the turn's `speech_end`; None: it did not happen."""

    mode: str
    request_ns: int
    first_text_ns: int | None = None
    clause_ns: int | None = None
    """When its first clause was complete; None also where nobody looked."""
    end_ns: int | None = None
    status: str
    detail: str = ""
    chosen: bool | None = None
    """Was it the candidate that was taken? None: it was none."""
    score: float | None = None
    deltas: tuple[tuple[int, int], ...] = ()
    """Each visible text delta: ns from this stream's request, characters."""
    reply: str | None = None
    tool_calls: int = 0
    finish_reason: str | None = None
    usage: Usage | None = None
    usd: float | None = None
    served: dict[str, Any] = Field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()


class ToolCall(Frozen):
    """One call of a tool. Instants are ns from the turn's `speech_end`."""

    name: str
    start_ns: int
    end_ns: int | None = None
    """None: it had not ended when the turn was over, or it was cancelled."""
    arguments: str | None = None
    """As JSON."""
    error: str | None = None
    """What it raised; the model was told so."""


class Wer(Frozen):
    """Word errors of one transcript against its reference."""

    errors: int
    """Substitutions + deletions + insertions."""
    words: int
    """Words of the reference."""


class TurnRecord(Frozen):
    """One planned turn and what became of it: a line of `turns.jsonl`. Add fields freely, rename none."""

    run: str
    turn: int
    """Position in the plan, from 0."""
    mode: str
    mode_kind: ModeKind
    model: str
    sample: str
    """The sample's id."""
    condition: str | None = None
    repeat: int
    """From 0."""
    speech_in_sample: bool | None = None
    """Does the sample hold speech? None: nobody knows."""
    outcome: Outcome
    reason: str | None = None
    """Why the outcome is what it is, in words; None for a completed turn."""
    flags: tuple[Flag, ...] = ()
    anchor: Anchor
    marks_ns: dict[str, int] = Field(default_factory=dict)
    """Marks in ns from `speech_end` (from the turn's first mark where there was no speech)."""
    stages_ms: dict[str, float | None] | None = None
    """ns / 1e6, unrounded. A stage without its mark is None; all is None where V2V is missing or negative."""
    voice_to_voice_ms: float | None = None
    """ns / 1e6, unrounded."""
    work_ms: dict[str, float] = Field(default_factory=dict)
    """Work inside or beside the stages (asr, turn_model, llm_total ...), never summed."""
    deltas: Deltas = Deltas()
    """Each visible text delta: ns from the slot's start, characters, tokens (may be fractional). Negative:
    it came ahead of the slot, over a request made ahead of the turn's end."""
    token_count: str | None = None
    """How the deltas' tokens were counted, e.g. `usage` or `o200k, scaled to usage`. None without text."""
    clause_ready_ns: int | None = None
    """When the first speakable clause was complete, in ns from the slot's start. None: it never was."""
    reply_end_ns: int | None = None
    """When the last text had come, in ns from the slot's start, negative where ahead of it. None: the reply
    did not end by itself."""
    transcript: str | None = None
    reply: str | None = None
    spoken: str | None = None
    """The text that speech synthesis made `speech_s` of; None where it made none, or texts are left out."""
    first_clause: str | None = None
    speech_s: float | None = None
    """Seconds of speech that synthesis made of the text it was given, None where it made none."""
    speech_wait_ms: float | None = None
    """For how long the reply, as far as it was heard, stood silent in its midst since the next of its audio
    was not made yet: at a sentence's end, or, with a voice that speaks in pieces, within one. None: it did
    not sound, or the record is older than the figure."""
    usage: Usage | None = None
    asked: dict[str, Any] = Field(default_factory=dict)
    """Request options that name a speed, tier or effort."""
    served: dict[str, Any] = Field(default_factory=dict)
    """What the provider said it served."""
    finish_reason: str | None = None
    attempts: tuple[Attempt, ...] = ()
    choice: dict[str, Any] = Field(default_factory=dict)
    """For a mode made of several: the mode that answered, and by which rule."""
    candidates: tuple[StreamRecord, ...] = ()
    """The streams of a set of candidates; `usd` is the sum over them."""
    requests: tuple[StreamRecord, ...] = ()
    """The turn's requests, where a tool call led to a further one; `usd` is the sum over them."""
    tools: tuple[ToolCall, ...] = ()
    request_id: str | None = None
    """The provider's own id of the request; None where it told none."""
    new_connection: bool | None = None
    """Was a connection opened for the request? None: not seen."""
    connect_ms: float | None = None
    """How long opening it took: name look-up, TCP and TLS. None for a connection that was open."""
    barge_in_ms: float | None = None
    """From the person's first sound over the agent to the agent's last; None: nobody spoke over it."""
    uncertainty_ms: float | None = None
    """By how much V2V may be off for what the sound devices' clocks leave open; None: no device was used."""
    anchor_detail: str | None = None
    """How `speech_end` was found beyond what its anchor says; None: nothing to add."""
    cutoffs: int = 0
    """Turn ends that were committed before the person had stopped."""
    wer: Wer | None = None
    answer_correct: bool | None = None
    """None where the sample has no acceptable answers, or the reply is scripted."""
    language: str | None = None
    """What the ASR heard: the language that its settings name, else the one that it detected."""
    language_probability: float | None = None
    """Of the detected language; None where it was not detected but named."""
    usd: float | None = None
    """What the turn's requests cost, those in vain included."""
    speculative_requests: int = 0
    """Requests made ahead of the turn's end, on an early transcript."""
    wasted_requests: int = 0
    """Those of them that were dropped: the person went on, or had said something else."""
    wasted_tokens: float | None = None
    """Tokens that the wasted ones had produced, by the provider's count or the text that had come; None: none
    was wasted."""
    wasted_usd: float | None = None
    """What they cost; None: none was wasted, or the price or the counts are not known."""
    session: int | None = None
    """Which of the run's sessions ran it, from 0; None: the run has one."""
    queue_ms: float | None = None
    """From the instant at which the run's schedule wanted the turn begun to the one at which it was; None:
    the run has no schedule."""
    service_ms: float | None = None
    """Its own latency, without that wait: V2V; of a request without audio, from the request to the reply's
    end. None without a schedule, and where the turn has none."""
    from_schedule_ms: float | None = None
    """The latency from the schedule: `queue_ms` + `service_ms`. None where either is."""
    lag_ms: float | None = None
    """The longest delay of the event loop during the turn."""
    cpu_busy: float | None = None
    """Share of the machine's processor time in use during the turn, 0 to 1."""
    cpu_stolen: float | None = None
    """Share that other guests of the host took."""
    heard: str | None = None
    """How much of the reply was let sound: onset, clause or reply."""
    audio: str | None = None
    """Path of the kept recording, relative to the run folder."""
    waveform_v2v_ms: float | None = None
    """Voice-to-voice latency found in the recording alone."""
    waveform_certain: bool | None = None
    """Does the waveform analyser trust both edges of that figure?"""
    waveform_uncertainty_ms: float | None = None
    """How far that figure may lie off to either side, by the analyser's own word."""
    pipecat_ms: dict[str, float] = Field(default_factory=dict)
    """What pipecat's own metrics say of this turn: a cross-check."""
    caveats: tuple[str, ...] = ()
    """Codes; analysis/caveats words each of them once."""

    @property
    def timeline(self) -> Timeline:
        """The marks as a timeline, its origin at `speech_end`."""
        return Timeline({Mark(name): ns for name, ns in self.marks_ns.items()})

    @property
    def measured(self) -> bool:
        """Does this turn enter the latency statistics? Completed, with a latency, not excluded by a flag."""
        return self.outcome is Outcome.COMPLETED and self.voice_to_voice_ms is not None and not self.excluded

    @property
    def excluded(self) -> bool:
        """Is a completed turn kept out of the statistics by a flag?"""
        return bool(self.flags) and not EXCLUDING_FLAGS.isdisjoint(self.flags)


def stages_as_ms(timeline: Timeline) -> dict[str, float | None] | None:
    """The stages in ms for a record; None where there are none."""
    stages = timeline.stages_ns()
    if stages is None:
        return None
    return {stage.value: None if stages[stage] is None else ms(stages[stage] or 0) for stage in Stage}
