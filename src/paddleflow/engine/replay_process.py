"""The process in which a server replays jobs: it reads one piece of work, writes one answer and ends.

A replay computes for seconds. In a thread of the server it would slow down every request and the scheduler itself, and
nothing could stop it half-way. Here it gets what others leave of the processor, and can be ended. It is started by
``replays`` and by nobody else; what goes over the pipes is pickled by the two ends of this one package.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from paddleflow.domain.errors import PaddleFlowError
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.draw import slices
from paddleflow.simulation.entrants import policy_named
from paddleflow.simulation.metrics import Metrics, measure
from paddleflow.simulation.simulate import Usage, simulate
from paddleflow.simulation.trace import TraceJob
from paddleflow.simulation.workload import prepare

MOST_CPU_S = 60
"""The kernel ends the process then, also if the server that started it is gone."""
_POINTS = 200
_NICENESS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    jobs: tuple[TraceJob, ...]
    capacity: Capacity
    load: float | None
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What one policy made of the jobs."""

    metrics: Metrics
    utilisation: tuple[tuple[float, float], ...]
    """From so many seconds after the first submission until the next, so large a part was held in the mean."""


def replayed(work: Work) -> tuple[Replayed, ...]:
    workload = prepare(work.jobs, work.capacity, load=work.load)
    answers = []
    for name in work.policies:
        replay = simulate(workload, policy_named(name, work.capacity), timer=time.thread_time)
        answers.append(Replayed(metrics=measure(replay), utilisation=tuple(_points(replay.usage))))
    return tuple(answers)


def _points(usage: Usage) -> Sequence[tuple[float, float]]:
    end = usage.times[-1] if usage.times else 0.0
    if end <= 0:
        return ()
    parts = slices(usage, end, _POINTS)
    return [(round(index * end / _POINTS, 3), round(part, 4)) for index, part in enumerate(parts)]


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    os.nice(_NICENESS)
    work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301  written by the server that started this process
    answer: tuple[Replayed, ...] | PaddleFlowError
    try:
        answer = replayed(work)
    except PaddleFlowError as error:
        answer = error
    pickle.dump(answer, sys.stdout.buffer)
