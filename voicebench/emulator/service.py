"""What happens between a request's body and the bytes of its reply, the same for HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from voicebench.clock import NS_PER_MS
from voicebench.emulator import asked as asking
from voicebench.emulator import plan as planning
from voicebench.emulator.asked import Asked, Protocol
from voicebench.emulator.catalogue import Catalogue
from voicebench.emulator.faults import Fault, parse, split_model
from voicebench.emulator.problems import Problem, Refused, invalid
from voicebench.emulator.staging import Parcel, Stage, Transport, parcels, stage, with_pings
from voicebench.emulator.timing import TimingScript, with_settings
from voicebench.emulator.wire import Event, Reply, Wire
from voicebench.emulator.wire_anthropic import AnthropicWire
from voicebench.emulator.wire_chat import ChatWire
from voicebench.emulator.wire_responses import ResponsesWire
from voicebench.emulator.writelog import Record, WriteLog
from voicebench.errors import BadRequest

WIRES: Mapping[tuple[Protocol, Transport], Wire] = {
    ("anthropic", "sse"): AnthropicWire(),
    ("chat", "sse"): ChatWire(),
    ("responses", "sse"): ResponsesWire(),
    ("responses", "websocket"): ResponsesWire(websocket=True),
}
HEADER = "x-emulate-"
_KEPT = 10_000


@dataclass(frozen=True)
class Conversation:
    """What a stored response leaves behind for the next one: all its text, and the last question."""

    text: str
    question: str


@dataclass(frozen=True)
class Admitted:
    """A request that is served: the reply, its fault, and its record."""

    reply: Reply
    fault: Fault | None
    record: Record
    wire: Wire

    async def packed(self) -> tuple[Stage, list[Parcel]]:
        """The events that are sent, and their bytes.

        Lets other streams write between the steps: a reply of 800 tokens takes 1 to 2 ms for each.
        """
        await asyncio.sleep(0)
        staged = self.staged()
        await asyncio.sleep(0)
        transport: Transport = "websocket" if self.record.transport == "websocket" else "sse"
        return staged, parcels(staged, self.fault, transport)

    def staged(self) -> Stage:
        """The events that are sent."""
        events = self.wire.events(self.reply)
        ping_ns = round(self.reply.script.ping_ms * NS_PER_MS)
        if ping_ns:
            events = with_pings(events, ping_ns, self.ping())
        return stage(self.reply, self.wire, self.fault, events)

    def ping(self) -> Event:
        """A sign of life of this protocol: a ping event, or a comment."""
        if self.record.protocol == "anthropic":
            return Event(0, "ping", "ping", '{"type":"ping"}')
        return Event(0, "ping", "", "")


class Service:
    """The state of one emulator: its scripts, its seed, what was asked before, and its log."""

    def __init__(self, catalogue: Catalogue, seed: int, fault: str, log: WriteLog) -> None:
        """`fault` is planted in every request that names none. Raises `BadRequest` where it is unknown."""
        parse(fault)
        self.catalogue = catalogue
        self.log = log
        self._seed = seed
        self._fault = fault
        self._ordinals: OrderedDict[bytes, int] = OrderedDict()
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    def handshake_fault(self, headers: Mapping[str, str]) -> Fault | None:
        """The fault that is known before a WebSocket's first message. Raises `Refused`."""
        try:
            return parse(headers.get(f"{HEADER}fault", self._fault))
        except BadRequest as error:
            raise _as_invalid(error) from None

    def admit(self, record: Record, body: Mapping[str, Any], headers: Mapping[str, str]) -> Admitted:
        """Plan the reply to a request. Raises `Refused` for what is not served, by mistake or by fault."""
        name, suffix = split_model(str(body.get("model", "")))
        if suffix:
            body = {**body, "model": name}
        protocol: Protocol = record.protocol  # type: ignore[assignment] # the server passes its own constants
        earlier = self._earlier(body)
        asked = asking.read(protocol, body, earlier.text)
        if not asked.question and earlier.question:
            asked = replace(asked, question=earlier.question)
        record.model = asked.model
        record.asked |= {
            "stream": asked.stream,
            "max_tokens": asked.max_tokens,
            "speed": asked.speed,
            "service_tier": asked.service_tier,
            "thinking": asked.thinking,
        }
        record.ordinal = self._ordinal(asked)
        key = hashlib.sha256(
            f"{self._seed} {asked.model} {record.ordinal} ".encode() + asked.digest
        ).hexdigest()
        self.log.name(record, f"req_{key[:24]}")
        try:
            script, fault = self._script(asked, headers, suffix)
        except BadRequest as error:
            raise _as_invalid(error) from None
        record.script, record.fault = script.name, str(fault or "")
        plan = planning.make(script, asked, fault, self._seed, record.ordinal)
        reply = Reply(
            asked=asked,
            script=script,
            plan=plan,
            request_id=record.request,
            key=key,
            created=int(datetime.now(UTC).timestamp()),
            speed=script.served_speed,
            service_tier=_served_tier(asked, script),
            model=asked.model,
        )
        record.served = {"speed": reply.speed, "service_tier": reply.service_tier}
        wire = WIRES[protocol, "websocket" if record.transport == "websocket" else "sse"]
        return Admitted(reply, fault, record, wire)

    def plan_known(self, admitted: Admitted) -> None:
        """Write the plan's totals into the record, once it is sure that the reply is begun."""
        admitted.record.usage = admitted.reply.plan.usage
        admitted.record.reply = admitted.reply.plan.reply

    def keep(self, admitted: Admitted) -> None:
        """Remember a complete response, so that `previous_response_id` can continue it."""
        asked, plan = admitted.reply.asked, admitted.reply.plan
        if asked.protocol != "responses":
            return
        if admitted.record.transport != "websocket" and asked.body.get("store") is False:
            return
        text = f"{asked.prompt}\n{plan.reply}"
        self._conversations[f"resp_{admitted.reply.key[:48]}"] = Conversation(text, asked.question)
        if len(self._conversations) > _KEPT:
            self._conversations.popitem(last=False)

    def _earlier(self, body: Mapping[str, Any]) -> Conversation:
        previous = body.get("previous_response_id")
        if previous is None:
            return Conversation("", "")
        found = self._conversations.get(str(previous))
        if found is None:
            message = f"Previous response with id '{previous}' not found."
            raise invalid(message, "previous_response_id", "previous_response_not_found")
        return found

    def _ordinal(self, asked: Asked) -> int:
        """How many requests with this model and body came before."""
        key = hashlib.sha256(asked.model.encode("utf-8", "replace") + asked.digest).digest()
        ordinal = self._ordinals.pop(key, -1) + 1
        self._ordinals[key] = ordinal
        if len(self._ordinals) > _KEPT:
            self._ordinals.popitem(last=False)
        return ordinal

    def _script(
        self, asked: Asked, headers: Mapping[str, str], suffix: str
    ) -> tuple[TimingScript, Fault | None]:
        """The script that serves the request, its settings from the headers in it, and the fault to plant.

        A fault in a header comes before one in the model's name, that before the script's, that before the
        server's.
        """
        settings = {
            name[len(HEADER) :].replace("-", "_"): value
            for name, value in headers.items()
            if name.startswith(HEADER)
        }
        speed = settings.get("served_speed", asked.speed)
        tier = settings.get("served_service_tier", asked.service_tier)
        default = self.catalogue.find(asked.model)
        if default is None:
            raise asking.unknown_model(asked)
        fault = parse(settings.pop("fault", "") or suffix or default.fault or self._fault)
        if fault and fault.name == "asked-not-served":
            speed, tier = "standard", None
            settings |= {"served_speed": "standard"}
            settings.setdefault(
                "served_service_tier", "standard" if asked.protocol == "anthropic" else "default"
            )
        script = self.catalogue.find(asked.model, (speed, tier)) or default
        return (with_settings(script, settings) if settings else script), fault


def planted_problem(fault: Fault | None, asked: Asked, ordinal: int) -> Problem | None:
    """The HTTP error that a fault of the stage `answer` plants; None for any other fault."""
    if fault is None or fault.kind.stage != "answer" or fault.name in ("redirect", "hang-headers"):
        return None
    if fault.name == "404":
        return asking.unknown_model(asked).problem
    if fault.name == "429-once" and ordinal > 0:
        return None
    problem = _PLANTED[fault.name.removesuffix("-once")]
    if "retry_after" in fault.values:
        problem = replace(problem, headers={"retry-after": f"{fault.values['retry_after']:g}"})
    return problem


_PLANTED = {
    "401": Problem(401, "authentication", "The API key is invalid.", code="invalid_api_key"),
    "403": Problem(
        403, "permission", "Your key does not have permission to use this model.", code="forbidden"
    ),
    "408": Problem(408, "timeout", "The request timed out."),
    "429": Problem(429, "rate_limit", "Rate limit reached for requests.", code="rate_limit_exceeded"),
    "500": Problem(500, "server", "The server had an error while processing your request."),
    "503": Problem(503, "unavailable", "The service is temporarily unavailable."),
    "529": Problem(529, "overloaded", "Overloaded", code="server_is_overloaded"),
}


def _served_tier(asked: Asked, script: TimingScript) -> str:
    """The tier in the reply. OpenAI's `fast` and `priority` are one tier, named `fast` from gpt-6 on."""
    if script.served_service_tier is not None:
        return script.served_service_tier
    if asked.protocol == "anthropic":
        return "standard"
    tier = asked.service_tier or "auto"
    if tier in ("fast", "priority"):
        return "fast" if asked.model.startswith("gpt-6") else "priority"
    return "default" if tier == "auto" else tier


def _as_invalid(error: BadRequest) -> Refused:
    return invalid(f"{error.what} {error.remedy}".strip())
