"""What a replay amounts to, in the numbers people compare schedulers by.

Times are in seconds. The completion time of a job is from its submission to its end; its queueing delay is all the time
it spent in line, also after an eviction, so that a policy cannot look quick by starting jobs it then throws out.
A percentile is the smallest value that at least that part of the jobs do not exceed. Jobs that were refused, or never
got to their end, are counted and are in no average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paddleflow.simulation.simulate import Replay, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    policy: str
    jobs: int
    """That ended."""
    refused: int
    """Too large for the idle cluster or the queue's maximum."""
    unfinished: int
    mean_completion_s: float
    median_completion_s: float
    p99_completion_s: float
    mean_delay_s: float
    p99_delay_s: float
    makespan_s: float
    """From the first submission to the last end."""
    utilisation: float
    """Held of what was available from the first submission to the last; after it the cluster only drains. When all are
    submitted at once: over the makespan."""
    overall_utilisation: float
    """Held of what was available, over the makespan."""
    share_deviation: float
    """See ``shares``: how far a queue with work waiting was from what it is entitled to, over queues and time."""
    evictions: int
    lost_gpu_s: float
    """Held and of no use: progress thrown away by evictions, rooms on the way out, pauses of resizes. In seconds of
    CPU cores when nobody asks for GPUs."""
    resizes: int
    decisions: int
    decision_s: float
    longest_decision_s: float


def measure(replay: Replay) -> Metrics:
    ended = [(one, one.ended_s) for one in replay.outcomes if one.ended_s is not None]
    completions = sorted(end - one.submitted_s for one, end in ended)
    delays = sorted(one.waited_s for one, _ in ended)
    first = min((one.submitted_s for one in replay.outcomes), default=0.0)
    last = max((one.submitted_s for one in replay.outcomes), default=0.0)
    end = max((end for _, end in ended), default=last)
    held = held_seconds(replay.usage, first, end)
    window = last if last > first else end
    useful = math.fsum(one.done for one in replay.outcomes)
    unit = replay.unit
    return Metrics(
        policy=replay.policy,
        jobs=len(ended),
        refused=replay.refused,
        unfinished=len(replay.outcomes) - len(ended),
        mean_completion_s=_mean(completions),
        median_completion_s=percentile(completions, 0.5),
        p99_completion_s=percentile(completions, 0.99),
        mean_delay_s=_mean(delays),
        p99_delay_s=percentile(delays, 0.99),
        makespan_s=end - first,
        utilisation=_part(held_seconds(replay.usage, first, window), (window - first) * replay.usage.available),
        overall_utilisation=_part(held, (end - first) * replay.usage.available),
        share_deviation=replay.mean_share_deviation,
        evictions=sum(one.evictions for one in replay.outcomes),
        # Both sums are exact in theory; the difference of two large ones is not in floating point.
        lost_gpu_s=_without_noise(held - useful, held) / unit,
        resizes=sum(one.resizes for one in replay.outcomes),
        decisions=replay.decisions,
        decision_s=replay.decision_s,
        longest_decision_s=replay.longest_decision_s,
    )


def held_seconds(usage: Usage, begin: float, end: float) -> float:
    """How much was held between two times, times how long."""
    moments, held = usage.times, usage.held
    parts: list[float] = []
    for index, units in enumerate(held):
        since = max(begin, moments[index])
        until = min(end, moments[index + 1]) if index + 1 < len(moments) else end
        if until > since:
            parts.append(units * (until - since))
    return math.fsum(parts)


def percentile(ordered: Sequence[float], part: float) -> float:
    """Of values in rising order; zero of none."""
    if not ordered:
        return 0.0
    return ordered[max(0, min(len(ordered), math.ceil(part * len(ordered) - 1e-9)) - 1)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _part(some: float, whole: float) -> float:
    return some / whole if whole > 0 else 0.0


def _without_noise(value: float, scale: float) -> float:
    return value if value > scale * 1e-9 else 0.0
