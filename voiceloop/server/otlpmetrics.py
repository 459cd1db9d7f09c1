"""The server's metrics as OpenTelemetry's SDK exports them: the same figures and names as those of
`/metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

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
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from voiceloop import __version__
from voiceloop.server.metrics import Family
from voiceloop.trace.otel import OWN

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
