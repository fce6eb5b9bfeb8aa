"""Pushes the service's figures by OpenTelemetry, beside the Prometheus text: the same names, labels and numbers.

Where      `OTEL_EXPORTER_OTLP_ENDPOINT` and its relatives say it, as for every program that speaks OTLP over HTTP
When       every minute, or every `OTEL_METRIC_EXPORT_INTERVAL` milliseconds
Never      anything but these figures: no traces, no logs, nothing about a request
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import deniable
from deniable._extras import require
from deniable.collect.server.telemetry import BOUNDS, Family, Labels, log, merged

SDK, OTLP = "opentelemetry.sdk.metrics.export", "opentelemetry.exporter.otlp.proto.http.metric_exporter"
EXTRA = "otel"
Figures = Mapping[int, Sequence[Family]]


def check_installed() -> None:
    """Raise an error that names the extra unless the packages are installed."""
    for module in (SDK, OTLP):
        require(module, EXTRA)


class Pusher:
    """Pushes what `gather` returns, again and again, from its own thread."""

    def __init__(self, gather: Callable[[], Figures]) -> None:
        self._gather, self._begun, self._stop = gather, time.time_ns(), threading.Event()
        self._exporter = require(OTLP, EXTRA).OTLPMetricExporter()
        self._seconds = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000
        threading.Thread(target=self._run, name="otel", daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self._exporter.export(metrics_data(self._gather(), self._begun, time.time_ns()))
            except Exception as failed:
                log("error", where="otel", kind=type(failed).__name__)

    def close(self) -> None:
        self._stop.set()
        self._exporter.shutdown()


def metrics_data(families: Figures, begun: int, now: int) -> Any:
    """The figures as the SDK's data, counted since `begun`; times are in nanoseconds since 1970."""
    sdk = require(SDK, EXTRA)
    resources = require("opentelemetry.sdk.resources", EXTRA)
    scopes = require("opentelemetry.sdk.util.instrumentation", EXTRA)
    whole = sdk.AggregationTemporality.CUMULATIVE

    def point(labels: Labels, value: float) -> Any:
        return sdk.NumberDataPoint(dict(labels), begun, now, float(value))

    def data(kind: str, samples: list[tuple[str, Labels, float]]) -> Any:
        if kind == "histogram":
            return sdk.Histogram([_histogram(sdk, begun, now, *one) for one in _by_labels(samples)], whole)
        points = [point(labels, value) for _, labels, value in samples]
        return sdk.Sum(points, whole, True) if kind == "counter" else sdk.Gauge(points)

    metrics = [
        sdk.Metric(name, one.help, "s" if name.endswith("_seconds") else "", data(one.kind, samples))
        for name, (one, samples) in merged(families).items()
        if samples
    ]
    resource = resources.Resource.create({"service.name": "deniable", "service.version": deniable.__version__})
    scope = scopes.InstrumentationScope("deniable", deniable.__version__)
    return sdk.MetricsData([sdk.ResourceMetrics(resource, [sdk.ScopeMetrics(scope, metrics, "")], "")])


def _by_labels(samples: list[tuple[str, Labels, float]]) -> list[tuple[Labels, dict[str, list[float]]]]:
    """The parts of each histogram: cumulated buckets in their order, sum and count."""
    found: dict[Labels, dict[str, list[float]]] = {}
    for end, labels, value in samples:
        own = tuple(label for label in labels if label[0] != "le")
        found.setdefault(own, {}).setdefault(end, []).append(value)
    return list(found.items())


def _histogram(sdk: Any, begun: int, now: int, labels: Labels, parts: Mapping[str, Sequence[float]]) -> Any:
    buckets = [int(after - before) for before, after in pairwise((0.0, *parts["_bucket"]))]
    (count,), (total,) = parts["_count"], parts["_sum"]
    return sdk.HistogramDataPoint(dict(labels), begun, now, int(count), total, buckets, list(BOUNDS), None, None)
