"""The autoscaler of EDL as it was: its published cases, its faults, and that it now comes to an end."""

from __future__ import annotations

import pytest

from paddleflow.domain.resources import CPU, GPU, MEMORY, Resources
from paddleflow.simulation.cluster import Capacity, Costs, like_nodes, one_queue
from paddleflow.simulation.edl import Edl, Load, Trainer, plan
from paddleflow.simulation.metrics import measure
from paddleflow.simulation.simulate import simulate
from paddleflow.simulation.trace import TraceJob
from paddleflow.simulation.workload import prepare

ROOMY = 10**9


def trainer(size: int, least: int, most: int, **each: int) -> Trainer:
    names = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}
    return Trainer(
        each=Resources({names[name]: units for name, units in each.items()}), size=size, least=least, most=most
    )


Pair = tuple[int, int]


def load(max_load: float = 1.0, *, cpu: Pair = (0, ROOMY), gpu: Pair = (0, 0), memory: Pair = (0, ROOMY)) -> Load:
    """Each as used and total."""
    total = Resources({CPU: cpu[1], GPU: gpu[1], MEMORY: memory[1]})
    return Load(total, {CPU: cpu[0], GPU: gpu[0], MEMORY: memory[0]}, max_load)


def test_published_cases() -> None:
    cases = [
        (load(cpu=(1000, 4000)), trainer(1, 1, 3, cpu=1000, memory=105), 2),
        (load(0.8, cpu=(1000, 3000)), trainer(1, 1, 3, cpu=1000, memory=105), 1),
        (load(0.8, cpu=(3000, 3000)), trainer(3, 1, 3, cpu=1000, memory=105), -1),
        (load(cpu=(2000, 3000), gpu=(8, 10)), trainer(1, 1, 3, cpu=1000, gpu=1), 1),
        (load(cpu=(990, 2000), gpu=(9, 10)), trainer(1, 1, 3, cpu=1000, gpu=1), 1),
        (load(cpu=(1000, 4000), memory=(1000, 1000)), trainer(1, 1, 3, cpu=1000, memory=105), 0),
        (load(cpu=(6000, 9000)), trainer(6, 1, 3, cpu=1000), -3),
    ]
    for at, (state, one, expected) in enumerate(cases):
        plan([one], state)
        assert one.more == expected, f"case {at}"


def test_published_orders() -> None:
    named = {"a": trainer(2, 1, 2), "b": trainer(2, 1, 20), "c": trainer(2, 1, 10)}
    assert sorted(named, key=lambda name: named[name].score) == ["b", "c", "a"]
    named = {
        "a": trainer(1, 1, 2, gpu=1, cpu=1),
        "b": trainer(1, 1, 2, cpu=1, memory=1),
        "c": trainer(1, 1, 2, cpu=10),
        "d": trainer(1, 1, 2, cpu=1, memory=2),
    }
    assert sorted(named, key=lambda name: named[name].score) == ["b", "d", "c", "a"]


def test_what_went_on_for_ever_ends() -> None:
    """Growing looks at all GPUs and shrinking at the desired load, so each round gives one and takes it back."""
    full = trainer(1, 1, 20, gpu=1)
    plan([full], load(1.0, gpu=(1, 10)))
    assert full.more == 9
    held_back = trainer(1, 1, 20, gpu=1)
    plan([held_back], load(0.97, gpu=(1, 10)))
    assert held_back.more == 8


def test_it_is_a_round_robin_and_not_fair() -> None:
    poor, rich = trainer(2, 1, 20, gpu=1), trainer(11, 1, 20, gpu=1)
    plan([poor, rich], load(gpu=(13, 18)))
    assert (poor.more, rich.more) == (3, 2)
    first, second, third = trainer(18, 2, 20, gpu=1), trainer(4, 2, 20, gpu=1), trainer(2, 2, 20, gpu=1)
    plan([first, second, third], load(gpu=(24, 20)))
    assert (first.more, second.more, third.more) == (-2, -2, 0)


def elastic(ident: str, submit: float, least: int, most: int, duration: float = 1000.0) -> TraceJob:
    return TraceJob(
        id=ident, row=1, submit_s=submit, duration_s=duration, gpus=1, tasks=least, min_tasks=least, max_tasks=most
    )


def test_it_grows_into_idle_room_and_shrinks_for_those_who_wait() -> None:
    capacity = Capacity(nodes=like_nodes(8, 8), queues=one_queue(), costs=Costs(grace_s=5, rescale_s=10))
    rigid = TraceJob(id="rigid", row=2, submit_s=200, duration_s=50, gpus=6)
    workload = prepare([elastic("a", 0, 1, 8, 5000.0), rigid], capacity)
    replay = simulate(workload, Edl(capacity))
    outcomes = {one.job_id: one for one in replay.outcomes}
    assert measure(replay).unfinished == 0
    assert outcomes["a"].resizes >= 3, "up, down for the rigid one, and up again"
    assert outcomes["a"].ended_s is not None and outcomes["a"].ended_s < 1500
    started = outcomes["rigid"].started_s
    assert started is not None and 200 < started < 300
    assert max(replay.usage.held) <= 8


@pytest.mark.parametrize("seed_gap", [0, 7, 31])
def test_a_crowd_of_elastic_jobs_comes_to_an_end(seed_gap: int) -> None:
    capacity = Capacity(nodes=like_nodes(16, 4), queues=one_queue(), costs=Costs(rescale_s=20))
    jobs = [elastic(f"j{n}", n * seed_gap, 1 + n % 3, 6, 100.0 + n) for n in range(20)]
    metrics = measure(simulate(prepare(jobs, capacity), Edl(capacity)))
    assert (metrics.jobs, metrics.unfinished) == (20, 0)
