"""What the page shows of the conversation: told as it happens, and whole to a page that comes later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from voicebench.analysis.ledger import within_budget
from voicebench.clock import NS_PER_MS
from voicebench.live.card import Level
from voicebench.live.screen import LiveScreen
from voicebench.live.web.card import WebCard
from voicebench.live.web.picture import picture
from voicebench.turns.records import ModeKind, TurnRecord
from voicebench.turns.run_folder import RunFolder
from voicebench.turns.slot import Delivery, residual_slot_ns

if TYPE_CHECKING:
    from voicebench.live.session import HeardLive
    from voicebench.pipeline.marks import Attempt

SLOTS_MS = (400, 500)


class WebScreen(LiveScreen):
    """Tells the terminal what every live conversation tells it, and the page all of it."""

    def __init__(
        self, budget_ms: float, card: WebCard, modes: Mapping[str, ModeKind], anchor: str, kept: bool
    ) -> None:
        super().__init__(budget_ms)
        self._card = card
        self._page = card.page
        self._modes = dict(modes)
        self._anchor = anchor
        self._kept = kept
        self._views: list[dict[str, Any]] = []
        self._state: dict[str, Any] = {"type": "state", "phase": "Press Start", "mode": None, "ready": False}
        self._progress: tuple[object, ...] | None = None
        self._page.welcome = self.welcome

    def welcome(self) -> dict[str, Any]:
        """All that a page has to know that comes now."""
        return {
            "type": "welcome",
            "run": "" if self.folder is None else self.folder.id,
            "budget_ms": self._budget_ms,
            "modes": [{"id": name, "kind": kind} for name, kind in self._modes.items()],
            "anchor": self._anchor,
            "keeps_audio": self._kept,
            "muted": self._card.capture.muted,
            "state": self._state,
            "turns": self._views,
        }

    def opened(self, folder: RunFolder) -> None:
        """Remember the run's folder."""
        super().opened(folder)
        self._page.tell(type="run", run=folder.id)

    def phase(self, text: str) -> None:
        """Something that takes a while begins."""
        super().phase(text)
        self._now(phase=text, ready=False)

    def devices(self, microphone: str, speaker: str, level: Level) -> None:
        """Say what is heard, and whether it is fit."""
        super().devices(microphone, speaker, level)
        if level.warning:
            self._page.tell(type="note", text=level.warning)

    def speak(self, mode: str, keys: bool) -> None:
        """The conversation begins, or goes on with another mode."""
        super().speak(mode, keys)
        self._now(phase="Speak", mode=mode, ready=True)

    def say(self, text: str) -> None:
        """One line for eyes."""
        super().say(text)
        if text in ("muted", "not muted"):
            self._page.tell(type="muted", on=self._card.capture.muted)

    def progress(self, heard: HeardLive) -> None:
        """How the turn stands: only what the detector has said and the page has played. Not for warm-ups."""
        if not self._state["ready"]:
            return
        from voicebench.live.session import segments

        spoken = segments(heard.events)
        end = heard.speech_end_ns
        found = heard.attempts() if end is not None else []
        sounding = any(one.first_audible_ns is not None for one in found)
        if not spoken:
            told = "listening"
        elif spoken[-1].stop_ns is None:
            told = "you speak"
        else:
            told = "the agent speaks" if sounding else "the agent thinks"
        marks = {} if end is None else marks_so_far(found, end)
        news = (told, self._page.generation, tuple(marks.items()))
        if news != self._progress:
            self._progress = news
            self._page.tell(type="progress", told=told, marks_ms=marks)

    def turn(self, record: TurnRecord, heard: HeardLive | None = None) -> None:
        """A turn is on disk."""
        super().turn(record, heard)
        view = self.view(record, heard)
        self._views.append(view)
        self._page.tell(type="turn", turn=view)
        self._progress = None

    def view(self, record: TurnRecord, heard: HeardLive | None) -> dict[str, Any]:
        """A turn for the page: the journal's figures, and how its mode stands after it."""
        uncertainty = self._card.uncertainty
        return {
            "turn": record.turn,
            "mode": record.mode,
            "kind": record.mode_kind,
            "sample": record.sample,
            "outcome": record.outcome.value,
            "reason": record.reason,
            "flags": [flag.value for flag in record.flags],
            "caveats": list(record.caveats),
            "anchor": record.anchor.value,
            "transcript": record.transcript,
            "reply": record.reply,
            "first_clause": record.first_clause,
            "voice_to_voice_ms": record.voice_to_voice_ms,
            "stages_ms": record.stages_ms,
            "within": within_budget(record, self._budget_ms),
            "counted": record.measured,
            "barge_in_ms": record.barge_in_ms,
            "lag_ms": record.lag_ms,
            "uncertainty_ms": record.uncertainty_ms,
            "uncertainty": asdict(uncertainty),
            "slots": slots(record, self._budget_ms),
            "standing": asdict(self.standing(record.mode)),
            "picture": None if heard is None else picture(record, heard, self._card),
        }

    def _now(self, **changes: Any) -> None:
        self._state = {**self._state, **changes}
        self._page.tell(**self._state)


def marks_so_far(attempts: Sequence[Attempt], speech_end_ns: int) -> dict[str, float]:
    """The marks of a turn that is under way, in ms after the end of speech: of the last attempt."""
    fresh = [one for one in attempts if one.turn_end_ns >= speech_end_ns]
    if not fresh:
        return {}
    from voicebench.pipeline.marks import marks_of

    return {mark.value: (at - speech_end_ns) / NS_PER_MS for mark, at in marks_of(fresh[-1]).items()}


def slots(record: TurnRecord, budget_ms: float) -> list[dict[str, Any]]:
    """Tokens by 400 and 500 ms of the slot and by what this turn left; empty for a turn without text."""
    if not record.deltas:
        return []
    delivery = Delivery(record)
    deadlines = [(f"{slot}", slot * NS_PER_MS) for slot in SLOTS_MS]
    residual = residual_slot_ns(record, budget_ms)
    if residual is not None:
        deadlines.append(("residual", residual))
    return [
        {"slot": name, "slot_ms": ns / NS_PER_MS, "tokens": delivery.by(ns).tokens} for name, ns in deadlines
    ]
