"""What the scheduler's decisions are worth: the same jobs under it and under simpler rules, in one table.

The jobs are made from a seed, or read from a trace that is given. Backfill here is the textbook one with an oracle: it
knows every duration exactly, which no real scheduler does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paddleflow.simulation.baselines import Backfill, Fifo
from paddleflow.simulation.cluster import Capacity, like_nodes, tenant_queues
from paddleflow.simulation.edl import Edl
from paddleflow.simulation.loop import Policy
from paddleflow.simulation.metrics import Metrics, measure
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.simulate import simulate
from paddleflow.simulation.synthetic import Recipe, make_trace
from paddleflow.simulation.trace import TraceJob, read_trace
from paddleflow.simulation.workload import prepare

POLICIES: dict[str, Callable[[Capacity], Policy]] = {
    "first come, first served": Fifo,
    "backfill that knows every duration": Backfill,
    "EDL's rule": Edl,
    "PaddleFlow": OwnScheduler.on,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    jobs: tuple[TraceJob, ...]
    gpus: int
    load: float


def made_up(jobs: int) -> list[Case]:
    """Rigid jobs at two loads, then the same with a third of them elastic."""
    rigid = make_trace(Recipe(jobs=jobs, tenants=6), seed=1)
    elastic = make_trace(Recipe(jobs=jobs, tenants=6, elastic_share=0.33), seed=1)
    return [
        Case(name="made up, load 0.85", jobs=rigid, gpus=64, load=0.85),
        Case(name="made up, load 0.95", jobs=rigid, gpus=64, load=0.95),
        Case(name="made up, a third elastic, load 0.95", jobs=elastic, gpus=64, load=0.95),
    ]


def from_trace(path: Path, gpus: int, limit: int | None) -> list[Case]:
    with path.open(newline="") as file:
        jobs = read_trace(file, sort=True, limit=limit)
    return [Case(name=f"{path.name}, load {load}", jobs=jobs, gpus=gpus, load=load) for load in (0.85, 0.95)]


def compare(case: Case) -> list[Metrics]:
    capacity = Capacity(nodes=like_nodes(case.gpus, 8), queues=())
    capacity = replace(capacity, queues=tenant_queues(case.jobs, capacity.nodes))
    workload = prepare(case.jobs, capacity, load=case.load)
    found = []
    for name, make in POLICIES.items():
        replayed = simulate(workload, make(capacity), timer=time.process_time)
        found.append(replace(measure(replayed), policy=name))
    return found


def table(case: Case, found: Sequence[Metrics]) -> str:
    header = (
        "policy",
        "mean completion",
        "mean delay",
        "p99 delay",
        "utilisation",
        "share deviation",
        "evicted",
        "CPU",
    )
    rows = [
        (
            each.policy,
            _hours(each.mean_completion_s),
            _hours(each.mean_delay_s),
            _hours(each.p99_delay_s),
            f"{each.utilisation:.1%}",
            f"{each.share_deviation:.1%}",
            str(each.evictions),
            f"{each.decision_s:.0f} s",
        )
        for each in found
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in [header, *rows]]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    title = f"{case.name}: {len(case.jobs):,} jobs on {case.gpus:,} GPUs, a queue for each tenant"
    return "\n".join([title, "", lines[0], rule, *lines[1:]])


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f} h"
