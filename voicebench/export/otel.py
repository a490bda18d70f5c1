"""The turns as OpenTelemetry spans in an OTLP/JSON file: a trace a turn. Needs the extra `otel`.

The file is one `ExportTraceServiceRequest` in the JSON form of OTLP 1: ids in hexadecimal, 64-bit integers as
text. Any collector takes it by POST to /v1/traces.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from voicebench import __version__
from voicebench.analysis.report import Report
from voicebench.errors import MissingExtra
from voicebench.export.laid_out import LAYOUT, LaidTurn, lay_out, told_of
from voicebench.turns.durable import strict_json
from voicebench.turns.records import Outcome, TurnRecord

SCOPE = "voicebench"
WHOLE = "voice turn"
"""The name of a turn's own span; `turn` is a stage."""


def export(report: Report, records: Sequence[TurnRecord]) -> bytes:
    """One span a turn with a child span a stage, and the marks as its events.

    The same run gives the same ids. The calendar time of the spans is the run's start plus where the turn is
    laid out, which is not when it was run. Raises MissingExtra where opentelemetry-sdk is not installed.
    """
    try:
        sdk: Any = importlib.import_module("opentelemetry.sdk.trace")
        api: Any = importlib.import_module("opentelemetry.trace")
        resources: Any = importlib.import_module("opentelemetry.sdk.resources")
        scopes: Any = importlib.import_module("opentelemetry.sdk.util.instrumentation")
    except ImportError as error:
        raise MissingExtra("opentelemetry-sdk", "otel", "The format otel") from error
    resource = resources.Resource(
        {
            "service.name": "voicebench",
            "service.version": __version__,
            "voicebench.run": report.run.id,
            "voicebench.started_at": report.run.started_at,
            "voicebench.budget_ms": report.budget_ms,
            "voicebench.layout": LAYOUT,
        }
    )
    maker = _Spans(sdk, api, resource, scopes.InstrumentationScope(SCOPE, __version__))
    start = _epoch_ns(report.run.started_at)
    spans = [span for turn in lay_out(records) for span in maker.of(turn, report.run.id, start)]
    return strict_json(_request(resource.attributes, spans)) + b"\n"


class _Spans:
    """Makes the SDK's spans of a turn; `sdk` and `api` are its modules, imported only on use."""

    def __init__(self, sdk: Any, api: Any, resource: Any, scope: Any) -> None:
        self._sdk, self._api = sdk, api
        self._resource, self._scope = resource, scope

    def of(self, turn: LaidTurn, run: str, start_ns: int) -> Iterator[Any]:
        """The turn's own span, then one for each of its stages."""
        record = turn.record
        key = f"{run}\0{record.turn}\0{record.mode}\0{record.sample}\0{record.repeat}"
        context = self._context(key, WHOLE)
        events = [self._sdk.Event(mark.value, timestamp=start_ns + at) for mark, at in turn.marks_ns.items()]
        wrong = record.outcome is not Outcome.COMPLETED
        status = self._api.Status(
            self._api.StatusCode.ERROR if wrong else self._api.StatusCode.OK,
            f"{record.outcome.value}: {record.reason or 'no reason is given'}" if wrong else None,
        )
        whole = (turn.begin_ns, turn.end_ns)
        yield self._span(WHOLE, context, None, whole, start_ns, _facts(record), events, status)
        told = {"voicebench.mode": record.mode}
        for stage, begin, end in turn.stages_ns:
            own = self._context(key, stage.value)
            yield self._span(stage.value, own, context, (begin, end), start_ns, told)

    def _context(self, key: str, span: str) -> Any:
        """Ids that follow from the run and the turn alone; never all zero."""
        trace = int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:16], "big") or 1
        own = hashlib.sha256(f"{key}\0{span}".encode("utf-8", "replace")).digest()[:8]
        return self._api.SpanContext(trace, int.from_bytes(own, "big") or 1, is_remote=False)

    def _span(
        self,
        name: str,
        context: Any,
        parent: Any,
        between_ns: tuple[int, int],
        start_ns: int,
        facts: Mapping[str, Any],
        events: Sequence[Any] = (),
        status: Any = None,
    ) -> Any:
        return self._sdk.ReadableSpan(
            name=name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=facts,
            events=events,
            status=status or self._api.Status(),
            start_time=start_ns + between_ns[0],
            end_time=start_ns + between_ns[1],
            instrumentation_scope=self._scope,
        )


def _facts(record: TurnRecord) -> dict[str, Any]:
    """The attributes of a turn's span; the model's by OpenTelemetry's names for generative AI."""
    usage = record.usage
    model = {
        "gen_ai.request.model": record.model,
        "gen_ai.response.id": record.request_id,
        "gen_ai.response.finish_reasons": None if record.finish_reason is None else [record.finish_reason],
        "gen_ai.usage.input_tokens": None if usage is None else usage.input_tokens,
        "gen_ai.usage.output_tokens": None if usage is None else usage.output_tokens,
    }
    own = {f"voicebench.{name}": value for name, value in told_of(record).items()}
    return {**{name: value for name, value in model.items() if value is not None}, **own}


def _epoch_ns(started_at: str) -> int:
    """The run's start as Unix time in ns; 0 where it cannot be read."""
    try:
        moment = datetime.fromisoformat(started_at)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp()) * 1_000_000_000


def _request(resource: Mapping[str, Any], spans: Sequence[Any]) -> dict[str, Any]:
    scope = {"name": SCOPE, "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": [_encoded(span) for span in spans]}],
            }
        ]
    }


def _encoded(span: Any) -> dict[str, Any]:
    """One span in the JSON form of OTLP."""
    told = {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "name": span.name,
        "kind": span.kind.value + 1,  # OTLP keeps 0 for a kind that is not known
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes or {}),
        "events": [
            {"timeUnixNano": str(event.timestamp), "name": event.name, "attributes": []}
            for event in span.events
        ],
        "status": {"code": span.status.status_code.value},
    }
    if span.parent is not None:
        told["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.status.description:
        told["status"]["message"] = span.status.description
    return told


def _attributes(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in found.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}
