"""One mode of several answers each turn, picked by a rule on what was said: a mode made of modes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from voicebench.clock import NS_PER_MS, now_ns
from voicebench.errors import BadRequest
from voicebench.plan.config import Conversation, PluginSpec, Settings
from voicebench.plan.modes import Mode
from voicebench.plan.registry import Plugin
from voicebench.stages.llm import Tap
from voicebench.stages.member_group import Member, build_members, group_class, last_words
from voicebench.stages.route_rules import Rule, rule_of
from voicebench.stages.shared import Shared

WHERE = "routes"


class RouteSettings(Settings):
    """The settings of a route, as `plan.sets.Route` tells them."""

    rule: PluginSpec
    to: dict[str, str] = Field(min_length=1)


def check(settings: RouteSettings) -> None:
    """Refuses a rule that there is none of."""
    rule_of(settings.rule, WHERE)


def picked(rule: Rule, to: dict[str, str], transcript: str) -> tuple[str, str]:
    """The label that the rule tells of a transcript, and the mode that it leads to.

    Raises BadRequest for a label that leads nowhere.
    """
    label = rule(transcript)
    if label not in to:
        known = ", ".join(to)
        raise BadRequest(f"The rule told {label!r}, which leads to no mode.", f"Labels in `to`: {known}.")
    return label, to[label]


def build(mode: Mode, settings: RouteSettings, conversation: Conversation, shared: Shared, tap: Tap) -> Any:
    """The services of all modes behind one processor."""
    members = build_members(mode, conversation, shared, tap)
    return _router_class()(settings, members, tap, rule_of(settings.rule, WHERE))


def _router_class() -> type[Any]:
    base: Any = group_class()

    class Router(base):  # type: ignore[misc]  # the base is known at run time only
        """Asks one member; its stream is the turn's, its frames go on as they come."""

        def __init__(self, settings: RouteSettings, members: list[Member], tap: Tap, rule: Rule) -> None:
            super().__init__(members)
            self._settings = settings
            self._tap = tap
            self._rule = rule
            self._choice: dict[str, Any] = {}
            for member in members:
                member.tap.on_change = self._relay

        async def answer(self, frame: Any) -> None:
            begun = now_ns()
            try:
                label, mode_id = picked(self._rule, self._settings.to, last_words(frame.context))
            except Exception as error:
                log = self._tap.begin("", {})
                self._tap.failed(log, error)
                raise
            self._choice = {
                "rule": self._settings.rule.kind,
                "label": label,
                "took_ms": (now_ns() - begun) / NS_PER_MS,
            }
            [member] = [one for one in self.members if one.mode.id == mode_id]
            await self.ask(member, frame)

        def _relay(self) -> None:
            """Each member's streams are the turn's."""
            for member in self.members:
                for log in member.tap.take():
                    log.mode, log.choice = member.mode, self._choice
                    self._tap.streams.append(log)
            self._tap.on_change()

        async def heard(self, member: Member, frame: Any) -> None:
            await self.push_frame(frame)

        async def _up(self, member: Member, frame: Any, direction: Any) -> None:
            await super()._up(member, frame, direction)
            await self.report_errors(member)

    return Router


PLUGIN = Plugin(settings=RouteSettings, build=build, check=check, title="one mode of several in each turn")
