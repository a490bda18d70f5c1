"""A call of two channels told as turns: who spoke when, how long the user waited, who talked over whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from voicebench.audio.waveform.detect import BRIDGE_MS, bridged, checked, segments
from voicebench.audio.waveform.findings import Analysis, Caveat, Conversation, Leak
from voicebench.audio.waveform.leak import remove_leak
from voicebench.audio.waveform.likeness import could_be_echo, is_echo, level_course
from voicebench.audio.waveform.turntaking import (
    NO_REPLY_S,
    find_interruptions,
    find_overlaps,
    find_silences,
    find_turns,
)

Samples = NDArray[np.float32]

_ALIKE = 0.9


def conversation(
    user: Samples,
    agent: Samples,
    sample_rate: int,
    *,
    bridge_ms: float = BRIDGE_MS,
    no_reply_s: float = NO_REPLY_S,
) -> Conversation:
    """The turns of a call from the two sides' samples alone (mono, float +-1.0, equally long, one clock).

    Pauses of at most `bridge_ms` inside one side's speech are closed; the user's pauses up to `no_reply_s`
    during which the agent says nothing belong to the same turn. Echo and cross-talk between the channels are
    recognised and make no turn. Where both channels hold the same sound, nobody can be told apart: there are
    no turns, and the caveat `channels_alike` says so. Raises ValueError for unequal lengths, a sample rate of
    0 or less, an array that is not one-dimensional, or samples that are not finite.
    """
    checked(user, sample_rate)
    checked(agent, sample_rate)
    if user.size != agent.size:
        raise ValueError(f"the channels differ in length: {user.size} and {agent.size} samples")
    user, agent = np.asarray(user, dtype=np.float32), np.asarray(agent, dtype=np.float32)
    alike = _alike(user, agent)
    user_side, user_leak = _side(user, agent, sample_rate, bridge_ms, "agent", alike)
    agent_side, agent_leak = _side(agent, user, sample_rate, bridge_ms, "user", alike)
    leaks = tuple(leak for leak in (user_leak, agent_leak) if leak is not None)
    duration = user.size / sample_rate
    users, agents = list(user_side.segments), list(agent_side.segments)
    turns = () if alike else find_turns(users, agents, duration, no_reply_s)
    starts = [s.start_s for s in (*users, *agents)]
    return Conversation(
        turns=turns,
        user=user_side,
        agent=agent_side,
        overlaps=() if alike else find_overlaps(users, agents),
        interruptions=() if alike else find_interruptions(users, agents),
        silences=find_silences(users, agents),
        leading_silence_s=min(starts, default=duration),
        duration_s=duration,
        sample_rate=sample_rate,
        leaks=leaks,
        caveats=_caveats(user_side, agent_side, leaks, alike),
    )


def _side(
    own: Samples, other: Samples, sample_rate: int, bridge_ms: float, other_name: str, alike: bool
) -> tuple[Analysis, Leak | None]:
    """The utterances on one side's channel that are its own, and what leaks in from the other's."""
    removed = None if alike else remove_leak(other, own, sample_rate, other_name)
    if removed is None:
        found = segments(own, sample_rate, bridge_ms=0)
    else:
        found = segments(removed.samples, sample_rate, bridge_ms=0, masker=removed.masker)
    kept = list(found.segments)
    if kept and not alike:
        here, there = level_course(own, sample_rate), level_course(other, sample_rate)
        kept = [s for s in kept if not is_echo(s, here, there, sample_rate)]
    echoes = len(found.segments) - len(kept)
    if echoes:
        text = f"sounds that follow the {other_name}'s voice as an echo does make no turn: {echoes}"
        kept = [
            replace(s, certain=False, reason="echo_suspect")
            if could_be_echo(s, here, there, sample_rate)
            else s
            for s in kept
        ]
        found = replace(
            found,
            dropped={**found.dropped, "echo": echoes},
            caveats=(*found.caveats, Caveat("echo_suspect", text, echoes)),
        )
    found = replace(found, segments=bridged(kept, bridge_ms))
    return found, None if removed is None else removed.found


def _alike(user: Samples, agent: Samples) -> bool:
    """Do both channels hold the same sound (a mixed-down recording)? Their correlation exceeds 0.9."""
    if user.size == 0:
        return False
    both = float(np.einsum("i,i", user, agent, dtype=np.float64))
    own = float(np.einsum("i,i", user, user, dtype=np.float64))
    other = float(np.einsum("i,i", agent, agent, dtype=np.float64))
    return own > 0 and other > 0 and abs(both) > _ALIKE * (own * other) ** 0.5


def _caveats(user: Analysis, agent: Analysis, leaks: tuple[Leak, ...], alike: bool) -> tuple[Caveat, ...]:
    """What a reader must know of the recording as a whole."""
    out: list[Caveat] = []
    if alike:
        out.append(
            Caveat("channels_alike", "both channels hold the same sound, so that nobody can be told apart")
        )
    for side, analysis in (("user", user), ("agent", agent)):
        out.extend(
            Caveat(f"{side}_{c.code}", f"the {side}'s channel: {c.text}", c.count) for c in analysis.caveats
        )
    for leak in leaks:
        sink = "user" if leak.source == "agent" else "agent"
        out.append(
            Caveat(
                f"{leak.source}_heard_on_{sink}_channel",
                f"the {leak.source} is heard on the {sink}'s channel, {-leak.level_db:.0f} dB weaker and "
                f"{leak.delay_ms:.0f} ms later; this was taken out and makes no turn",
            )
        )
    return tuple(out)
