"""Modes made of other modes: several replies at once of which one is taken, or one mode picked per turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from voicebench.errors import BadRequest
from voicebench.plan.modes import Mode
from voicebench.plan.settings import PluginSpec, Settings

CANDIDATES, ROUTE = "candidates", "route"
"""The kinds of the `llm` plug point that such modes are made of."""

Take = Literal["first_clause", "longest_by_slot", "scorer"]


class CandidateSet(Settings):
    """A mode that asks several at once and takes one reply. Its price is that of all of them."""

    id: str
    """The mode id, such as set/spark-x3."""
    candidates: tuple[str, ...] = Field(min_length=1)
    """The modes that are asked, by id."""
    times: int = Field(1, ge=1, le=16)
    """How often each of them is asked."""
    take: Take
    """`first_clause`: the one whose first complete clause comes first. `longest_by_slot`: the one with the
    longest complete text at the end of the slot, or as soon as all have ended. `scorer`: the one with the
    highest score at that instant."""
    slot_ms: float = Field(400.0, gt=0)
    """From the requests to the instant of choice, where it is not `first_clause`."""
    scorer: PluginSpec | None = None
    """What scores a reply: a kind of the `scorer` plug point, or `module:function`."""
    drain_s: float = Field(10.0, ge=0, le=600)
    """The other replies are read on for so long after the chosen one has ended, so that their cost is known;
    what runs longer is given up."""
    sibling: str | None = None
    """The standard mode that this one is to beat."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.candidates) * self.times < 2:
            raise ValueError("candidates: a set asks at least two: name more modes, or set `times`")
        if (self.take == "scorer") != (self.scorer is not None):
            raise ValueError("scorer: belongs to `take: scorer`, and that needs one")
        return self


class Route(Settings):
    """A mode that has one of several answer each turn, by a rule on what was said."""

    id: str
    """The mode id, such as route/short-fast."""
    rule: PluginSpec
    """What tells the label of a transcript: a kind of the `route` plug point, or `module:function`."""
    to: dict[str, str] = Field(min_length=1)
    """Each label that the rule may tell, and the mode that then answers."""
    sibling: str | None = None
    """The standard mode that this one is to beat."""


def composed(
    sets: Sequence[CandidateSet],
    routes: Sequence[Route],
    find: Callable[[str, str], Mode],
    clause: Mapping[str, Any],
) -> dict[str, Mode]:
    """Each set and route as a mode, by id. `find` gives the mode of an id, or raises BadRequest.

    `clause` are the settings by which a clause is complete. Emulated as soon as one of its members is.
    """
    made: dict[str, Mode] = {}
    for one in sets:
        where = f"sets, {one.id}"
        members = tuple(find(name, where) for name in one.candidates for _ in range(one.times))
        settings = {**one.model_dump(include={"take", "slot_ms", "scorer", "drain_s"}), "clause": clause}
        if one.scorer is not None:
            settings["scorer"] = one.scorer.model_dump()
        made[one.id] = _mode(one.id, CANDIDATES, members, settings, one.sibling)
    for route in routes:
        where = f"routes, {route.id}"
        members = tuple(find(name, where) for name in dict.fromkeys(route.to.values()))
        settings = {"rule": route.rule.model_dump(), "to": dict(route.to)}
        made[route.id] = _mode(route.id, ROUTE, members, settings, route.sibling)
    for name in made:
        for member in made[name].members:
            if member.members:
                raise BadRequest(f"{name} is made of {member.id}, which is itself made of modes.")
    return made


def _mode(
    mode_id: str, api: str, members: tuple[Mode, ...], settings: Mapping[str, Any], sibling: str | None
) -> Mode:
    kinds = {member.kind for member in members}
    names: dict[str, int] = {}
    for member in members:
        names[member.id] = names.get(member.id, 0) + 1
    return Mode(
        id=mode_id,
        kind="emulated" if "emulated" in kinds else "live" if "live" in kinds else "local",
        provider=api,
        api=api,
        model=" + ".join(name if count == 1 else f"{count} x {name}" for name, count in names.items()),
        settings=dict(settings),
        members=members,
        sibling=sibling,
    )
