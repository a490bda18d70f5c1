"""What `voicebench measure` says of a call: figures over its turns, and the forms they are told in."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from voicebench.analysis.statistics import Summary, summarize, wilson
from voicebench.audio.waveform import Caveat, Conversation, Turn
from voicebench.export.csv_rows import cell

SCHEMA = 1
ENOUGH_TURNS = 10

CLIP_WORDS = {
    "wav_length": "the WAV header states a wrong length; the file was read to its end",
    "trailing_bytes": "bytes that belong to nothing follow the sound; they were left out",
    "cut_short": "the file ends in the middle; what had come until then was measured",
    "non_finite": "some samples were no numbers; they were taken as silence",
    "over_full_scale": "some samples lie beyond full scale",
    "clipped": "the recording was overdriven",
}
"""What is odd about a file, in words; codes of `ClipCaveat` that concern mixing to mono are not told."""


@dataclass(frozen=True)
class Measured:
    """A call and its figures.

    `voice_to_voice` is over the turns that count: certain, answered after the user's end, not interrupted;
    `missing` there are turns without a reply, `excluded` the others that do not count. `all_answered` is over
    every turn with a figure, counted or not. `hits` of `held` turns were answered within `budget_ms`: held
    are the certain ones that were not interrupted, also those without a reply and those cut off.
    """

    file: str
    user_channel: str
    budget_ms: float
    call: Conversation
    voice_to_voice: Summary
    all_answered: Summary
    hits: int
    held: int
    caveats: tuple[Caveat, ...]


def state_of(turn: Turn) -> str:
    """How a turn is counted: as `uncertain`, `no_reply`, `interrupted` or `cutoff`, the first that applies.

    Else it is `counted`: its latency is in the figures.
    """
    if not turn.certain:
        return "uncertain"
    if turn.voice_to_voice_ms is None:
        return "no_reply"
    if turn.interrupted:
        return "interrupted"
    return "cutoff" if turn.voice_to_voice_ms < 0 else "counted"


_SIDE_REASONS = {
    "drowned": "{side}'s {edge} drowned out",
    "low_snr": "{side} hardly above the noise",
    "echo_suspect": "{side} may be an echo",
    "gated_noise": "{side}'s {edge} behind a noise gate",
    "no_background": "{side} without a pause",
}
_TURN_REASONS = {
    "recording_ends": "the recording ends",
    "agent_spoke_on": "the agent spoke on throughout",
    "false_start": "the agent had begun and stopped",
}


def reason_text(reason: str) -> str:
    """A turn's reason code in words: "user_drowned" as "user's end drowned out"."""
    side, _, cause = reason.partition("_")
    if side in ("user", "agent") and cause in _SIDE_REASONS:
        return _SIDE_REASONS[cause].format(side=side, edge="end" if side == "user" else "onset")
    return _TURN_REASONS.get(reason, reason.replace("_", " "))


def figures(
    call: Conversation, *, file: str, user_channel: str, budget_ms: float, clip_caveats: tuple[str, ...] = ()
) -> Measured:
    """The figures of a call. `clip_caveats` are the codes that decoding its file gave."""
    states = [state_of(turn) for turn in call.turns]
    counts = Counter(states)
    waits = [t.voice_to_voice_ms for t in call.turns if t.voice_to_voice_ms is not None]
    counted = [
        t.voice_to_voice_ms
        for t, state in zip(call.turns, states, strict=True)
        if state == "counted" and t.voice_to_voice_ms is not None
    ]
    missing = len(call.turns) - len(waits)
    everything = summarize(waits, missing=missing)
    caveats = [Caveat(code, CLIP_WORDS[code]) for code in clip_caveats if code in CLIP_WORDS]
    caveats += [*call.caveats, *_turn_caveats(call, counts, len(counted), everything)]
    return Measured(
        file=file,
        user_channel=user_channel,
        budget_ms=budget_ms,
        call=call,
        voice_to_voice=summarize(counted, missing=missing, excluded=len(waits) - len(counted)),
        all_answered=everything,
        hits=sum(wait <= budget_ms for wait in counted),
        held=counts["counted"] + counts["cutoff"] + counts["no_reply"],
        caveats=tuple(caveats),
    )


def _turn_caveats(call: Conversation, counts: Counter[str], n: int, everything: Summary) -> list[Caveat]:
    """What a reader must know of how the turns were counted."""
    found: list[Caveat] = []
    if counts["uncertain"]:
        reasons = Counter(reason for t in call.turns if not t.certain for reason in t.reasons)
        told = ", ".join(f"{reason_text(reason)}: {count}" for reason, count in sorted(reasons.items()))
        with_all = (
            "" if everything.p50 is None else f"; with every turn the median is {everything.p50:.0f} ms"
        )
        text = f"uncertain turns, not in the figures: {counts['uncertain']} ({told}){with_all}"
        found.append(Caveat("uncertain_turns", text, counts["uncertain"]))
    for state, text in (
        ("cutoff", "turns in which the agent began before the user had ended, not in the median: {}"),
        ("interrupted", "turns whose reply the user talked over until it stopped, not in the figures: {}"),
        ("no_reply", "turns without a reply, held against the budget: {}"),
    ):
        if counts[state]:
            found.append(Caveat(state, text.format(counts[state]), counts[state]))
    if not n:
        found.append(Caveat("no_turns", "no turn gave a latency that counts", 0))
    elif n < ENOUGH_TURNS:
        text = f"turns that count: {n}; percentiles are shown from 10 (p90), 20 (p95) and 100 (p99)"
        found.append(Caveat("few_turns", text, n))
    return found


def to_json(measured: Measured) -> dict[str, Any]:
    """The result as plain values: schema 1 of `voicebench measure --json`."""
    call = measured.call
    interval = wilson(measured.hits, measured.held)
    return {
        "schema": SCHEMA,
        "file": measured.file,
        "sample_rate": call.sample_rate,
        "duration_s": call.duration_s,
        "user_channel": measured.user_channel,
        "turns": [_turn(turn) for turn in call.turns],
        "voice_to_voice_ms": measured.voice_to_voice.to_dict(),
        "voice_to_voice_all_ms": measured.all_answered.to_dict(),
        "budget_ms": measured.budget_ms,
        "budget": {
            "hit": measured.hits,
            "n": measured.held,
            "share": measured.hits / measured.held if measured.held else None,
            "ci95": None if interval is None else list(interval),
        },
        "overlaps": [
            {"start_s": _s(o.start_s), "end_s": _s(o.end_s), "began": o.began} for o in call.overlaps
        ],
        "interruptions": [
            {"at_s": _s(i.at_s), "by": i.by, "stop_ms": None if i.stop_ms is None else _ms(i.stop_ms)}
            for i in call.interruptions
        ],
        "silences": [
            {"start_s": _s(s.start_s), "end_s": _s(s.end_s), "before": s.before} for s in call.silences
        ],
        "leading_silence_s": _s(call.leading_silence_s),
        "leaks": [asdict(leak) for leak in call.leaks],
        "caveats": [
            {"code": c.code, "text": c.text, "mode": None, "count": c.count} for c in measured.caveats
        ],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    """One turn as plain values."""
    return {
        "user_start_s": _s(turn.user_start_s),
        "user_end_s": _s(turn.user_end_s),
        "agent_onset_s": None if turn.agent_onset_s is None else _s(turn.agent_onset_s),
        "agent_end_s": None if turn.agent_end_s is None else _s(turn.agent_end_s),
        "voice_to_voice_ms": None if turn.voice_to_voice_ms is None else _ms(turn.voice_to_voice_ms),
        "interrupted": turn.interrupted,
        "certain": turn.certain,
        "uncertainty_ms": round(turn.uncertainty_ms, 1),
        "reasons": list(turn.reasons),
        "state": state_of(turn),
    }


def to_csv(measured: Measured) -> bytes:
    """One line a turn, UTF-8, safe to open in a spreadsheet; figures as in `to_json`."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    names = ["file", "turn", *_turn(Turn(0, 0, None, None, None, False, True, 0))]
    writer.writerow(names)
    for number, turn in enumerate(measured.call.turns, start=1):
        values = {**_turn(turn), "reasons": ";".join(turn.reasons)}
        writer.writerow([cell(measured.file), cell(number), *(cell(value) for value in values.values())])
    return out.getvalue().encode()


def _s(seconds: float) -> float:
    """Seconds to the microsecond."""
    return round(seconds, 6)


def _ms(milliseconds: float) -> float:
    """Milliseconds to the microsecond."""
    return round(milliseconds, 3)
