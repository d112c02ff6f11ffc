"""Replays small enough to do by hand: what happens when, and what it amounts to."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest

from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Spot
from paddleflow.scheduling.decisions import Admission, Decisions, Eviction, Resize
from paddleflow.scheduling.reasons import Reason, WaitKind
from paddleflow.simulation.baselines import Backfill, Fifo
from paddleflow.simulation.cluster import Capacity, Costs, like_nodes, one_queue, parse_capacity
from paddleflow.simulation.draw import draw, slices, spell_time
from paddleflow.simulation.loop import Policy
from paddleflow.simulation.metrics import held_seconds, measure, percentile
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.shares import Claim, ShareMeter, divide
from paddleflow.simulation.simulate import Replay, Usage, simulate
from paddleflow.simulation.trace import TraceJob
from paddleflow.simulation.workload import ROLE, Submission, Workload, prepare

BECAUSE = Reason(kind=WaitKind.NO_ROOM, sentence="a test wants it so")


def job(ident: str, submit: float, duration: float, gpus: int, **more: Any) -> TraceJob:
    return TraceJob(id=ident, row=1, submit_s=submit, duration_s=duration, gpus=gpus, **more)


def on(gpus: int, *jobs: TraceJob, per_node: int | None = None, costs: Costs | None = None) -> Workload:
    nodes = like_nodes(gpus, per_node or gpus)
    return prepare(jobs, Capacity(nodes=nodes, queues=one_queue(), costs=costs or Costs()))


def times(replay: Replay) -> dict[str, tuple[float | None, float | None]]:
    return {one.job_id: (one.started_s, one.ended_s) for one in replay.outcomes}


# Four GPUs: a long job takes three, a wide one waits for all four, a short and a long single one come after it.
CROWD = (
    job("long", 0, 100, 3),
    job("wide", 10, 50, 4),
    job("short", 20, 30, 1),
    job("late", 20, 90, 1),
)


def test_fifo_lets_nobody_pass() -> None:
    replay = simulate(on(4, *CROWD), Fifo(on(4, *CROWD).capacity))
    assert times(replay) == {"long": (0, 100), "wide": (100, 150), "short": (150, 180), "late": (150, 240)}


def test_backfill_lets_those_pass_who_do_not_delay_the_head() -> None:
    workload = on(4, *CROWD)
    replay = simulate(workload, Backfill(workload.capacity))
    assert times(replay) == {"long": (0, 100), "wide": (100, 150), "short": (20, 50), "late": (150, 240)}


def test_backfill_may_outlast_the_reservation_on_room_the_head_does_not_need() -> None:
    jobs = (job("long", 0, 100, 3), job("wide", 10, 50, 3), job("aside", 20, 500, 1))
    workload = on(4, *jobs)
    replay = simulate(workload, Backfill(workload.capacity))
    assert times(replay) == {"long": (0, 100), "wide": (100, 150), "aside": (20, 520)}


def test_backfill_keeps_its_promise_to_a_gang_over_nodes() -> None:
    jobs = (
        job("one", 0, 100, 2),
        job("two", 0, 60, 1),
        job("gang", 5, 10, 2, tasks=2),
        job("sly", 6, 200, 1),
        job("quick", 7, 20, 1),
    )
    workload = on(4, *jobs, per_node=2)
    replay = simulate(workload, Backfill(workload.capacity))
    assert times(replay)["gang"] == (100, 110)
    assert times(replay)["quick"] == (7, 27)
    assert times(replay)["sly"] == (110, 310)


def test_metrics_by_hand() -> None:
    workload = on(4, *CROWD)
    metrics = measure(simulate(workload, Fifo(workload.capacity)))
    assert (metrics.jobs, metrics.refused, metrics.unfinished) == (4, 0, 0)
    assert metrics.mean_completion_s == pytest.approx((100 + 140 + 160 + 220) / 4)
    assert metrics.median_completion_s == 140
    assert metrics.p99_completion_s == 220
    assert metrics.mean_delay_s == pytest.approx((0 + 90 + 130 + 130) / 4)
    assert metrics.p99_delay_s == 130
    assert metrics.makespan_s == 240
    # Three of four until the last submission at 20; in all 300 + 200 + 30 + 90 GPU-seconds of 960.
    assert metrics.utilisation == pytest.approx(0.75)
    assert metrics.overall_utilisation == pytest.approx(620 / 960)
    assert (metrics.evictions, metrics.resizes, metrics.lost_gpu_s) == (0, 0, 0.0)
    assert metrics.decisions == 7, "at 0, 10, 20, 100, 150, 180 and 240"


def test_decisions_are_timed_by_the_caller() -> None:
    workload = on(1, job("a", 0, 1, 1))
    ticks = iter(range(100))
    metrics = measure(simulate(workload, Fifo(workload.capacity), timer=lambda: float(next(ticks))))
    assert (metrics.decisions, metrics.decision_s, metrics.longest_decision_s) == (2, 2.0, 1.0)


def test_a_limit_ends_a_job() -> None:
    workload = on(1, job("a", 0, 100, 1, limit_s=40.0), job("b", 0, 10, 1))
    assert times(simulate(workload, Fifo(workload.capacity))) == {"a": (0, 40), "b": (40, 50)}


def test_nothing_to_do_takes_no_time() -> None:
    workload = on(1, job("a", 0, 0, 1), job("b", 0, 0, 1))
    metrics = measure(simulate(workload, Fifo(workload.capacity)))
    assert (metrics.jobs, metrics.makespan_s, metrics.utilisation) == (2, 0.0, 0.0)


class Scripted:
    """A policy that does at each time what the script says."""

    name = "scripted"

    def __init__(self, script: dict[float, Decisions]) -> None:
        self.script = script
        self.heard: list[tuple[str, str]] = []

    def submit(self, submission: Submission, now: float) -> None:
        self.heard.append(("submit", submission.entry.job_id))

    def end(self, job_id: JobId) -> None:
        self.heard.append(("end", job_id))

    def requeue(self, submission: Submission, now: float) -> None:
        self.heard.append(("requeue", submission.entry.job_id))

    def release(self, job_id: JobId) -> None:
        self.heard.append(("release", job_id))

    def decide(self, now: float) -> Decisions:
        return self.script.pop(now, Decisions())


def spots(count: int, first: int = 0) -> tuple[Spot, ...]:
    return tuple(Spot(role=ROLE, index=first + n, node="node-00001", gpus=(first + n,)) for n in range(count))  # type: ignore[arg-type]


A = JobId("a")
START = Decisions(admissions=(Admission(job_id=A, spots=spots(1)),))
EVICT = Decisions(evictions=(Eviction(job_id=A, in_favour_of=JobId("b"), reason=BECAUSE),))


@pytest.mark.parametrize(("checkpoint_s", "ends", "lost"), [(None, 170.0, 80.0), (20.0, 130.0, 40.0)])
def test_an_evicted_job_goes_on_from_its_checkpoint(checkpoint_s: float | None, ends: float, lost: float) -> None:
    """Runs 50 s, leaves for 30 s, starts again at 80 with 90 s of work: whole, or without the first 40 of 50."""
    workload = on(1, job("a", 0, 90, 1), job("b", 50, 5, 1), costs=Costs(grace_s=30, checkpoint_s=checkpoint_s))
    policy = Scripted({0.0: START, 50.0: EVICT, 80.0: START})
    replay = simulate(workload, policy)
    metrics = measure(replay)
    assert times(replay)["a"] == (0, ends)
    assert metrics.evictions == 1
    assert metrics.lost_gpu_s == pytest.approx(lost)
    assert policy.heard[:3] == [("submit", "a"), ("submit", "b"), ("requeue", "a")]
    assert (metrics.jobs, metrics.unfinished) == (1, 1), "nobody ever started b"


def test_an_elastic_job_speeds_up_and_pays_for_each_resize() -> None:
    """200 task-seconds: one task for 50 s, a pause of 10, two from 60 to 100, one more pause, one to the end."""
    workload = on(2, job("a", 0, 200, 1, tasks=1, min_tasks=1, max_tasks=2), costs=Costs(grace_s=5, rescale_s=10))
    script = {
        0.0: Decisions(admissions=START.admissions, wake_at=50.0),
        50.0: Decisions(resizes=(Resize(job_id=A, add=spots(1, 1), reason=BECAUSE),), wake_at=100.0),
        100.0: Decisions(resizes=(Resize(job_id=A, drop=spots(1, 1), reason=BECAUSE),)),
    }
    policy = Scripted(script)
    replay = simulate(workload, policy)
    metrics = measure(replay)
    assert times(replay) == {"a": (0, 180)}
    assert policy.heard == [("submit", "a"), ("release", "a"), ("end", "a")]
    assert metrics.resizes == 2
    # Two tasks paused for ten seconds, one for ten, and one on its way out for five.
    assert metrics.lost_gpu_s == pytest.approx(20 + 10 + 5)


@pytest.mark.parametrize(
    "script",
    [
        {0.0: EVICT},
        {0.0: Decisions(resizes=(Resize(job_id=A, add=spots(1), reason=BECAUSE),))},
        {0.0: START, 1.0: START},
        {0.0: START, 1.0: Decisions(resizes=(Resize(job_id=A, drop=spots(1), reason=BECAUSE),))},
    ],
)
def test_impossible_decisions_are_told(script: dict[float, Decisions]) -> None:
    workload = on(1, job("a", 0, 10, 1), job("b", 1, 1, 1))
    with pytest.raises(Conflict, match="job a"):
        simulate(workload, Scripted(script))


class Restless(Scripted):
    def decide(self, now: float) -> Decisions:
        return Decisions(wake_at=now + 1.0)


def test_a_policy_that_never_ends_is_stopped() -> None:
    with pytest.raises(Conflict, match="circles"):
        simulate(on(1, job("a", 0, 1, 1)), Restless({}))


def test_progress_is_told() -> None:
    workload = on(300, *(job(f"j{n}", n, 1, 1) for n in range(300)))
    told: list[int] = []
    simulate(workload, Fifo(workload.capacity), progress=told.append)
    assert told == [256, 300]


def test_own_scheduler_keeps_the_place_of_the_wide_one() -> None:
    """With limits that can be relied on, only those pass who are gone in time."""
    limited = (replace(one, limit_s=one.duration_s) for one in CROWD)
    workload = on(4, *limited)
    replay = simulate(workload, OwnScheduler.on(workload.capacity))
    assert times(replay) == {"long": (0, 100), "wide": (100, 150), "short": (20, 50), "late": (150, 240)}


def test_borrowed_room_is_taken_back() -> None:
    """One queue borrows everything; the other's guarantee comes back to it after the grace."""
    capacity = parse_capacity(
        {
            "nodes": [{"gpus": 4}],
            "queues": [
                {"name": "a", "min": {"gpus": 2}, "max": {"gpus": 4}},
                {"name": "b", "min": {"gpus": 2}, "max": {"gpus": 4}},
            ],
            "costs": {"grace_s": 30},
        }
    )
    jobs = [job(f"a{n}", 0, 1000, 1, queue="a") for n in range(4)]
    jobs += [job(f"b{n}", 100, 1000, 1, queue="b") for n in range(2)]
    replay = simulate(prepare(jobs, capacity), OwnScheduler.on(capacity))
    metrics = measure(replay)
    assert (metrics.evictions, metrics.unfinished) == (2, 0)
    starts = sorted(start for name, (start, _) in times(replay).items() if name in ("b0", "b1") and start is not None)
    assert starts[0] == 130.0
    assert starts[1] < 200.0


def test_divide() -> None:
    free = Claim(demand=100)
    assert divide(90, [free, free, free]) == pytest.approx([30, 30, 30])
    assert divide(90, [free, Claim(demand=10), free]) == pytest.approx([40, 10, 40])
    assert divide(90, [free, Claim(demand=100, weight=2)]) == pytest.approx([30, 60])
    assert divide(90, [free, Claim(demand=100, least=50)]) == pytest.approx([20, 70])
    assert divide(90, [Claim(demand=100, least=80), Claim(demand=100, least=100)]) == pytest.approx([40, 50])
    assert divide(90, [Claim(demand=5), Claim(demand=6)]) == [5, 6]
    assert divide(90, []) == []


def test_share_deviation_by_hand() -> None:
    """Two equal queues on ten GPUs; one holds all of them for 30 s while the other waits, then they have half each."""
    capacity = parse_capacity({"nodes": [{"gpus": 10}], "queues": [{"name": "a"}, {"name": "b"}]})
    first, second = (queue.name for queue in capacity.queues)
    meter = ShareMeter(capacity.queues, capacity.nodes[0].capacity and "nvidia.com/gpu", 10)
    meter.look({first: 10, second: 0}, {first: 0, second: 8})
    meter.pass_time(30)
    meter.look({first: 5, second: 5}, {first: 0, second: 3})
    meter.pass_time(10)
    meter.look({first: 5, second: 5}, {first: 0, second: 0})
    meter.pass_time(1000)
    assert meter.deviation() == {second: pytest.approx((0.5 * 30 + 0 * 10) / 40)}
    assert meter.mean_deviation() == pytest.approx(0.375)


def test_entitlement_in_a_tree() -> None:
    """A department's guarantee belongs to its teams; the other department cannot count on it while they want it."""
    capacity = parse_capacity(
        {
            "nodes": [{"gpus": 100}],
            "queues": [
                {"name": "lab", "min": {"gpus": 80}},
                {"name": "team-a", "parent": "lab"},
                {"name": "team-b", "parent": "lab", "weight": 3},
                {"name": "guests"},
            ],
        }
    )
    lab, team_a, team_b, guests = (queue.name for queue in capacity.queues)
    meter = ShareMeter(capacity.queues, "nvidia.com/gpu", 100)
    held = {lab: 0, team_a: 45, team_b: 45, guests: 10}
    meter.look(held, {lab: 0, team_a: 500, team_b: 500, guests: 500})
    meter.pass_time(1)
    # 80 and half of the other 20 for the lab, of which one quarter and three quarters for its teams; 10 for guests.
    assert meter.deviation() == {
        team_a: pytest.approx(0.45 - 0.225),
        team_b: pytest.approx(0.675 - 0.45),
        guests: pytest.approx(0.0),
    }


def usage(*points: tuple[float, float], available: int = 10) -> Usage:
    moments, held = array("d", (at for at, _ in points)), array("d", (units for _, units in points))
    return Usage(times=moments, held=held, waiting=array("d", [0.0] * len(points)), available=available)


def test_held_seconds() -> None:
    series = usage((0, 10), (10, 0), (20, 5))
    assert held_seconds(series, 0, 40) == 10 * 10 + 20 * 5
    assert held_seconds(series, 5, 25) == 5 * 10 + 5 * 5
    assert held_seconds(usage(), 0, 10) == 0


@pytest.mark.parametrize(("part", "value"), [(0.0, 1), (0.5, 2), (0.51, 3), (0.75, 3), (0.99, 4), (1.0, 4)])
def test_percentile(part: float, value: float) -> None:
    assert percentile([1, 2, 3, 4], part) == value
    assert percentile([], part) == 0.0


def test_chart() -> None:
    series = usage((0, 10), (50, 5), (100, 0))
    assert slices(series, 200, 4) == [1.0, 0.5, 0.0, 0.0]
    lines = draw(series, 200, width=26, height=2)
    assert lines == [
        "100% │█████               ",
        " 50% │██████████          ",
        "     └────────────────────",
        "      0               3.3m",
    ]
    plain = draw(series, 200, width=26, height=2, ascii_only=True)
    assert plain[0] == "100% |@@@@@               "
    assert all(line.isascii() for line in plain)
    assert draw(usage(), 0, width=5)[0].strip() == "100% │", "nothing held is an empty chart"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90, "90s"), (1500, "25m"), (12_600, "3.5h"), (1_036_800, "12d"), (9.95e6, "115d")]
)
def test_spelt_times(seconds: float, text: str) -> None:
    assert spell_time(seconds) == text


def test_policies_are_policies() -> None:
    """The types say so; here for whoever reads."""
    capacity = on(1, job("a", 0, 1, 1)).capacity
    policies: list[Policy] = [Fifo(capacity), Backfill(capacity), OwnScheduler.on(capacity)]
    assert [policy.name for policy in policies] == ["fifo", "backfill", "paddleflow"]
