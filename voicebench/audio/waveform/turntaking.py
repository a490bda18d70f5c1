"""From two speakers' utterances to turns, overlaps, interruptions and silences. Times only, no samples."""

from __future__ import annotations

from collections.abc import Sequence

from voicebench.audio.waveform.findings import Interruption, Overlap, Segment, Silence, Turn

NO_REPLY_S = 3.0
"""A pause of the user's longer than this, with the agent silent throughout, ends a turn without a reply."""
LEAST_OVERLAP_S = 0.2
"""Both speaking for less than this is how turns often change; it is no interruption."""
LONGEST_YIELD_S = 2.0
"""An agent that speaks on for longer than this after the user came in has not yielded to them."""
SPOKE_ON_S = 1.0
"""An agent that speaks on for this long after the user's words has passed over them: they are no turn."""
_COMMA_S = 0.5
_ANEW_S = 0.9
_LEAST_SILENCE_S = 0.2
_MOST_SILENCES = 10


def find_turns(
    user: Sequence[Segment], agent: Sequence[Segment], duration_s: float, no_reply_s: float = NO_REPLY_S
) -> tuple[Turn, ...]:
    """The turns of a call of `duration_s`, from both sides' utterances in order of time.

    A turn's user part is every utterance up to the agent's next onset. Its reply is what the agent says from
    then on that sounds beyond the user's last sound: an utterance that stopped before (a false start, a
    listener's "mm-hm") is none. What the user says while the agent speaks on is no turn.
    """
    spoken = [u for u in user if not _passed_over(u, agent)]
    groups: list[list[Segment]] = []
    for utterance in spoken:
        if groups and _same_turn(groups[-1], utterance, agent, no_reply_s):
            groups[-1].append(utterance)
        else:
            groups.append([utterance])
    turns: list[Turn] = []
    for i, group in enumerate(groups):
        until = groups[i + 1][0].start_s if i + 1 < len(groups) else None
        turns.append(_turn(group, agent, until, spoken, duration_s))
    return tuple(turns)


def _passed_over(utterance: Segment, agent: Sequence[Segment]) -> bool:
    """Was it said while the agent spoke, and did the agent speak on for a second or more?"""
    return any(a.start_s <= utterance.start_s and a.end_s >= utterance.end_s + SPOKE_ON_S for a in agent)


def _same_turn(group: list[Segment], utterance: Segment, agent: Sequence[Segment], no_reply_s: float) -> bool:
    """Does the user go on with the turn? The agent has not begun since it started, and the pause is short."""
    if any(group[0].start_s < a.start_s <= utterance.start_s and a.end_s > group[-1].end_s for a in agent):
        return False
    if any(a.start_s < utterance.start_s and a.end_s > group[-1].end_s for a in agent):
        return True
    return utterance.start_s - group[-1].end_s <= no_reply_s


def _turn(
    group: list[Segment],
    agent: Sequence[Segment],
    until: float | None,
    spoken: Sequence[Segment],
    duration_s: float,
) -> Turn:
    """One turn from the user's utterances in it; `until` is when the next turn begins, None for the last."""
    start, end = group[0].start_s, group[-1].end_s
    mine = [a for a in agent if a.start_s > start and (until is None or a.start_s <= until)]
    reply, doubtful = _reply(mine, end)
    reasons = {"false_start"} if doubtful else set()
    if not group[-1].certain:
        reasons.add(f"user_{group[-1].reason}")
    if any(a.start_s <= start and a.end_s > end for a in agent):
        reasons.add("agent_spoke_on")
    if not reply:
        if until is None:
            reasons.add("recording_ends")
        return Turn(
            user_start_s=start,
            user_end_s=end,
            agent_onset_s=None,
            agent_end_s=None,
            voice_to_voice_ms=None,
            interrupted=False,
            certain=not reasons,
            uncertainty_ms=group[-1].end_uncertainty_ms,
            reasons=tuple(sorted(reasons | {"no_reply"})),
        )
    first = reply[0]
    if not first.certain:
        reasons.add(f"agent_{first.reason}")
    if end >= duration_s - 0.01:
        reasons.add("recording_ends")
    return Turn(
        user_start_s=start,
        user_end_s=end,
        agent_onset_s=first.start_s,
        agent_end_s=reply[-1].end_s,
        voice_to_voice_ms=(first.start_s - end) * 1000,
        interrupted=any(_broke_in(u, a) for a in reply for u in spoken if u.start_s > end),
        certain=not reasons,
        uncertainty_ms=group[-1].end_uncertainty_ms + first.start_uncertainty_ms,
        reasons=tuple(sorted(reasons)),
    )


def _reply(agent: list[Segment], user_end_s: float) -> tuple[list[Segment], bool]:
    """The reply among the agent's utterances of a turn, and whether a false start may belong to it.

    An utterance that stopped before the user's end belongs to the reply where the next goes on within half a
    second, as after a comma. An agent that stopped for the user and answers anew takes longer.
    """
    reply = [a for a in agent if a.end_s > user_end_s]
    early = [a for a in agent if a.end_s <= user_end_s]
    while early and reply and reply[0].start_s - early[-1].end_s <= _COMMA_S:
        reply.insert(0, early.pop())
    doubtful = bool(early and reply) and reply[0].start_s - early[-1].end_s <= _ANEW_S
    return reply, doubtful


def _broke_in(utterance: Segment, agent: Segment) -> bool:
    """Did the user come in while the agent spoke, and the agent stop within two seconds?"""
    spoke_on = agent.end_s - utterance.start_s
    return agent.start_s < utterance.start_s and LEAST_OVERLAP_S <= spoke_on <= LONGEST_YIELD_S


def find_interruptions(user: Sequence[Segment], agent: Sequence[Segment]) -> tuple[Interruption, ...]:
    """Who broke into whose speech, in order of time: overlaps of at least 200 ms.

    By the user: the agent stopped within two seconds, and not only long after the user's words had passed. By
    the agent: it began while the user was speaking.
    """
    found: list[Interruption] = []
    for u in user:
        if _passed_over(u, agent):
            continue
        found.extend(
            Interruption(u.start_s, "user", (a.end_s - u.start_s) * 1000) for a in agent if _broke_in(u, a)
        )
    for a in agent:
        for u in user:
            if u.start_s < a.start_s < u.end_s and min(a.end_s, u.end_s) - a.start_s >= LEAST_OVERLAP_S:
                yielded = u.end_s < a.end_s
                found.append(
                    Interruption(a.start_s, "agent", (u.end_s - a.start_s) * 1000 if yielded else None)
                )
    return tuple(sorted(found, key=lambda i: i.at_s))


def find_overlaps(user: Sequence[Segment], agent: Sequence[Segment]) -> tuple[Overlap, ...]:
    """Every stretch in which both speak, in order of time."""
    found = [
        Overlap(
            max(u.start_s, a.start_s),
            min(u.end_s, a.end_s),
            "user" if u.start_s > a.start_s else "agent",
        )
        for u in user
        for a in agent
        if min(u.end_s, a.end_s) > max(u.start_s, a.start_s)
    ]
    return tuple(sorted(found, key=lambda o: o.start_s))


def find_silences(user: Sequence[Segment], agent: Sequence[Segment]) -> tuple[Silence, ...]:
    """The ten longest silences of at least 200 ms between the first and the last sound, longest first."""
    spans = sorted(
        [(s.start_s, s.end_s, "user") for s in user] + [(s.start_s, s.end_s, "agent") for s in agent]
    )
    found: list[Silence] = []
    reached = spans[0][1] if spans else 0.0
    for start, end, who in spans[1:]:
        if start - reached >= _LEAST_SILENCE_S:
            found.append(Silence(reached, start, who))
        reached = max(reached, end)
    return tuple(sorted(found, key=lambda s: s.start_s - s.end_s)[:_MOST_SILENCES])
