"""A local OTLP/HTTP receiver: decodes what it gets with OpenTelemetry's own protobuf messages."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received(NamedTuple):
    """One span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    start_ms: int
    end_ms: int
    kind: int
    is_error: bool
    attributes: Mapping[str, Any]
    events: tuple[str, ...]
    links: tuple[str, ...]
    resource: Mapping[str, Any]


class Receiver:
    """Takes spans while it is up; what came before a restart of its own is kept."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.status = 200
        """What it answers; only with 200 the spans are kept."""
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        server.daemon_threads = True
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self._server = server

    def down(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def by_id(self) -> dict[str, Received]:
        """Each span once; fails when two of one id disagree about where they stand."""
        found: dict[str, Received] = {}
        for span in self.spans:
            known = found.setdefault(span.span_id, span)
            places = (known.trace_id, known.parent_id, known.name, known.start_ms)
            assert places == (span.trace_id, span.parent_id, span.name, span.start_ms)
            found[span.span_id] = span
        return found

    def of_run(self, run_id: str, *, operation: str = "invoke_agent") -> list[Received]:
        return [
            each
            for each in self.by_id().values()
            if each.attributes["subagents.run.id"] == run_id
            and each.attributes.get("gen_ai.operation.name") == operation
        ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.paths.append(self.path)
                    receiver.headers.append({n.lower(): v for n, v in self.headers.items()})
                    receiver.spans += decoded(body)
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Nobody reads it."""

        return Handler


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """One that is up, for the length of the block."""
    made = Receiver()
    made.up()
    try:
        yield made
    finally:
        made.down()


def decoded(body: bytes) -> Iterator[Received]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    for resource in request.resource_spans:
        about = _values(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex() or None,
                    start_ms=span.start_time_unix_nano // 1_000_000,
                    end_ms=span.end_time_unix_nano // 1_000_000,
                    kind=span.kind,
                    is_error=span.status.code == 2,
                    attributes=_values(span.attributes),
                    events=tuple(each.name for each in span.events),
                    links=tuple(each.span_id.hex() for each in span.links),
                    resource=about,
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
