"""Workloads made from a seed: what a trace looks like without anybody's data.

Arrivals are a Poisson process. Sizes have two modes, as in every published trace of GPU clusters: most jobs take one
GPU, a few take whole nodes, and those few take most of the time. Durations are log-normal, larger jobs run longer, and
tenants differ in how much they submit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paddleflow.domain.errors import invalid_field
from paddleflow.domain.jobs import Priority
from paddleflow.simulation.chance import Chance
from paddleflow.simulation.trace import OWN_NEEDED, TraceJob

_SMALL = ((1, 2, 4), (0.8, 0.12, 0.08))
_NODES = ((1, 2, 4), (0.75, 0.2, 0.05))
_URGENCY = ((Priority.LOW, Priority.NORMAL, Priority.HIGH), (0.2, 0.7, 0.1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What the workload is like."""

    jobs: int = 1_000
    tenants: int = 4
    mean_gap_s: float = 60.0
    """Between two submissions."""
    median_duration_s: float = 600.0
    spread: float = 1.5
    """Of the logarithm of durations; 1.5 puts the 99th percentile at some thirty times the median."""
    gpus_per_node: int = 8
    whole_node_share: float = 0.1
    elastic_share: float = 0.0
    """Of the jobs; they are one GPU a task, up to twice a node."""

    def check(self) -> None:
        for name, value in (("jobs", self.jobs), ("tenants", self.tenants), ("gpus_per_node", self.gpus_per_node)):
            if value < 1:
                raise invalid_field(name, f"[{value}] must be at least 1")
        for name, share in (("whole_node_share", self.whole_node_share), ("elastic_share", self.elastic_share)):
            if not 0 <= share <= 1:
                raise invalid_field(name, f"[{share:g}] must be between 0 and 1")
        for name, amount in (("mean_gap_s", self.mean_gap_s), ("median_duration_s", self.median_duration_s)):
            if not amount > 0:
                raise invalid_field(name, f"[{amount:g}] must be above 0")


def make_trace(recipe: Recipe, seed: int) -> tuple[TraceJob, ...]:
    """The same jobs for the same recipe and seed, always."""
    recipe.check()
    chance = Chance(seed)
    tenants = [f"tenant-{number + 1}" for number in range(recipe.tenants)]
    appetite = [1.0 / (number + 1) for number in range(recipe.tenants)]
    jobs: list[TraceJob] = []
    now = 0.0
    for row in range(1, recipe.jobs + 1):
        gpus, tasks, least, most = _size(recipe, chance)
        longer = 1.0 + 0.5 * (gpus * tasks > 1)
        jobs.append(
            TraceJob(
                id=f"job-{row}",
                row=row,
                submit_s=round(now, 3),
                duration_s=round(max(1.0, longer * chance.log_normal(recipe.median_duration_s, recipe.spread)), 3),
                gpus=gpus,
                queue=chance.pick(tenants, appetite),
                priority=chance.pick(*_URGENCY),
                tasks=tasks,
                min_tasks=least,
                max_tasks=most,
            )
        )
        now += chance.exponential(recipe.mean_gap_s)
    return tuple(jobs)


def _size(recipe: Recipe, chance: Chance) -> tuple[int, int, int | None, int | None]:
    """GPUs of a task, tasks, and the bounds of an elastic job."""
    if chance.uniform() < recipe.elastic_share:
        usual = 1 + chance.below(recipe.gpus_per_node)
        return 1, usual, max(1, usual // 2), max(usual + 1, min(2 * usual, 2 * recipe.gpus_per_node))
    if chance.uniform() < recipe.whole_node_share:
        return recipe.gpus_per_node, chance.pick(*_NODES), None, None
    return min(recipe.gpus_per_node, chance.pick(*_SMALL)), 1, None, None


def spell_trace(jobs: Sequence[TraceJob]) -> Iterator[str]:
    """The lines of a trace file that holds these jobs."""
    yield ",".join((*OWN_NEEDED, "queue", "priority", "tasks", "min_tasks", "max_tasks", "id")) + "\n"
    for job in jobs:
        cells = (job.submit_s, job.duration_s, job.gpus, job.queue, job.priority.name, job.tasks)
        yield (
            ",".join("" if cell is None else str(cell) for cell in (*cells, job.min_tasks, job.max_tasks, job.id))
            + "\n"
        )
