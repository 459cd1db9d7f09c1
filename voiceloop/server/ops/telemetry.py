"""Telemetry: gives the spans of turns, and the server's metrics, to OpenTelemetry's SDK.

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
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import anyio
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import Status, StatusCode

from voiceloop import __version__
from voiceloop.errors import ConfigError
from voiceloop.server.ops.metrics import Family, Metrics
from voiceloop.trace.otel import OWN, About, OtelSpan, Report, WordsSaid, turn_span
from voiceloop.types import TurnTrace

logger = logging.getLogger(__name__)

FLUSH_S = 3.0
"""Maximum seconds for which the end of the server waits until everything has been sent."""
INTERVAL_MS = 60_000.0
"""Milliseconds between two exports of the metrics if OTEL_METRIC_EXPORT_INTERVAL is not set."""
PROTOCOL = "http/protobuf"


class Telemetry:
    """The telemetry of one server. `begin` it once, and `end` it once."""

    def __init__(self, *, words: bool) -> None:
        """With `words`, also export what was said. Raises ConfigError for environment variables
        with values that are not supported."""
        self._words = words
        try:
            self._interval_s = _number("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL_MS) / 1000
            spans = OTLPSpanExporter() if _wanted("TRACES") else None
            self._exporter = OTLPMetricExporter() if _wanted("METRICS") else None
        except ValueError as error:
            raise ConfigError(f"telemetry: {error}", "correct the variables OTEL_*") from error
        named = Resource({"service.name": OWN, "service.version": __version__})
        self._resource = Resource.create().merge(named).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        if spans is not None:
            self._provider.add_span_processor(BatchSpanProcessor(spans))
        self._tracer = self._provider.get_tracer(OWN, __version__)
        self._over = threading.Event()
        self._sending: threading.Thread | None = None

    def begin(self, metrics: Metrics) -> None:
        """Export `metrics` from now on."""
        if self._exporter is not None:
            self._sending = threading.Thread(
                target=self._send, args=(metrics,), name="voiceloop-metrics", daemon=True
            )
            self._sending.start()

    def end(self) -> None:
        """Send what has not been sent, for at most `FLUSH_S` seconds. Blocks until then."""
        ending = threading.Thread(target=self._finish, name="voiceloop-flush", daemon=True)
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

    def _send(self, metrics: Metrics) -> None:
        """Export the metrics at each interval, and once more at the end."""
        assert self._exporter is not None
        since_ns, over = time.time_ns(), False
        while not over:
            over = self._over.wait(self._interval_s)
            data = to_otlp(metrics.families(), self._resource, since_ns, time.time_ns())
            self._exporter.export(data)  # pyright: ignore[reportUnknownMemberType]

    def _finish(self) -> None:
        self._over.set()
        self._provider.shutdown()
        if self._sending is not None and self._exporter is not None:
            self._sending.join()
            self._exporter.shutdown()  # pyright: ignore[reportUnknownMemberType]


def _number(variable: str, default: float) -> float:
    return float(os.environ.get(variable) or default)


def _wanted(signal: str) -> bool:
    """Return whether the environment asks for the export of `signal`. Raises ConfigError if it asks
    for a protocol other than `PROTOCOL`."""
    environ = os.environ
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environ.get(f"OTEL_{signal}_EXPORTER", "otlp") == "none":
        return False
    common = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOL)
    asked = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", common)
    if asked != PROTOCOL:
        raise ConfigError(
            f"telemetry is sent by {PROTOCOL}, not by {asked!r}",
            f"set OTEL_EXPORTER_OTLP_PROTOCOL={PROTOCOL}; collectors take it at port 4318",
        )
    return True


UNKNOWN: Any = None
"""Placeholder for the smallest and the largest value of a histogram, which Prometheus does not
keep."""


def to_otlp(
    families: Iterable[Family], resource: Resource, since_ns: int, now_ns: int
) -> MetricsData:
    """Return the metrics as data of the SDK. They have been counted since `since_ns`; both times
    are in nanoseconds since 1970."""
    metrics = [
        Metric(
            family.name,
            family.documentation,
            "s" if family.name.endswith("_seconds") else "",
            _data(family, since_ns, now_ns),
        )
        for family in families
    ]
    scope = ScopeMetrics(InstrumentationScope(OWN, __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], resource.schema_url)])


def _data(family: Family, since_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    cumulative = AggregationTemporality.CUMULATIVE
    if family.type == "histogram":
        return Histogram(_histograms(family, since_ns, now_ns), cumulative)
    counts = family.type == "counter"
    points = [
        NumberDataPoint(sample.labels, since_ns if counts else 0, now_ns, sample.value)
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    return Sum(points, cumulative, is_monotonic=True) if counts else Gauge(points)


def _histograms(family: Family, since_ns: int, now_ns: int) -> Sequence[HistogramDataPoint]:
    """Return a histogram for each set of labels. In Prometheus, the count of a bucket includes all
    smaller buckets; here it does not."""
    points: list[HistogramDataPoint] = []
    reached: list[tuple[float, float]] = []
    total = 0.0
    for sample in family.samples:  # of each set of labels: buckets, count, sum
        match sample.name.removeprefix(family.name):
            case "_bucket":
                reached.append((float(sample.labels["le"]), sample.value))
            case "_count":
                total = sample.value
            case "_sum":
                counts = [0.0, *(count for _, count in reached)]
                point = HistogramDataPoint(
                    sample.labels,
                    since_ns,
                    now_ns,
                    round(total),
                    sample.value,
                    [round(more - less) for less, more in pairwise(counts)],
                    [bound for bound, _ in reached[:-1]],  # the last is infinite
                    UNKNOWN,
                    UNKNOWN,
                )
                points.append(point)
                reached = []
            case _:
                pass
    return points
