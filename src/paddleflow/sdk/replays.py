"""What a server has run, as a trace, and replays of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from paddleflow.sdk.session import Session, present


@dataclass(frozen=True)
class MetricsInfo:
    """What one policy made of the jobs of a replay."""

    policy: str
    jobs: int
    """That ended."""
    refused: int
    """Too large for the idle cluster or for their queue."""
    unfinished: int
    meanCompletionSeconds: float
    """From submission to end."""
    medianCompletionSeconds: float
    p99CompletionSeconds: float
    meanDelaySeconds: float
    """All the time spent in line, also after an eviction."""
    p99DelaySeconds: float
    makespanSeconds: float
    utilisation: float
    """From the first submission to the last."""
    overallUtilisation: float
    """Until the last job ended."""
    shareDeviation: float
    evictions: int
    lostGpuSeconds: float
    resizes: int
    decisions: int
    decisionSeconds: float
    """Processor time of all decisions."""
    longestDecisionSeconds: float

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> MetricsInfo:
        return cls(**{one.name: data[one.name] for one in fields(cls)})


@dataclass(frozen=True)
class ReplayInfo:
    metrics: list[MetricsInfo]
    """One for each policy asked about."""
    utilisation: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By policy: from so many seconds on, so large a part of the cluster was held."""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> ReplayInfo:
        series = data.get("utilisation") or {}
        return cls(
            metrics=[MetricsInfo.from_wire(one) for one in data["metrics"]],
            utilisation={policy: [(at, part) for at, part in points] for policy, points in series.items()},
        )


class ReplayCalls(Session):
    """What the client can ask about the past, and about a past that might have been. For root."""

    def trace(
        self,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        cluster_name: str | None = None,
    ) -> tuple[bool, str]:
        """The jobs that have run and ended, as the text of a CSV file. Times are in seconds since 1970."""
        params = {"since": since, "until": until, "limit": limit, "clusterName": cluster_name}
        return True, b"".join(self._stream("/trace", params)).decode()

    def simulate(
        self,
        trace: str | None = None,
        cluster: Mapping[str, Any] | None = None,
        policy: str = "paddleflow",
        load: float | None = None,
        limit: int | None = None,
        sort: bool | None = None,
        *,
        cluster_name: str | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> tuple[bool, ReplayInfo]:
        """Replay jobs by the scheduler of the server; nothing is carried out.

        ``trace`` is the text of a CSV file, ``cluster`` describes nodes and queues such as
        ``{"nodes": [{"count": 4, "gpus": 8}], "queues": [{"name": "q", "max": {"gpus": 16}}]}``. Without them it is the
        server's own jobs, nodes and queues, of the cluster named; ``since`` and ``until`` choose among those jobs.
        ``policy`` is ``paddleflow``, ``fifo``, ``backfill``, ``edl`` or ``all``.
        """
        body = present(
            trace=trace,
            cluster=cluster,
            clusterName=cluster_name,
            policy=policy,
            load=load,
            limit=limit,
            sort=sort,
            since=since,
            until=until,
        )
        return True, ReplayInfo.from_wire(self._call("POST", "/simulate", body=body, repeatable=True))
