"""From what was heard in a live turn to its record, and to its recording where one is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from voicebench.audio.echo import RATE
from voicebench.audio.reconcile import second_opinion
from voicebench.audio.recorder import record as recording_of
from voicebench.audio.recorder import write
from voicebench.clock import NS_PER_MS, NS_PER_S, ms
from voicebench.errors import RunProblem
from voicebench.live.card import Card
from voicebench.live.edges import BACKDATED, REFINED
from voicebench.live.session import HeardLive
from voicebench.pipeline.record import TurnFacts, failed_record, record
from voicebench.turns.records import Outcome, TurnRecord
from voicebench.turns.timeline import Anchor

UNREFINED_MS = 32.0
"""The detector judges windows of so many ms: an end known from it alone is known to one of them."""
TAIL_MS = 150
SPOKEN_OVER = "the person spoke over the reply"


def live_record(facts: TurnFacts, heard: HeardLive, card: Card) -> TurnRecord:
    """The record of a live turn.

    Where `facts.anchor` is `waveform`, the end of speech is looked for in what was heard; where it cannot be
    found there, the record says `vad_backdated`.
    """
    if heard.ending == "device_lost":
        return failed_record(facts, heard.lost)
    anchor, detail, doubt = facts.anchor, None, 0.0
    if facts.anchor is Anchor.WAVEFORM:
        found = _in_the_recording(heard, card)
        if found is None:
            anchor = Anchor.VAD_BACKDATED
        else:
            heard.speech_end_ns, doubt = found
    if anchor is Anchor.VAD_BACKDATED and heard.edge is not None:
        detail = REFINED if heard.edge.refined else BACKDATED
        doubt = 0.0 if heard.edge.refined else UNREFINED_MS
    made = record(facts, heard)
    changes: dict[str, object] = {
        "anchor": anchor,
        "anchor_detail": detail,
        "uncertainty_ms": card.uncertainty_ms + doubt,
        "caveats": (*made.caveats, *_caveats(heard)),
    }
    if heard.ending == "barged_in" and heard.barge_in is not None:
        last = heard.played.last_sound()
        stopped = None if last is None else ms(last - heard.barge_in.at_ns)
        changes |= {
            "outcome": Outcome.INTERRUPTED,
            "reason": SPOKEN_OVER,
            "flags": (),
            "stages_ms": None,
            "barge_in_ms": None if stopped is None else max(0.0, stopped),
        }
    return made.model_copy(update=changes)


def _caveats(heard: HeardLive) -> list[str]:
    found = []
    if heard.gated:
        found.append("echo_suspect")
    if heard.troubles:
        found.append("device_overrun")
    if heard.edge is not None and not heard.edge.refined:
        found.append("speech_end_uncertain")
    return found


def _in_the_recording(heard: HeardLive, card: Card) -> tuple[int, float] | None:
    """The end of speech in what was heard up to the detector's stop: ns, and its uncertainty in ms."""
    from voicebench.audio.waveform import speech_end

    if heard.stop_ns is None or heard.edge is None:
        return None
    capture = card.capture
    end = capture.sample_at(heard.stop_ns + TAIL_MS * NS_PER_MS)
    first, pcm = capture.between(heard.first_sample, end, clean=True)
    if not pcm.size:
        return None
    edge = speech_end(pcm.astype(np.float32) / np.float32(32768.0), RATE)
    if edge is None:
        return None
    at = capture.instant(first + round(edge.at_s * RATE))
    if not heard.edge.at_ns - NS_PER_S < at <= heard.stop_ns:
        return None
    return at, edge.uncertainty_ms


def keep_recording(made: TurnRecord, heard: HeardLive, card: Card, path: Path, name: str) -> TurnRecord:
    """Write the turn's stereo recording to `path`, named `name` in the record; the waveform's figure beside.

    Raises RunProblem where it cannot be written.
    """
    first, pcm = card.capture.between(heard.first_sample, heard.last_sample)
    recording = recording_of(pcm, RATE, card.capture.instant(first), heard.played)
    try:
        write(recording, path)
    except OSError as error:
        raise RunProblem(f"The recording {path.name} cannot be written: {error}.") from error
    changes: dict[str, object] = {"audio": name}
    if made.outcome is Outcome.COMPLETED:
        changes |= second_opinion(recording).fields()
    return made.model_copy(update=changes)
