"""A replay on the wire: which jobs on which cluster, and what every policy made of them."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, cast

from typing_extensions import TypedDict

from paddleflow.api.wire import WireRequest
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName
from paddleflow.domain.queries import MOST_REPLAYED, REPLAY_POLICIES, PastJobs, ReplayQuestion
from paddleflow.simulation.metrics import Metrics

EVERY_POLICY = "all"
LATEST = 253_000_000_000
"""Seconds since 1970 that every zone can still tell as a date."""


class ReplayRequest(WireRequest):
    trace: str | None = None
    cluster: dict[str, Any] | None = None
    clusterName: str | None = None
    policy: str = REPLAY_POLICIES[0]
    load: float | None = None
    limit: int | None = None
    sort: bool = False
    since: int | None = None
    until: int | None = None

    def to_query(self) -> ReplayQuestion:
        self._check_alternatives()
        if self.policy not in (*REPLAY_POLICIES, EVERY_POLICY):
            known = ", ".join((*REPLAY_POLICIES, EVERY_POLICY))
            raise invalid_field("policy", f"[{self.policy[:80]}] is not one of {known}")
        if self.limit is not None and not 1 <= self.limit <= MOST_REPLAYED:
            raise invalid_field(
                "limit",
                f"give 1 to {MOST_REPLAYED}; paddleflow simulate, on the command line, replays any number of jobs",
            )
        return ReplayQuestion(
            trace=self.trace,
            past=PastJobs(since=_moment("since", self.since), until=_moment("until", self.until)),
            description=self.cluster,
            cluster=ClusterName(self.clusterName or DEFAULT_CLUSTER),
            policies=REPLAY_POLICIES if self.policy == EVERY_POLICY else (self.policy,),
            load=self.load,
            limit=self.limit,
            sort=self.sort,
        )

    def _check_alternatives(self) -> None:
        """What would quietly be ignored is refused."""
        if self.trace is not None:
            for name, given in (("since", self.since), ("until", self.until)):
                if given is not None:
                    raise invalid_field(name, "it chooses among the server's own jobs; leave it or trace out")
        elif self.sort:
            raise invalid_field("sort", "the server's own jobs are in order; it is for a trace")
        if None not in (self.trace, self.cluster, self.clusterName):
            raise invalid_field("clusterName", "trace and cluster say everything already; leave it out")


def _moment(field: str, seconds: int | None) -> datetime | None:
    if seconds is None:
        return None
    if not 0 <= seconds <= LATEST:
        raise invalid_field(field, "give seconds since 1970")
    return datetime.fromtimestamp(seconds, UTC)


class MetricsAnswer(TypedDict):
    """Every field of ``Metrics``, which says what each means."""

    policy: str
    jobs: int
    refused: int
    unfinished: int
    meanCompletionSeconds: float
    medianCompletionSeconds: float
    p99CompletionSeconds: float
    meanDelaySeconds: float
    p99DelaySeconds: float
    makespanSeconds: float
    utilisation: float
    overallUtilisation: float
    shareDeviation: float
    evictions: int
    lostGpuSeconds: float
    resizes: int
    decisions: int
    decisionSeconds: float
    longestDecisionSeconds: float


class ReplayAnswer(TypedDict):
    metrics: list[MetricsAnswer]
    utilisation: dict[str, list[tuple[float, float]]]
    """By policy: from so many seconds on, so large a part of the cluster was held."""


def metrics_answer(metrics: Metrics) -> MetricsAnswer:
    return cast("MetricsAnswer", {_wire_name(name): value for name, value in asdict(metrics).items()})


def _wire_name(name: str) -> str:
    """``mean_completion_s`` is ``meanCompletionSeconds``."""
    first, *rest = [*name.removesuffix("_s").split("_"), *(["seconds"] if name.endswith("_s") else [])]
    return first + "".join(word.capitalize() for word in rest)


def replay_answer(replays: Iterable[tuple[Metrics, Iterable[tuple[float, float]]]]) -> ReplayAnswer:
    answer: ReplayAnswer = {"metrics": [], "utilisation": {}}
    for metrics, utilisation in replays:
        answer["metrics"].append(metrics_answer(metrics))
        answer["utilisation"][metrics.policy] = list(utilisation)
    return answer
