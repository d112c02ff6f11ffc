"""What every store must list and find, kind by kind: the other half of the contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.clusters import ClusterStatus, NodeStatus
from paddleflow.domain.errors import Conflict, Duplicate
from paddleflow.domain.ids import ClusterName, FilesystemId, FlavourName, JobId, QueueName, UserName
from paddleflow.domain.jobs import ACTIVE, Job, JobStatus, TaskStatus, Usage
from paddleflow.domain.queries import ClusterFilter, FlavourFilter, JobFilter, QueueFilter
from paddleflow.domain.users import ResourceType
from paddleflow.ports.store import Store
from tests.contracts import samples
from tests.contracts.store_contract import ALICE, ALL, page_through, stored_example, undone


class StoreListsContract:
    @pytest.fixture
    def list_strategy(self) -> str:
        """For a store that has more than one way to make a list: which one to take."""
        return "the only one"

    # Users and grants

    def test_users_are_listed_without_root(self, store: Store) -> None:
        with store.write() as unit:
            for name in ("alice", "root", "bobby", "carol"):
                unit.users.add(samples.user(name))
        with store.read() as view:
            assert [user.name for user in page_through(view.users.page, 2)] == ["alice", "bobby", "carol"]

    def test_grants(self, store: Store) -> None:
        with store.write() as unit:
            added = [
                unit.grants.add(samples.grant(user, queue)) for user in ("alice", "bobby") for queue in ("q1", "q2")
            ]
            unit.grants.add(samples.grant("alice", "fs-1", resource_type=ResourceType.FILESYSTEM))
            with pytest.raises(Duplicate):
                unit.grants.add(samples.grant("alice", "q1", id="grant-other"))
        with store.read() as view:
            assert view.grants.find(ALICE, ResourceType.QUEUE, "q1") == added[0]
            assert view.grants.find(ALICE, ResourceType.USER, "q1") is None
            assert [grant.resource_id for grant in view.grants.of_user(ALICE)] == ["q1", "q2", "fs-1"]
            assert len(page_through(lambda request: view.grants.page(None, request), 2)) == 5
            assert len(page_through(lambda request: view.grants.page(ALICE, request), 2)) == 3
        with store.write() as unit:
            unit.grants.delete(UserName("bobby"), ResourceType.QUEUE, "q2")
            unit.grants.delete_of_resource(ResourceType.QUEUE, "q1")
        with store.read() as view:
            assert [grant.resource_id for grant in view.grants.page(None, ALL).rows] == ["q2", "fs-1"]
        with store.write() as unit:
            unit.grants.delete_of_user(ALICE)
        with store.read() as view:
            assert view.grants.page(None, ALL).rows == ()

    # Capacity

    def test_flavours_are_found_by_part_of_their_name_and_by_cluster(self, store: Store) -> None:
        with store.write() as unit:
            for name, cluster in (
                ("Small", None),
                ("small-gpu", None),
                ("tiny", "c1"),
                ("smaller", "c2"),
                ("a%b", None),
            ):
                unit.flavours.add(samples.flavour(name, cluster=cluster))
        with store.read() as view:

            def names(**where: Any) -> list[str]:
                return [str(row.name) for row in view.flavours.page(FlavourFilter(**where), ALL).rows]

            assert names() == ["Small", "small-gpu", "a%b"]
            assert names(name_contains="small") == ["small-gpu"]
            assert names(name_contains="%") == ["a%b"]
            assert names(name_contains="_") == []
            assert names(cluster="c1") == ["Small", "small-gpu", "tiny", "a%b"]
            assert names(cluster="c2", name_contains="small") == ["small-gpu", "smaller"]
            assert view.flavours.find(FlavourName("SMALL")) is None

    def test_clusters_and_their_nodes(self, store: Store) -> None:
        one, two = ClusterName("b-cluster"), ClusterName("a-cluster")
        down = samples.node("n1", two, status=NodeStatus.NOT_READY, address="10.0.0.1")
        with store.write() as unit:
            unit.clusters.add(samples.cluster(one))
            unit.clusters.add(samples.cluster(two, status=ClusterStatus.OFFLINE))
            unit.clusters.replace_nodes(
                one, [samples.node("n2", one), samples.node("N10", one), samples.node("n1", one)]
            )
            unit.clusters.replace_nodes(two, [down])
        with store.read() as view:
            assert [cluster.name for cluster in view.clusters.all()] == [one, two]
            assert [(node.cluster, node.name) for node in view.clusters.nodes()] == [
                (two, "n1"),
                (one, "N10"),
                (one, "n1"),
                (one, "n2"),
            ]
            assert view.clusters.nodes(two) == (down,)
            assert [row.name for row in view.clusters.page(ClusterFilter(status="offline"), ALL).rows] == [two]
            assert [row.name for row in view.clusters.page(ClusterFilter(names=frozenset({one})), ALL).rows] == [one]
            assert len(page_through(lambda request: view.clusters.page(ClusterFilter(), request), 1)) == 2
        with store.write() as unit:
            unit.clusters.replace_nodes(one, [samples.node("n3", one)])
            unit.clusters.delete(two)
        with store.read() as view:
            assert view.clusters.nodes() == (samples.node("n3", one),)

    def test_queues_are_listed_among_those_a_user_may_see(self, store: Store) -> None:
        with store.write() as unit:
            for n in range(5):
                unit.queues.add(samples.queue(f"q{n}"))
        with store.read() as view:

            def names(limit: int = 2, **where: Any) -> list[str]:
                return [row.name for row in page_through(lambda r: view.queues.page(QueueFilter(**where), r), limit)]

            assert names() == ["q0", "q1", "q2", "q3", "q4"] == [queue.name for queue in view.queues.all()]
            assert names(name="q3") == ["q3"]
            assert names(among=frozenset({"q1", "q4", "unknown"})) == ["q1", "q4"]
            assert names(among=frozenset({"q1"}), name="q2") == []
            assert names(among=frozenset()) == []

    def test_filesystems_are_listed_by_owner_and_name(self, store: Store) -> None:
        with store.write() as unit:
            for owner in ("alice", "bobby"):
                for name in ("data", "code"):
                    unit.filesystems.add(samples.filesystem(name, owner))
        with store.read() as view:

            def ids(owner: UserName | None, name: str) -> list[str]:
                return [row.id for row in page_through(lambda r: view.filesystems.page(owner, name, r), 1)]

            assert len(ids(None, "")) == 4
            assert ids(ALICE, "") == ["fs-alice-data", "fs-alice-code"]
            assert ids(None, "code") == ["fs-alice-code", "fs-bobby-code"]
            assert ids(ALICE, "code") == ["fs-alice-code"]
            assert view.filesystems.find(FilesystemId("fs-alice-none")) is None

    # Jobs

    @stored_example
    @given(job=samples.jobs)
    def test_any_job_comes_back_as_it_was(self, store: Store, job: Job) -> None:
        with undone(store) as unit:
            added = unit.jobs.add(job)
            assert unit.jobs.find(job.id) == added == replace(job, seq=added.seq, version=1)

    @stored_example
    @given(before=samples.jobs, after=samples.jobs)
    def test_any_change_of_a_job_is_kept(self, store: Store, before: Job, after: Job) -> None:
        with undone(store) as unit:
            added = unit.jobs.add(before)
            saved = unit.jobs.save(replace(after, seq=added.seq, version=1))
            assert unit.jobs.find(before.id) == saved == replace(after, seq=added.seq, version=2)
            for key, value in after.labels.items():
                assert unit.jobs.page(JobFilter(labels={key: value}), ALL).rows == (saved,)
            for key in before.labels.keys() - after.labels.keys():
                assert unit.jobs.page(JobFilter(labels={key: before.labels[key]}), ALL).rows == ()

    @pytest.mark.usefixtures("list_strategy")
    @stored_example
    @given(rows=samples.listed_jobs, where=samples.job_filters, limit=st.integers(1, 7))
    def test_a_filtered_list_is_what_a_plain_filter_gives(
        self, store: Store, rows: list[dict[str, Any]], where: JobFilter, limit: int
    ) -> None:
        with undone(store) as unit:
            stored = [unit.jobs.add(samples.job(f"job-{n}", **row)) for n, row in enumerate(rows)]
            expected = [job for job in stored if plainly_matches(job, where)]
            assert page_through(lambda request: unit.jobs.page(where, request), limit) == expected
            newest = page_through(lambda request: unit.jobs.page(where, request), limit, newest_first=True)
            assert newest == expected[::-1]

    def test_many_jobs_are_found_at_once(self, store: Store) -> None:
        with store.write() as unit:
            for n in range(1200):
                unit.jobs.add(samples.job(f"job-{n}"))
        with store.read() as view:
            wanted = [JobId(f"job-{n}") for n in range(1300)]
            assert {job.id for job in view.jobs.find_many([*wanted, *wanted])} == set(wanted[:1200])
            assert len(view.jobs.find_many(iter(wanted))) == 1200
            assert view.jobs.find_many([]) == ()

    def test_jobs_by_status(self, store: Store) -> None:
        statuses = [JobStatus.SUCCEEDED, JobStatus.RUNNING, JobStatus.INIT, JobStatus.RUNNING, JobStatus.FAILED]
        with store.write() as unit:
            for n, status in enumerate(statuses):
                unit.jobs.add(samples.job(f"job-{n}", status=status, queue=f"q{n % 2}"))
        with store.read() as view:
            assert [job.id for job in view.jobs.in_status(ACTIVE)] == ["job-1", "job-2", "job-3"]
            assert view.jobs.in_status(frozenset()) == ()
            assert dict(view.jobs.count_by_status()) == {
                ("q0", JobStatus.SUCCEEDED): 1,
                ("q0", JobStatus.INIT): 1,
                ("q0", JobStatus.FAILED): 1,
                ("q1", JobStatus.RUNNING): 2,
            }

    @pytest.mark.parametrize(
        ("activated", "finished", "queue", "overlaps"),
        [
            (None, None, "q1", False),
            (None, 150, "q1", False),
            (0, 99, "q1", False),
            (0, 100, "q1", True),
            (0, 150, "q1", True),
            (120, 150, "q1", True),
            (0, 500, "q1", True),
            (200, 500, "q1", True),
            (201, 500, "q1", False),
            (150, None, "q1", True),
            (0, None, "q1", True),
            (201, None, "q1", False),
            (120, 150, "q2", False),
        ],
    )
    def test_jobs_that_ran_in_a_window(
        self, store: Store, activated: int | None, finished: int | None, queue: str, *, overlaps: bool
    ) -> None:
        with store.write() as unit:
            job = unit.jobs.add(
                samples.job(
                    queue=queue,
                    activated_at=None if activated is None else samples.at(activated),
                    finished_at=None if finished is None else samples.at(finished),
                )
            )
        with store.read() as view:
            found = view.jobs.finished_between(QueueName("q1"), samples.at(100), samples.at(200))
        assert found == ((job,) if overlaps else ())

    def test_tasks_are_put_replaced_and_ordered(self, store: Store) -> None:
        ids = [("worker", 10), ("worker", 2), ("ps", 0)]
        made = [samples.task(f"job-1-{role}-{n}", role=role, index=n) for role, n in ids]
        done = replace(
            made[1],
            status=TaskStatus.FAILED,
            message="out of memory",
            exit_code=-9,
            signal=9,
            gpus=(0, 3),
            usage=Usage(cpu_s=1.25, max_memory_bytes=2**40, memory_bytes=7),
            started_at=samples.at(1),
            finished_at=samples.at(2),
        )
        with store.write() as unit:
            unit.jobs.add(samples.job())
            unit.jobs.put_tasks(made)
            unit.jobs.put_tasks([done])
            unit.jobs.put_tasks([])
        with store.read() as view:
            assert view.jobs.tasks(JobId("job-1")) == (made[2], done, made[0])
            assert view.jobs.tasks(JobId("job-2")) == ()
        with store.write() as unit:
            unit.jobs.delete(JobId("job-1"))
            unit.jobs.add(samples.job())
        with store.read() as view:
            assert view.jobs.tasks(JobId("job-1")) == (), "the tasks of a deleted job stayed"

    def test_a_task_of_no_job_is_refused(self, store: Store) -> None:
        with pytest.raises(Conflict), store.write() as unit:
            unit.jobs.put_tasks([samples.task("job-9-worker-0", "job-9")])

    def test_labels_go_with_their_job(self, store: Store) -> None:
        with store.write() as unit:
            unit.jobs.add(samples.job(labels={"team": "a"}))
            unit.jobs.delete(JobId("job-1"))
            unit.jobs.add(samples.job())
        with store.read() as view:
            assert view.jobs.page(JobFilter(labels={"team": "a"}), ALL).rows == ()


def plainly_matches(job: Job, where: JobFilter) -> bool:
    if where.owner is not None and job.owner != where.owner:
        return False
    if where.statuses and job.status not in where.statuses:
        return False
    if where.queue is not None and job.queue != where.queue:
        return False
    if where.cluster is not None and job.cluster != where.cluster:
        return False
    if where.updated_since is not None and job.updated_at < where.updated_since:
        return False
    if where.activated_since is not None and (job.activated_at is None or job.activated_at < where.activated_since):
        return False
    return all(job.labels.get(key) == value for key, value in where.labels.items())
