"""Whatever the history, room is never handed out twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.jobs import Job, JobStatus, Priority
from paddleflow.domain.resources import NOTHING
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.snapshot import Ledger
from paddleflow.testing.builders import a_job, a_node, a_queue, resources

sizes = st.builds(lambda cpu, gpus: resources(cpu=str(cpu), gpus=gpus), st.integers(1, 5), st.integers(0, 3))
arrivals = st.lists(
    st.tuples(sizes, st.sampled_from(["q1", "q2", "q3"]), st.sampled_from(list(Priority)), st.booleans()), max_size=25
)
nodes = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 4)), min_size=1, max_size=4).map(
    lambda rows: [a_node(f"node-{n}", resources(str(cpu), "64Gi", gpus)) for n, (cpu, gpus) in enumerate(rows)]
)
QUEUES = [
    a_queue("q1", maximum=resources("6", "64Gi")),
    a_queue("q2"),
    a_queue("q3", maximum=resources("99", "99Gi", 2)),
]


@settings(max_examples=300, deadline=None)
@given(arrivals, nodes)
def test_no_history_oversubscribes(history, machines) -> None:
    ledger = Ledger()
    ledger.set_capacity(QUEUES, machines)
    live: dict[str, Job] = {}
    for seq, (asking, queue, priority, someone_ends) in enumerate(history, 1):
        job = a_job(f"job-{seq}", queue=queue, asking=asking, priority=priority, seq=seq)
        live[job.id] = job
        ledger.put(job)
        snapshot = ledger.snapshot()
        decisions = decide(snapshot)
        assert decide(snapshot) == decisions, "the same picture gives the same decisions"
        started = {admission.job_id for admission in decisions.admissions}
        for entry in (entry for line in snapshot.waiting.values() for entry in line):
            told = decisions.reason_of(entry)
            assert (told is None) == (entry.job_id in started), "everybody is either admitted or told why not"
        for admission in decisions.admissions:
            running = replace(live[admission.job_id], status=JobStatus.RUNNING, placements=admission.placements)
            live[running.id] = running
            ledger.put(running)
        check(live, machines)
        if someone_ends:
            ended = next((j for j in live.values() if j.status is JobStatus.RUNNING), None)
            if ended is not None:
                del live[ended.id]
                ledger.put(replace(ended, status=JobStatus.SUCCEEDED))


def check(live: dict[str, Job], machines: list) -> None:
    used = defaultdict(lambda: NOTHING)
    cards: Counter[tuple[str, int]] = Counter()
    by_queue = defaultdict(lambda: NOTHING)
    for job in live.values():
        for placement in job.placements:
            used[placement.node] = used[placement.node] + job.spec.request
            cards.update((placement.node, index) for index in placement.gpus)
            assert len(placement.gpus) == job.spec.request.gpus
        if job.placements:
            by_queue[job.queue] = by_queue[job.queue] + job.spec.request
    for node in machines:
        assert used[node.name].fits(node.capacity)
        assert all(index < node.capacity.gpus for name, index in cards if name == node.name)
    assert all(count == 1 for count in cards.values())
    for queue in QUEUES:
        assert queue.over_maximum(by_queue[queue.name]) is None
