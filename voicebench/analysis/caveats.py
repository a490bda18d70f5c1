"""What a reader must know beside the figures: typed values, worded once, shown in every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

LEAST_N_FOR_P95_BOUND = 59
"""So many turns it takes to say at 95 % confidence what p95 is at most."""


@dataclass(frozen=True)
class Caveat:
    """One thing to know. `code` is for programs, `text` for people."""

    code: str
    text: str
    mode: str | None = None
    """The mode that it concerns; None: the whole run."""
    count: int | None = None
    """How many turns, lines or samples it concerns; None where that makes no sense."""
    anchor: str | None = None
    """The anchor of the entry that it concerns, where it concerns one."""

    def to_dict(self) -> dict[str, Any]:
        """The plain values, as in `report.json`."""
        return asdict(self)


WORDS: Mapping[str, str] = {
    # of a mode
    "no_turns": "No turn gave a latency that counts.",
    "few_turns": "Turns that count: {count}. Too few to prove a p95, which takes 59; percentiles are shown "
    "from n = 10 (p90), 20 (p95) and 100 (p99), below that the maximum.",
    "few_samples": "Samples behind the figures: {count}. The intervals say little about other speech.",
    "cold_first_turn": "The first warm-up turn took {detail} ms longer than the median. It is in no figure.",
    "slow_first_turn": "The first turn took {detail} ms longer than the median: more warm-up may be needed.",
    "no_warm_up": "No warm-up turn was run: the first turns may be slower for it.",
    "outliers": "Turns far above the rest (the upper quartile plus 3 interquartile ranges): {count}.",
    "emulated": "Emulated: a published speed replayed by a server on this machine. No model was asked.",
    "assumed_speed": "The published decode rate is assumed: nobody published one for this mode.",
    "mixed_models": "Different models that answered under this mode's name: {count}.",
    "missing_marks": "Turns without a mark somewhere inside, whose time stands in the next stage: {count}.",
    "no_latency": "Completed turns without a mark for the end of speech or the first sound: {count}. "
    "They have no latency.",
    "waveform_disagrees": "Turns whose recording shows a latency over {detail} ms off the marks: {count}.",
    "several_tokens_a_delta": "A delta carries {detail} tokens on average: gaps between deltas are longer "
    "than those between tokens.",
    "speech_assumed": "Replies whose seconds of speech rest on a stated {detail}, not on synthesis: {count}.",
    # flags
    "asked_not_served": "Turns served at another speed or tier than asked: {count}. Not in the statistics.",
    "retried": "Turns answered only after a retry: {count}. Not in the statistics.",
    "client_limited": "Turns during which this machine was too busy to be believed: {count}. Not in the "
    "statistics.",
    "cutoff": "Turns ended before the person had stopped speaking: {count}. Not in the statistics.",
    "length": "Replies cut by the token limit: {count}.",
    "late_chunk": "Turns whose audio came late from its source: {count}.",
    "count_estimated": "Replies whose tokens are estimated, as the provider's count did not come: {count}.",
    # of the run
    "mixed_anchors": "Kinds of sources of the end of speech: {count}. Each has figures of its own.",
    "partial_run": "The run was not finished. Planned turns without a record: {count}.",
    "torn_journal": "Torn lines of the journal, left out: {count}.",
    "unreadable_lines": "Lines of the journal that are no turn, left out: {count}. The first: {detail}.",
    "newer_fields": "Fields that a newer version wrote, passed over: {count} ({detail}).",
    "repeated_records": "Earlier records of turns that were recorded again: {count}. The last one counts.",
    "no_noise_floor": "The noise floor of the harness is not known: {detail}.",
    "synthetic_samples": "Samples made by speech synthesis, which is easier to hear than people: {count}.",
    "tail_pace": "Recordings were sped up to the last part of their speech, and replies were not heard out "
    "(--pace tail). Not to be compared with runs in real time.",
    "queued": "Turns that waited for a free session after they were due, up to {detail} ms: {count}. The "
    "latency from the schedule holds the wait.",
    "harness_limited": "Of {detail} completed turns this machine was too busy for {count}: it was the "
    "bottleneck of this load, and what is left is the part that it could bear.",
    "processors_busy": "The processors of this machine were in use for {detail} % of the time: sessions "
    "waited for them, and the latencies are those of this machine under this load.",
    "shared_models": "Sessions at the same time: {count}. They share the embedded models and this machine's "
    "processors; the time they wait for one another is in their latencies.",
    "unfinished_run": "The run was not closed: it was killed, or it still goes on.",
    # of single turns, set where they arise
    "answered_silence": "Turns in which the agent answered though nobody spoke: {count}.",
    "asked_before_last_transcript": "Turns in which the model was asked without the person's last words: "
    "{count}. They count as cutoffs.",
    "transcript_after_turn_end": "Turns whose last words came after the turn was ended: {count}.",
    "text_then_tool_call": "Replies with text and then a tool call: {count}.",
    "markup_spoken": "Replies that gave the voice Markdown, code, an address or an emoji to speak: {count}. "
    "What was sent to it is `spoken` in the turn's record.",
    "no_finish_reason": "Replies that ended without the provider's word for why: {count}.",
    "hidden_reasoning": "Replies before which the model reasoned without showing it: {count}. Their first "
    "token of any kind is not known.",
    "served_not_told": "Replies of which the provider did not say at what speed or tier they were served: "
    "{count}.",
    "filtered": "Replies that the provider broke off itself: {count}.",
    "refused": "Replies in which the model refused: {count}.",
    "event_not_understood": "Streams with an event of an unknown shape: {count}.",
    "new_connection": "Measured requests that had to open their connection, each time they were made: "
    "{count}.",
    "asr_fallback": "Turns in which speech recognition tried again at another temperature: {count}.",
    "asr_out_of_time": "Turns in which speech recognition ran out of time and tried no further: {count}. "
    "Words may be missing.",
    "tts_whole_sentences": "Turns whose voice spoke whole sentences, though pieces were asked for: {count}. "
    "Its model cannot be taken apart.",
    "speech_end_uncertain": "Turns whose end of speech was found in a recording with noise: {count}.",
    "wav_length": "Turns that spoke a WAV file whose header states a wrong length: {count}.",
    "trailing_bytes": "Turns that spoke a file with bytes behind its audio: {count}.",
    "cut_short": "Turns that spoke a file that ends in the middle: {count}.",
    "clipped": "Turns that spoke a clipped recording: {count}.",
    "over_full_scale": "Turns that spoke a recording beyond full scale, which saturates: {count}.",
    "non_finite": "Turns that spoke a recording with samples that are no numbers, set to 0: {count}.",
    "antiphase": "Turns that spoke a recording whose channels cancel each other; the louder one was taken: "
    "{count}.",
    "one_channel": "Turns that spoke a recording with sound in one channel only: {count}.",
    "dc_offset": "Turns that spoke a recording with a DC offset, which was taken out: {count}.",
    "marks_from_frames": "Turns whose model was timed by pipecat's frames, as its SDK is not known; there is "
    "no usage, and a reply cut short looks complete: {count}.",
    "echo_suspect": "Turns in which the agent heard itself and the frames were left out: {count}. Headphones "
    "avoid it.",
    "cold_pipeline": "Turns that were the first of a pipeline built anew after a fault, without a warm-up "
    "turn: {count}. They may be slower for it.",
    "device_overrun": "Turns in which a sound device lost audio or ran dry: {count}.",
}
"""The words of each code. `{count}` and `{detail}` are filled in."""


@dataclass
class CaveatList:
    """Gathers caveats in the order in which they are found."""

    found: list[Caveat] = field(default_factory=list)

    def add(
        self,
        code: str,
        count: int | None = None,
        *,
        detail: str = "",
        mode: str | None = None,
        anchor: str | None = None,
    ) -> None:
        """Add the caveat `code` in its words; a code that is not known here speaks for itself."""
        self.found.append(Caveat(code, worded(code, count, detail), mode, count, anchor))


def worded(code: str, count: int | None = None, detail: str = "") -> str:
    """The words of `code`."""
    told = code.replace("_", " ")
    words = WORDS.get(code, f"Turns with the note “{told}”: {{count}}." if count is not None else f"{told}.")
    return words.replace("{count}", str(count)).replace("{detail}", detail)
