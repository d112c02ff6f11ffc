"""What Prometheus scrapes: durations of calls, counts of jobs, the process itself. No label ever holds an id."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from paddleflow.engine.reads import Reads

_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})
_BUCKETS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """One registry for one app, so that two in a process do not count each other's calls."""

    def __init__(self, reads: Reads) -> None:
        self._registry = CollectorRegistry()
        self._durations = Histogram(
            "pf_metric_api_duration_millisecond",
            "How long calls of the API took, in milliseconds",
            ["apiName", "method", "code"],
            buckets=_BUCKETS_MS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(_JobCounts(reads))

    def observe(self, path: str, method: str, status: int, took_ms: float) -> None:
        """``path`` is the route's template; what matched no route counts together."""
        known = method if method in _METHODS else "OTHER"
        self._durations.labels(path or "unknown", known, str(status)).observe(took_ms)

    def scrape(self) -> bytes:
        """Raises Unavailable when the jobs cannot be counted: half a scrape would read as no jobs."""
        return generate_latest(self._registry)


class _JobCounts(Collector):
    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield self._family()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = self._family()
        for (queue, status), count in self._reads.job_counts().items():
            family.add_metric([queue, status], count)
        yield family

    @staticmethod
    def _family() -> GaugeMetricFamily:
        return GaugeMetricFamily("pf_jobs", "Jobs that are stored, by queue and status", labels=["queue", "status"])
