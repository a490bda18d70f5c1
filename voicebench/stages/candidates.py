"""Several replies at once, of which one is taken: a mode made of modes, in the place of one LLM service.

All members get the conversation at the same instant. What may be spoken is there when one of them is taken:
the text that it had said by then arrives at that instant, as one delta, and the rest as it comes. The others
are read to their end, so that the record holds what all of them cost.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from voicebench.clock import NS_PER_MS, NS_PER_S, now_ns
from voicebench.plan.config import Clause, Conversation, PluginSpec, Settings
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Plugin
from voicebench.plan.sets import Take
from voicebench.stages.candidate_choice import Choice, best_by, clause_ns, first_clause
from voicebench.stages.llm import Tap
from voicebench.stages.member_group import Member, build_members, group_class, last_words
from voicebench.stages.scorers import Scorer, scorer_of
from voicebench.stages.shared import Shared
from voicebench.turns.stream import AttemptLog, MemberLog, StreamLog

WHERE = "sets"
GIVING_UP_NS = NS_PER_S
"""So long is waited for a candidate that was given up to end."""


class CandidateSettings(Settings):
    """The settings of a set, as `plan.sets.CandidateSet` tells them."""

    take: Take
    slot_ms: float = Field(gt=0)
    scorer: PluginSpec | None = None
    drain_s: float = Field(ge=0)
    clause: Clause = Clause()


def check(settings: CandidateSettings) -> None:
    """Refuses a scorer that there is none of."""
    if settings.scorer is not None:
        scorer_of(settings.scorer, WHERE)


def decide(
    settings: CandidateSettings,
    streams: list[StreamLog],
    begun_ns: int,
    at_ns: int,
    transcript: str,
    scorer: Scorer | None,
) -> Choice | None:
    """Which candidate is taken at `at_ns`, of those asked at `begun_ns`; None: none yet.

    Where none has a complete text at the slot's end, the first complete clause after it is taken.
    """
    slot_end = begun_ns + round(settings.slot_ms * NS_PER_MS)
    if settings.take == "first_clause":
        return first_clause(streams, settings.clause)

    def score(reply: str) -> float:
        return float(len(reply) if scorer is None else scorer(transcript, reply))

    found = best_by(streams, slot_end, at_ns, score, settings.take)
    return first_clause(streams, settings.clause) if found is None and at_ns >= slot_end else found


def released(deltas: list[tuple[int, str]], at_ns: int) -> list[tuple[int, str]]:
    """The deltas as they could go on: those before `at_ns` joined to one at that instant."""
    held = "".join(text for at, text in deltas if at <= at_ns)
    return [*([(at_ns, held)] if held else []), *((at, text) for at, text in deltas if at > at_ns)]


def build(
    mode: Mode, settings: CandidateSettings, conversation: Conversation, shared: Shared, tap: Tap
) -> Any:
    """The services of all candidates behind one processor."""
    scorer = None if settings.scorer is None else scorer_of(settings.scorer, WHERE)
    return _candidates_class()(mode, settings, build_members(mode, conversation, shared, tap), tap, scorer)


def _candidates_class() -> type[Any]:
    base: Any = group_class()
    from pipecat.frames.frames import LLMTextFrame

    class Candidates(base):  # type: ignore[misc]  # the base is known at run time only
        """Asks all members, takes one."""

        passes_calls = False

        def __init__(
            self,
            mode: Mode,
            settings: CandidateSettings,
            members: list[Member],
            tap: Tap,
            scorer: Scorer | None,
        ) -> None:
            super().__init__(members)
            self._mode = mode
            self._set = settings
            self._tap = tap
            self._scorer = scorer
            self._taken: Member | None = None
            self._order = asyncio.Lock()
            for member in members:
                member.tap.on_change = self.changed.set

        async def answer(self, frame: Any) -> None:
            log = StreamLog(request_ns=now_ns(), model=self._mode.model)
            log.attempts.append(AttemptLog(log.request_ns))
            self._tap.streams.append(log)
            self._tap.on_change()
            self._taken = None
            try:
                await self._answer(frame, log)
            except BaseException as error:
                self._keep(log, None)
                self._tap.failed(log, error)
                for member in self.members:
                    await self.give_up(member)
                raise
            finally:
                self._tap.on_change()

        async def _answer(self, frame: Any, log: StreamLog) -> None:
            for member in self.members:
                await self.ask(member, frame)
            choice = await self._choice(last_words(frame.context))
            at_ns = now_ns()
            taken: Member = self.members[choice.index]
            self._note(log, choice, taken, at_ns)
            await self.begin_reply()
            await self._let_go(taken)
            while not (taken.ended and _over(taken)):
                await self._change(None)
            await self.end_reply()
            await self._drain()
            for one in log.members:
                one.clause_ns = clause_ns(one.stream, self._set.clause)
            _finish(log, taken.stream, at_ns)
            if log.status != "ok":
                await self.report_errors(taken)

        async def _choice(self, transcript: str) -> Choice:
            """Wait until one can be taken."""
            while True:
                self.changed.clear()
                streams = [member.stream for member in self.members]
                begun = min(stream.request_ns for stream in streams)
                found = decide(self._set, streams, begun, now_ns(), transcript, self._scorer)
                if found is not None:
                    return found
                slot_end = begun + round(self._set.slot_ms * NS_PER_MS)
                waits = self._set.take != "first_clause" and now_ns() < slot_end
                await self._change(slot_end if waits else None)

        async def _change(self, until_ns: int | None) -> None:
            """Wait until something comes of a member, at the latest until an instant."""
            limit = None if until_ns is None else max(0.0, (until_ns - now_ns()) / NS_PER_S)
            try:
                async with asyncio.timeout(limit):
                    await self.changed.wait()
            except TimeoutError:
                return
            self.changed.clear()

        def _note(self, log: StreamLog, choice: Choice, taken: Member, at_ns: int) -> None:
            self._keep(log, choice)
            log.request_ns = min(one.stream.request_ns for one in log.members)
            log.mode = taken.mode
            log.choice = {
                "rule": self._set.take,
                "by": choice.by,
                "candidate": choice.index,
                "after_ms": (at_ns - log.request_ns) / NS_PER_MS,
            }
            log.deltas = released(taken.stream.deltas, at_ns)
            self._tap.on_change()

        def _keep(self, log: StreamLog, choice: Choice | None) -> None:
            """All members' streams, as far as they have come, go into the log."""
            if log.members:
                return
            for index, member in enumerate(self.members):
                scores = choice.scores if choice is not None else ()
                log.members.append(
                    MemberLog(
                        member.mode,
                        member.stream,
                        chosen=choice is not None and index == choice.index,
                        score=scores[index] if scores else None,
                    )
                )

        async def _let_go(self, taken: Member) -> None:
            """Send on what the taken one has said, in one piece, and from now on each piece as it comes."""
            async with self._order:
                held = "".join(frame.text for frame in taken.frames if isinstance(frame, LLMTextFrame))
                self._taken = taken
                if held:
                    await self.text(held)

        async def heard(self, member: Member, frame: Any) -> None:
            if member is not self._taken:
                member.frames.append(frame)
            elif isinstance(frame, LLMTextFrame):
                async with self._order:
                    await self.text(frame.text)

        async def _drain(self) -> None:
            """Read the others to their end, for so long at most."""
            until = now_ns() + round(self._set.drain_s * NS_PER_S)
            while any(not _over(member) for member in self.members) and now_ns() < until:
                await self._change(until)
            late = [member for member in self.members if not _over(member)]
            for member in late:
                await self.give_up(member)
            until = now_ns() + GIVING_UP_NS
            while any(not _over(member) for member in late) and now_ns() < until:
                await self._change(until)
            for member in late:
                member.stream.end(now_ns(), "cancelled")

    return Candidates


def _over(member: Member) -> bool:
    return not member.stream.running


def _finish(log: StreamLog, taken: StreamLog, at_ns: int) -> None:
    """The set's stream is the taken one's, its text as it could go on from `at_ns`."""
    log.deltas = released(taken.deltas, at_ns)
    log.first_token_ns = taken.first_token_ns
    log.asked, log.served, log.usage = taken.asked, taken.served, taken.usage
    log.finish_reason, log.terminal = taken.finish_reason, taken.terminal
    log.tool_calls, log.request_id = taken.tool_calls, taken.request_id
    log.new_connection, log.connect_ns = taken.new_connection, taken.connect_ns
    log.server_ms, log.attempts = taken.server_ms, taken.attempts
    log.caveats.extend(taken.caveats)
    log.end(max(taken.end_ns or at_ns, at_ns), taken.status, taken.detail)


PLUGIN = Plugin(
    settings=CandidateSettings, build=build, check=check, title="several replies at once, one taken"
)
