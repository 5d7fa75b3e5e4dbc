"""Sends spans to an OTLP collector over HTTP, with OpenTelemetry's own exporter: the only module that imports it.

It comes with the extra `otel`, and is imported only if an endpoint is configured. The exporter waits (for the
collector, and between its own attempts): call `send` in a thread.
"""

import logging
from collections.abc import Sequence
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from synapsed.parts.telemetry.spans import Span
from synapsed.parts.telemetry.tracer import Outcome, TraceSettings

_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
_LATER = frozenset({407, 408, 425, 429})
"""Statuses below 500 after which another attempt may succeed; 407 is a proxy's."""

# This module logs each error once; the exporter would log every attempt, with the collector's words.
logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)


def exporter_of(settings: TraceSettings) -> "OtlpExporter":
    """Returns the exporter. `tracer` calls it by its name if traces are configured."""
    return OtlpExporter(settings)


class OtlpExporter:
    """Implements `tracer.Exporter`."""

    def __init__(self, settings: TraceSettings) -> None:
        session = requests.Session()
        session.trust_env = False  # no proxy of the environment, no .netrc
        if settings.proxy is not None:
            session.proxies = {"http": settings.proxy, "https": settings.proxy}
        session.hooks["response"].append(self._answered)
        self._statuses: list[int] = []
        """Statuses of the answers to the batch that is being sent."""
        self._exporter: Any = OTLPSpanExporter(
            endpoint=settings.endpoint, headers=dict(settings.headers), timeout=settings.timeout, session=session
        )
        self._resource = Resource(dict(settings.resource))
        self._scope = InstrumentationScope("synapsed", settings.version)

    def send(self, spans: Sequence[Span]) -> Outcome:
        self._statuses.clear()
        if self._exporter.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS:
            return "taken", None
        status = self._statuses[-1] if self._statuses else None
        refused = status is not None and 400 <= status < 500 and status not in _LATER
        return ("refused" if refused else "later"), status

    def close(self) -> None:
        self._exporter.shutdown()

    def _answered(self, response: requests.Response, *_: Any, **__: Any) -> None:
        self._statuses.append(response.status_code)

    def _readable(self, span: Span) -> ReadableSpan:
        parent = None if span.parent_id is None else self._context(span, span.parent_id)
        attributes = dict(span.attributes) | ({"error.type": span.error} if span.error is not None else {})
        return ReadableSpan(
            name=span.name,
            context=self._context(span, span.context.span_id),
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            kind=_KINDS[span.kind],
            instrumentation_scope=self._scope,
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=int(span.begin * 1e9),
            end_time=int(span.end * 1e9),
        )

    @staticmethod
    def _context(span: Span, span_id: str) -> SpanContext:
        return SpanContext(
            trace_id=int(span.context.trace_id, 16),
            span_id=int(span_id, 16),
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
            trace_state=TraceState.from_header([span.context.state]) if span.context.state else TraceState(),
        )
