"""The timeline of a turn: its marks, and the stages that tile voice-to-voice latency exactly.

Pure: integers in, integers out. Instants are nanoseconds of one clock; a mark that did not happen is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """The instants of a turn, in the order in which they bound the stages."""

    SPEECH_END = "speech_end"
    """The last sound of the user's speech."""
    VAD_STOP = "vad_stop"
    """The voice activity detector declares silence: its last stop before this attempt's turn end."""
    TRANSCRIPT_FINAL = "transcript_final"
    """The last transcript in the request's context is there."""
    TURN_END = "turn_end"
    """The turn detector commits the turn."""
    LLM_REQUEST = "llm_request"
    """Just before the provider SDK's call is awaited, first attempt."""
    LLM_FIRST_TOKEN = "llm_first_token"  # noqa: S105 - an instant, not a secret
    """The first token of any kind, reasoning included."""
    LLM_FIRST_TEXT = "llm_first_text"
    """The first visible character of the answer: no white space, no preamble event."""
    TTS_REQUEST = "tts_request"
    """The first speakable clause goes to speech synthesis."""
    TTS_FIRST_BYTE = "tts_first_byte"
    """The first audio bytes come back, silent or not."""
    FIRST_AUDIBLE = "first_audible"
    """The first sound of the agent, at the instant it is played."""


class Anchor(StrEnum):
    """Where `speech_end` comes from. Figures of different anchors are never pooled."""

    ANNOTATED = "annotated"
    WAVEFORM = "waveform"
    VAD_BACKDATED = "vad_backdated"
    NONE = "none"
    """Nobody spoke and nobody was to: instants count from the request, and there is no V2V."""


class Stage(StrEnum):
    """The parts of voice-to-voice latency, in order."""

    ENDPOINTING = "endpointing"
    ASR = "asr"
    TURN = "turn"
    DISPATCH = "dispatch"
    LLM_TTFAT = "llm_ttfat"
    CLAUSE = "clause"
    TTS = "tts"
    PLAYOUT = "playout"


STAGE_ENDS: dict[Stage, Mark] = {
    Stage.ENDPOINTING: Mark.VAD_STOP,
    Stage.ASR: Mark.TRANSCRIPT_FINAL,
    Stage.TURN: Mark.TURN_END,
    Stage.DISPATCH: Mark.LLM_REQUEST,
    Stage.LLM_TTFAT: Mark.LLM_FIRST_TEXT,
    Stage.CLAUSE: Mark.TTS_REQUEST,
    Stage.TTS: Mark.TTS_FIRST_BYTE,
    Stage.PLAYOUT: Mark.FIRST_AUDIBLE,
}
"""The mark at which each stage ends."""

LLM_STAGES = (Stage.LLM_TTFAT, Stage.CLAUSE)
"""What belongs to the language model; the rest of the turn leaves it the residual slot."""


@dataclass(frozen=True)
class Timeline:
    """The marks of one turn. `marks` maps each mark that happened to its instant in ns."""

    marks: Mapping[Mark, int]

    def at(self, mark: Mark) -> int | None:
        """The instant of `mark` in ns, None where it did not happen."""
        return self.marks.get(mark)

    @property
    def voice_to_voice_ns(self) -> int | None:
        """`first_audible - speech_end` in ns: negative where the agent began before the person had ended.

        None where either mark is missing.
        """
        begin, end = self.at(Mark.SPEECH_END), self.at(Mark.FIRST_AUDIBLE)
        return None if begin is None or end is None else end - begin

    def stages_ns(self) -> dict[Stage, int | None] | None:
        """How the stages tile voice-to-voice latency, in ns: their sum is exactly `voice_to_voice_ns`.

        Boundary i is `min(max(boundary(i-1), mark(i)), first_audible)`: a step that ended early or ran ahead
        is clipped and may be 0. A stage whose mark is missing is None and its time falls to the next stage.
        The whole is None where voice-to-voice latency is missing or negative.
        """
        total = self.voice_to_voice_ns
        if total is None or total < 0:
            return None
        bound = begin = self.marks[Mark.SPEECH_END]
        end = begin + total
        stages: dict[Stage, int | None] = {}
        for stage, mark in STAGE_ENDS.items():
            instant = self.at(mark)
            if instant is None:
                stages[stage] = None
                continue
            upper = min(max(bound, instant), end)
            stages[stage] = upper - bound
            bound = upper
        return stages

    def missing(self) -> tuple[Mark, ...]:
        """The stage-ending marks that did not happen, in order."""
        return tuple(mark for mark in STAGE_ENDS.values() if mark not in self.marks)

    @property
    def slot_start_ns(self) -> int | None:
        """The start of the LLM slot: `max(llm_request, turn_end)` in ns.

        For a request made ahead of the turn's end, what had come by then is there at 0. None: no request.
        """
        request, turn_end = self.at(Mark.LLM_REQUEST), self.at(Mark.TURN_END)
        if request is None:
            return None
        return request if turn_end is None else max(request, turn_end)

    def relative(self) -> dict[str, int]:
        """The marks in ns from `speech_end` (from the earliest mark where there is none), in stage order."""
        if not self.marks:
            return {}
        origin = self.marks.get(Mark.SPEECH_END, min(self.marks.values()))
        return {mark.value: self.marks[mark] - origin for mark in Mark if mark in self.marks}
