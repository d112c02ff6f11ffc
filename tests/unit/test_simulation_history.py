"""From what a platform has run to a trace, and from its nodes and queues to a place to replay it on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.clusters import NodeStatus
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, JobId, NodeName, TaskId
from paddleflow.domain.jobs import (
    Elasticity,
    FlavourRef,
    Job,
    JobKind,
    JobSpec,
    JobStatus,
    Member,
    Priority,
    RunPolicy,
    Task,
)
from paddleflow.domain.queues import QueueStatus
from paddleflow.domain.resources import CPU, GPU, NOTHING, Resources
from paddleflow.simulation.cluster import SIMULATED
from paddleflow.simulation.entrants import policy_named
from paddleflow.simulation.history import COLUMNS, needs_tasks, past_job, present_capacity, spell_history
from paddleflow.simulation.metrics import measure
from paddleflow.simulation.simulate import simulate
from paddleflow.simulation.trace import TraceJob, read_trace
from paddleflow.simulation.workload import prepare
from paddleflow.testing.builders import THEN, a_job, a_node, a_queue, resources


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def ended(spec: JobSpec | None = None, *, began: float | None = 10.0, ran: float = 60.0) -> Job:
    job = a_job(node="node-1", status=JobStatus.SUCCEEDED, spec=spec)
    start = None if began is None else THEN + after(began)
    return replace(job, started_at=start, finished_at=THEN + after((began or 0.0) + ran))


def a_member(role: str, replicas: int, asking: Resources) -> Member:
    return Member(role=role, replicas=replicas, flavour=FlavourRef(resources=asking), command="x")


def a_team(*members: Member, elastic: Elasticity | None = None) -> JobSpec:
    return JobSpec(kind=JobKind.DISTRIBUTED, members=members, elastic=elastic)


def a_task(job: Job, index: int, began: float, until: float | None, role: str = "worker") -> Task:
    return Task(
        id=TaskId(f"{job.id}-{role}-{index}"),
        job_id=job.id,
        role=role,
        index=index,
        node=NodeName("node-1"),
        started_at=THEN + after(began),
        finished_at=None if until is None else THEN + after(until),
    )


def told(job: Job, *tasks: Task) -> TraceJob:
    found = past_job(job, tasks)
    assert found is not None
    return found


def test_a_single_job() -> None:
    spec = JobSpec(members=(a_member("worker", 1, resources("2", "4Gi", gpus=1)),), policy=RunPolicy(deadline_s=99.5))
    found = told(replace(ended(spec), priority=Priority.HIGH))
    assert found == TraceJob(
        id="job-a",
        row=0,
        submit_s=THEN.timestamp(),
        duration_s=60.0,
        gpus=1,
        cpu_milli=2000,
        memory_bytes=4 << 30,
        queue="default-queue",
        priority=Priority.HIGH,
        tasks=1,
        limit_s=99.5,
    )


def test_what_never_ran_is_not_told() -> None:
    assert past_job(replace(ended(), started_at=None), ()) is None
    assert past_job(replace(ended(), finished_at=None), ()) is None
    only_scalars = JobSpec(members=(a_member("worker", 1, Resources({"example.com/fpga": 1})),))
    assert past_job(ended(only_scalars), ()) is None
    assert past_job(ended(JobSpec(members=(a_member("worker", 1, NOTHING),))), ()) is None


def test_a_job_nobody_saw_running_began_with_its_first_task() -> None:
    job = ended(began=None, ran=60.0)
    assert needs_tasks(job)
    assert not needs_tasks(ended())
    earlier_attempt = a_task(job, 7, 1, 2)
    assert told(job, earlier_attempt, a_task(job, 0, 45, 60)).duration_s == 15.0
    assert past_job(job, [earlier_attempt]) is None


def test_a_clock_set_back_makes_no_negative_time() -> None:
    assert told(ended(ran=-5.0)).duration_s == 0.0


SHAPES: list[tuple[tuple[Member, ...], int, int, int]] = [
    ((a_member("worker", 4, resources("2", gpus=8)),), 4, 8, 2000),
    ((a_member("pserver", 2, resources("4")), a_member("worker", 4, resources("2", gpus=2))), 4, 2, 4000),
    ((a_member("pserver", 1, resources("1")), a_member("worker", 2, resources("2"))), 3, 0, 1667),
    ((a_member("master", 1, resources("1", gpus=1)), a_member("worker", 2, resources("1", gpus=4))), 3, 3, 1000),
]


@pytest.mark.parametrize(("members", "tasks", "gpus", "cpu_milli"), SHAPES)
def test_roles_become_tasks_that_are_alike(members: tuple[Member, ...], tasks: int, gpus: int, cpu_milli: int) -> None:
    found = told(ended(a_team(*members)))
    assert (found.tasks, found.gpus, found.cpu_milli) == (tasks, gpus, cpu_milli)
    asked = a_team(*members).request
    assert found.gpus * tasks >= asked.gpus, "rounded up, never down"
    assert found.cpu_milli * tasks >= asked.cpu_milli


def test_an_elastic_job_is_evened_out() -> None:
    elastic = Elasticity(least=1, most=4)
    job = ended(a_team(a_member("worker", 2, resources("1", gpus=1)), elastic=elastic), began=0.0, ran=100.0)
    assert needs_tasks(job)
    tasks = [a_task(job, 0, 0, None), a_task(job, 1, 0, 100), a_task(job, 2, 40, 100), a_task(job, 9, -50, -10)]
    found = told(job, *tasks)
    assert (found.tasks, found.min_tasks, found.max_tasks) == (3, 1, 4), "2.6 tasks in the mean"
    assert found.duration_s == pytest.approx(260 / 3, abs=0.001)
    assert found.gpus == 1
    bare = told(job)
    assert (bare.tasks, bare.duration_s) == (1, 100.0), "without its tasks the least is all that is known"


AMOUNTS = st.integers(min_value=0, max_value=1 << 45)


@given(
    st.lists(
        st.builds(
            TraceJob,
            id=st.uuids().map(str),
            row=st.just(0),
            submit_s=st.integers(0, 2_000_000_000_000).map(lambda ms: ms / 1000),
            duration_s=st.integers(0, 10_000_000_000).map(lambda ms: ms / 1000),
            gpus=st.integers(1, 1000),
            cpu_milli=AMOUNTS,
            memory_bytes=AMOUNTS,
            queue=st.text("abc-", min_size=1, max_size=5),
            priority=st.sampled_from(Priority),
            tasks=st.integers(1, 1000),
            limit_s=st.none() | st.integers(1, 10_000_000).map(float),
        ),
        min_size=1,
        max_size=10,
        unique_by=lambda job: job.id,
    )
)
def test_what_is_spelt_can_be_read(jobs: list[TraceJob]) -> None:
    jobs.sort(key=lambda job: job.submit_s)
    text = spell_history(jobs)
    assert text.splitlines()[0] == ",".join(COLUMNS)
    first = jobs[0].submit_s
    for row, (read, spelt) in enumerate(zip(read_trace(text.splitlines()), jobs, strict=True), 1):
        assert read.submit_s == pytest.approx(spelt.submit_s - first, abs=0.001)
        assert replace(read, submit_s=0) == replace(spelt, row=row, submit_s=0)


def test_the_present_cluster() -> None:
    nodes = [
        a_node("node-1"),
        a_node("node-2", status=NodeStatus.NOT_READY),
        replace(a_node("node-3"), cluster=ClusterName("other")),
    ]
    queues = [
        a_queue("open", maximum=resources("4", gpus=2)),
        a_queue("shut", status=QueueStatus.CLOSED),
        replace(a_queue("else"), cluster=ClusterName("other")),
    ]
    jobs = [replace(told(ended()), queue=name) for name in ("open", "gone", "gone")]
    capacity = present_capacity(DEFAULT_CLUSTER, nodes, queues, jobs)
    assert [(node.name, node.cluster) for node in capacity.nodes] == [("node-1", SIMULATED)]
    assert [(queue.name, queue.cluster, queue.status) for queue in capacity.queues] == [
        ("open", SIMULATED, QueueStatus.OPEN),
        ("shut", SIMULATED, QueueStatus.OPEN),
        ("gone", SIMULATED, QueueStatus.OPEN),
    ]
    assert capacity.queues[2].over_maximum(Resources({CPU: 1 << 40, GPU: 1 << 20})) is None
    with pytest.raises(Invalid, match="no ready node"):
        present_capacity(ClusterName("none"), nodes, queues)


@pytest.mark.parametrize("policy", ["paddleflow", "fifo", "backfill", "edl"])
def test_a_past_without_gpus_and_one_that_no_longer_fits(policy: str) -> None:
    """A cluster may have lost what its jobs once used: they are counted, and nothing fails."""
    small = [replace(told(ended()), id=JobId(f"job-{n}"), row=n) for n in (1, 2)]
    large = replace(small[0], id=JobId("job-3"), row=3, gpus=64)
    for jobs, counts in (([*small, large], (2, 1)), ([large], (0, 1))):
        capacity = present_capacity(DEFAULT_CLUSTER, [a_node(having=resources("8", "32Gi"))], [], jobs)
        metrics = measure(simulate(prepare(jobs, capacity), policy_named(policy, capacity)))
        assert (metrics.policy, metrics.jobs, metrics.refused, metrics.unfinished) == (policy, *counts, 0)
