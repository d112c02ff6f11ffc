"""Whatever the workload and whoever decides: room is never given twice, everybody ends, and twice is the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.ids import JobId, NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.resources import Resources
from paddleflow.scheduling.decisions import Decisions
from paddleflow.simulation.baselines import Backfill, Fifo
from paddleflow.simulation.cluster import Capacity, parse_capacity
from paddleflow.simulation.edl import Edl
from paddleflow.simulation.loop import Policy
from paddleflow.simulation.metrics import measure
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.shares import Claim, divide
from paddleflow.simulation.simulate import Replay, simulate
from paddleflow.simulation.synthetic import spell_trace
from paddleflow.simulation.trace import TraceJob, read_trace
from paddleflow.simulation.workload import Submission, prepare

MAKERS: dict[str, Callable[[Capacity], Policy]] = {
    "paddleflow": OwnScheduler.on,
    "fifo": Fifo,
    "backfill": Backfill,
    "edl": Edl,
}
EXAMPLES = {"paddleflow": 150, "fifo": 100, "backfill": 150, "edl": 100}


class Audited:
    """A policy with an auditor beside it who keeps books of his own and believes nothing."""

    def __init__(self, policy: Policy, capacity: Capacity) -> None:
        self.policy = policy
        self.name = policy.name
        self.free = {node.name: dict(node.capacity.amounts) for node in capacity.nodes}
        self.gpus: dict[NodeName, dict[int, JobId]] = defaultdict(dict)
        self.each: dict[JobId, Resources] = {}
        self.tasks: dict[JobId, int] = {}
        self.held: dict[JobId, dict[int, Spot]] = {}
        self.parting: dict[JobId, list[Spot]] = defaultdict(list)
        self.bounds: dict[JobId, tuple[int, int]] = {}

    def submit(self, submission: Submission, now: float) -> None:
        entry = submission.entry
        self.each[entry.job_id], self.tasks[entry.job_id] = submission.each, submission.tasks
        elastic = entry.elastic
        self.bounds[entry.job_id] = (
            (submission.tasks, submission.tasks) if elastic is None else (elastic.least, elastic.most)
        )
        self.policy.submit(submission, now)

    def end(self, job_id: JobId) -> None:
        self._vacate(job_id)
        self.policy.end(job_id)

    def requeue(self, submission: Submission, now: float) -> None:
        self._vacate(submission.entry.job_id)
        self.policy.requeue(submission, now)

    def release(self, job_id: JobId) -> None:
        for spot in self.parting.pop(job_id, []):
            self._change(job_id, spot, 1)
        self.policy.release(job_id)

    def decide(self, now: float) -> Decisions:
        decisions = self.policy.decide(now)
        for eviction in decisions.evictions:
            assert eviction.job_id in self.held, "only those who run are evicted"
        for resize in decisions.resizes:
            held = self.held[resize.job_id]
            for spot in resize.drop:
                self.parting[resize.job_id].append(held.pop(spot.index))
            for spot in resize.add:
                self._occupy(resize.job_id, held, spot)
            least, most = self.bounds[resize.job_id]
            assert least <= len(held) <= most
        for admission in decisions.admissions:
            held = self.held[admission.job_id] = {}
            for spot in admission.spots:
                self._occupy(admission.job_id, held, spot)
            least, most = self.bounds[admission.job_id]
            assert least <= len(held) <= most, "a gang starts whole"
        return decisions

    def _occupy(self, job_id: JobId, held: dict[int, Spot], spot: Spot) -> None:
        assert spot.index not in held
        held[spot.index] = spot
        self._change(job_id, spot, -1)

    def _vacate(self, job_id: JobId) -> None:
        for spot in (*self.held.pop(job_id).values(), *self.parting.pop(job_id, [])):
            self._change(job_id, spot, 1)

    def _change(self, job_id: JobId, spot: Spot, sign: int) -> None:
        free = self.free[spot.node]
        for name, units in self.each[job_id]:
            free[name] = free.get(name, 0) + sign * units
            assert free[name] >= 0, f"{spot.node} has {free[name]} of {name}"
        assert len(set(spot.gpus)) == self.each[job_id].gpus
        for index in spot.gpus:
            if sign < 0:
                assert self.gpus[spot.node].setdefault(index, job_id) == job_id, "that GPU is somebody else's"
            else:
                del self.gpus[spot.node][index]


@st.composite
def jobs(draw: st.DrawFn) -> list[TraceJob]:
    made: list[TraceJob] = []
    now = 0.0
    for row in range(1, draw(st.integers(1, 18)) + 1):
        now += draw(st.sampled_from([0.0, 0.0, 1.0, 7.0, 40.0]))
        tasks = draw(st.sampled_from([1, 1, 1, 2, 3]))
        least = draw(st.sampled_from([None, None, 1, 2]))
        elastic = least is not None and least <= tasks
        made.append(
            TraceJob(
                id=f"job-{row}",
                row=row,
                submit_s=now,
                duration_s=draw(st.sampled_from([0.0, 1.0, 5.0, 33.0, 200.0])),
                gpus=draw(st.integers(0, 4)),
                cpu_milli=draw(st.sampled_from([500, 1000, 3000])),
                queue=draw(st.sampled_from(["a", "b", "c"])),
                tasks=tasks,
                min_tasks=least if elastic else None,
                max_tasks=tasks + draw(st.integers(0, 3)) if elastic else None,
                limit_s=draw(st.sampled_from([None, None, 10.0, 300.0])),
            )
        )
    return made


clusters = st.builds(
    lambda nodes, least, grace, checkpoint: parse_capacity(
        {
            "nodes": [{"gpus": gpus, "cpus": cpus} for gpus, cpus in nodes],
            "queues": [
                {"name": "a", "min": {"gpus": least}},
                {"name": "b", "weight": 3},
                {"name": "c", "min": {"gpus": 1}, "policies": ["strict"]},
            ],
            "costs": {"grace_s": grace, "checkpoint_s": checkpoint, "rescale_s": 3},
        }
    ),
    st.lists(st.tuples(st.integers(1, 5), st.integers(2, 8)), min_size=1, max_size=4),
    st.integers(0, 4),
    st.sampled_from([0.5, 10.0]),
    st.sampled_from([0, 4]),
)


def replayed(name: str, trace: list[TraceJob], capacity: Capacity) -> Replay:
    workload = prepare(trace, capacity)
    return simulate(workload, Audited(MAKERS[name](capacity), capacity))


@pytest.mark.parametrize("name", MAKERS)
def test_room_is_never_given_twice_and_everybody_ends(name: str) -> None:
    @settings(max_examples=EXAMPLES[name])
    @given(jobs(), clusters)
    def check(trace: list[TraceJob], capacity: Capacity) -> None:
        replay = replayed(name, trace, capacity)
        metrics = measure(replay)
        assert metrics.unfinished == 0
        assert metrics.jobs + metrics.refused == len(trace)
        assert all(0 <= held <= replay.usage.available for held in replay.usage.held)
        assert not replay.usage.held or replay.usage.held[-1] == 0, "at the end nothing is held"
        assert 0 <= metrics.utilisation <= 1 + 1e-9
        assert metrics.lost_gpu_s >= 0
        for one in replay.outcomes:
            assert one.started_s is not None and one.ended_s is not None
            assert one.submitted_s <= one.started_s <= one.ended_s
            assert 0 <= one.waited_s <= one.ended_s - one.submitted_s + 1e-9
        if name in ("fifo", "backfill"):
            assert (metrics.evictions, metrics.resizes, metrics.lost_gpu_s) == (0, 0, 0.0)
        assert replayed(name, trace, capacity) == replay, "the same twice"

    check()


@settings(max_examples=150)
@given(jobs(), clusters)
def test_fifo_starts_in_order_and_backfill_never_later(trace: list[TraceJob], capacity: Capacity) -> None:
    fifo = {one.job_id: one for one in replayed("fifo", trace, capacity).outcomes}
    starts = [one.started_s for one in fifo.values()]
    assert starts == sorted(start for start in starts if start is not None)
    waiting = replayed("backfill", trace, capacity).outcomes
    head = next((one for one in waiting if one.waited_s > 0), None)
    if head is not None:
        before = fifo[head.job_id]
        ahead = [one for one in waiting if one.submitted_s < head.submitted_s]
        if all(one.waited_s == 0 for one in ahead) and before.started_s is not None and head.started_s is not None:
            assert head.started_s <= before.started_s + 1e-6, "the first who has to wait is not delayed by those behind"


@settings(max_examples=200)
@given(
    st.floats(0, 1000),
    st.lists(
        st.builds(Claim, demand=st.floats(0, 500), least=st.floats(0, 300), weight=st.floats(0.1, 10)), max_size=6
    ),
)
def test_shares_are_within_bounds_and_nothing_is_wasted(amount: float, claims: list[Claim]) -> None:
    parts = divide(amount, claims)
    for part, claim in zip(parts, claims, strict=True):
        assert -1e-6 <= part <= claim.demand + 1e-6
    assert sum(parts) <= amount + 1e-6
    assert (
        sum(parts) >= min(amount, sum(claim.demand for claim in claims)) - 1e-6
        or sum(min(claim.demand, claim.least) for claim in claims) >= amount - 1e-6
    )


@settings(max_examples=50)
@given(jobs())
def test_a_spelt_trace_reads_back(trace: list[TraceJob]) -> None:
    asking = [one for one in trace if one.gpus]
    if asking:
        back = read_trace(list(spell_trace(asking)))
        assert [(one.id, one.gpus, one.tasks, one.min_tasks, one.max_tasks) for one in back] == [
            (one.id, one.gpus, one.tasks, one.min_tasks, one.max_tasks) for one in asking
        ]
