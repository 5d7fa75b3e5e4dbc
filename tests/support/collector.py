"""A small OTLP collector over HTTP on loopback: takes what is posted to /v1/traces, decodes it, and keeps it."""

import gzip
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector", "Seen"]


@dataclass(frozen=True)
class Seen:
    """One span as it arrived; ids are hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    begin: int
    end: int
    failed: bool
    state: str
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


@dataclass
class Collector:
    """Use it as a context manager. `status` is what it answers; while it is not 200 nothing is kept."""

    status: int = 200
    attempts: int = 0
    arrived: list[Seen] = field(default_factory=list)
    """In order, those that came more than once too."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    """Names in lower case."""
    bodies: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.attempts += 1
                if collector.status == 200:
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                    collector.bodies.append(body)
                    collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def take(self, request: ExportTraceServiceRequest) -> None:
        """All of it at one moment: whoever sees a span sees those that came with it."""
        arrived = []
        for of_resource in request.resource_spans:
            resource = _attributes(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                for span in scope.spans:
                    arrived.append(
                        Seen(
                            name=span.name,
                            trace_id=span.trace_id.hex(),
                            span_id=span.span_id.hex(),
                            parent_id=span.parent_span_id.hex(),
                            kind=span.kind,
                            begin=span.start_time_unix_nano,
                            end=span.end_time_unix_nano,
                            failed=span.status.code == 2,
                            state=span.trace_state,
                            attributes=_attributes(span.attributes),
                            resource=resource,
                        )
                    )
        self.arrived += arrived

    @property
    def spans(self) -> dict[str, Seen]:
        """By id: one that came twice is one."""
        return {span.span_id: span for span in self.arrived}

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans.values() if span.name == name]
