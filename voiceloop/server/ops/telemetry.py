"""Telemetry: gives the spans of turns to OpenTelemetry's SDK.

Nothing is traced while a turn runs. The spans of a turn are made from its record when it is over,
and threads of the SDK send them, so a collector that is slow or away delays no turn. The variables
OTEL_* of the environment say where they go. Providers are this server's own, since another
program in the process may have set the global ones. This module is imported only where telemetry
is turned on: the SDK comes with the extra `otel`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable

import anyio
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import Status, StatusCode

from voiceloop import __version__
from voiceloop.errors import ConfigError
from voiceloop.trace.otel import OWN, About, OtelSpan, Report, WordsSaid, turn_span
from voiceloop.types import TurnTrace

logger = logging.getLogger(__name__)

FLUSH_S = 3.0
"""Maximum seconds for which the end of the server waits until everything has been sent."""
PROTOCOL = "http/protobuf"


class Telemetry:
    """The telemetry of one server. `end` it once."""

    def __init__(self, *, words: bool) -> None:
        """With `words`, also export what was said. Raises ConfigError for environment variables
        with values that are not supported."""
        self._words = words
        _check_protocol()
        try:
            exporter = OTLPSpanExporter()
        except ValueError as error:
            raise ConfigError(f"telemetry: {error}", "correct the variables OTEL_*") from error
        named = Resource({"service.name": OWN, "service.version": __version__})
        resource = Resource.create().merge(named).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(OWN, __version__)

    def end(self) -> None:
        """Send what has not been sent, for at most `FLUSH_S` seconds. Blocks until then."""
        ending = threading.Thread(
            target=self._provider.shutdown, name="voiceloop-flush", daemon=True
        )
        ending.start()
        ending.join(FLUSH_S)
        if ending.is_alive():
            logger.warning("telemetry has not been sent: the collector is too slow")

    def reports(self, headers: Iterable[tuple[str, str]]) -> Report:
        """Return the function that takes the turns of a client that sent these headers.

        The client's trace, if it names one, becomes a link of each turn, and not its parent: a
        session outlives the request with which it began.
        """
        carrier = {name.lower(): value for name, value in headers}
        known = TraceContextTextMapPropagator().extract(carrier, Context())
        caller = get_current_span(known).get_span_context()
        links = [Link(caller)] if caller.is_valid else []

        def report(trace: TurnTrace, about: About, words: WordsSaid) -> None:
            span = turn_span(trace, about, words if self._words else None)
            if span is not None:
                offset_ns = time.time_ns() - round(anyio.current_time() * 1e9)
                self._write(span, offset_ns, Context(), None, links)

        return report

    def _write(
        self,
        span: OtelSpan,
        offset_ns: int,
        parent: Context,
        turn: SpanContext | None,
        links: list[Link],
    ) -> None:
        """Give a span and those within it to the SDK. `offset_ns` is added to times of the loop's
        clock. `turn` is the root span; it is None if `span` is the root."""
        made: SdkSpan = self._tracer.start_span(
            span.name,
            parent,
            attributes=dict(span.attributes),
            links=[Link(turn)] if span.linked and turn else links,
            start_time=offset_ns + round(span.start * 1e9),
        )
        if span.failed:
            made.set_status(Status(StatusCode.ERROR))
        within, root = set_span_in_context(made, Context()), turn or made.get_span_context()
        for child in span.children:
            self._write(child, offset_ns, within, root, [])
        made.end(offset_ns + round(span.end * 1e9))


def _check_protocol() -> None:
    """Raise ConfigError if the environment asks for a protocol other than `PROTOCOL`."""
    common = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOL)
    asked = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", common)
    if asked != PROTOCOL:
        raise ConfigError(
            f"telemetry is sent by {PROTOCOL}, not by {asked!r}",
            f"set OTEL_EXPORTER_OTLP_PROTOCOL={PROTOCOL}; collectors take it at port 4318",
        )
