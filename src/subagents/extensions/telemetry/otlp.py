"""Spans as OpenTelemetry's own library sends them: OTLP over HTTP, in protobuf.

Certificates, compression and proxies are set by the library's usual variables
(``OTEL_EXPORTER_OTLP_CERTIFICATE``, …) in the daemon's environment; endpoint and headers are ours.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from subagents.extensions.telemetry import span_names
from subagents.extensions.telemetry.spans import Span
from subagents.followers.journal_export import ReceiverRefused, ReceiverUnavailable

TRACES_PATH: Final = "/v1/traces"
TIMEOUT_S: Final = 10.0
RETRYABLE: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses after which the same request may succeed; all other errors are for good."""
ANSWER_CHARS_MAX: Final = 300
NS_PER_MS: Final = 1_000_000
SCOPE: Final = "subagents"


class OtlpSender:
    """Sends to one receiver.

    Args:
        endpoint: Base URL, or one that ends in ``/v1/traces``.
        headers: Sent along.
        service_name: Of the resource.
        version: Of this package.
    """

    def __init__(
        self, endpoint: str, *, headers: Mapping[str, str], service_name: str, version: str
    ) -> None:
        self._url = traces_url(endpoint)
        self._answer: tuple[int, str] | None = None
        session = requests.Session()
        session.hooks["response"].append(self._on_response)
        self._exporter = OTLPSpanExporter(
            endpoint=self._url, headers=dict(headers), timeout=TIMEOUT_S, session=session
        )
        self._resource = Resource.create({"service.name": service_name, "service.version": version})
        self._scope = InstrumentationScope(
            SCOPE, version, attributes={"schema": span_names.SCHEMA_DATE}
        )

    @property
    def endpoint(self) -> str:
        """See ``export.Sender``."""
        return self._url

    def send(self, spans: Sequence[Span]) -> None:
        """See ``export.Sender.send``."""
        self._answer = None
        found = [self._readable(span) for span in spans]
        if self._exporter.export(found) is SpanExportResult.SUCCESS:
            return
        if self._answer is None:
            raise ReceiverUnavailable("nobody answers there")
        status, text = self._answer
        message = f"{status} {text}".strip()
        if status in RETRYABLE:
            raise ReceiverUnavailable(message)
        raise ReceiverRefused(message)

    def close(self) -> None:
        """Interrupt what waits to be tried again; nothing can be sent after it."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it is not annotated there

    def _on_response(self, answer: requests.Response, **_given: object) -> None:
        # An answer that is protobuf says nothing to people.
        is_text = answer.headers.get("content-type", "").startswith(("text/", "application/json"))
        text = " ".join(answer.text.split())[:ANSWER_CHARS_MAX] if is_text else answer.reason
        self._answer = (answer.status_code, str(text or ""))

    def _readable(self, span: Span) -> ReadableSpan:
        own = _context(span.trace_id, span.span_id)
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        events = [
            Event(each.name, attributes=each.attributes, timestamp=each.at_ms * NS_PER_MS)
            for each in span.events
        ]
        links = [
            Link(_context(span.trace_id, each.span_id), {span_names.LINK_KIND: each.kind})
            for each in span.links
        ]
        return ReadableSpan(
            name=span.name,
            context=own,
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            events=events,
            links=links,
            kind=SpanKind.CLIENT if span.is_remote_call else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if span.has_failed else StatusCode.UNSET),
            start_time=span.start_ms * NS_PER_MS,
            end_time=span.end_ms * NS_PER_MS,
            instrumentation_scope=self._scope,
        )


def traces_url(endpoint: str) -> str:
    """Where spans go below a base URL; one that names the path already is kept."""
    bare = endpoint.rstrip("/")
    return bare if urlsplit(bare).path.endswith(TRACES_PATH) else f"{bare}{TRACES_PATH}"


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
