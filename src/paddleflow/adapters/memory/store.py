"""The store in dictionaries: for stories, simulations and anything that need not outlive its process.

Keeps every promise of the port; speed with many thousands of rows is not one of them. Writers take turns, readers see
the state that was committed when they began (tables.py).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from paddleflow.adapters.memory.catalog import MemoryNumbers, MemoryPipelines, MemorySchedules
from paddleflow.adapters.memory.runs import MemoryArtifacts, MemoryCacheEntries, MemoryRunRemains, MemoryRuns
from paddleflow.adapters.memory.storage import (
    MemoryCacheConfigs,
    MemoryCacheReports,
    MemoryFilesystems,
    MemoryLinks,
    MemoryMounts,
    MemorySnapshots,
)
from paddleflow.adapters.memory.tables import Rows, State, Transaction, duplicate, through_json
from paddleflow.domain.clusters import Cluster, Node
from paddleflow.domain.errors import Conflict, Duplicate, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import ROOT, ClusterName, FlavourName, JobId, QueueName, UserName
from paddleflow.domain.jobs import Job, JobStatus, Task
from paddleflow.domain.queries import ClusterFilter, FlavourFilter, JobFilter, Page, PageRequest, QueueFilter
from paddleflow.domain.queues import Queue
from paddleflow.domain.users import Grant, ResourceType, User
from paddleflow.ports.store import CommitListener, Receipt

_log = logging.getLogger(__name__)


class MemoryUsers:
    def __init__(self, transaction: Transaction) -> None:
        self._rows: Rows[User] = Rows(transaction, "user", lambda user: user.name)

    def find(self, name: UserName) -> User | None:
        return self._rows.find(name)

    def add(self, user: User) -> User:
        return self._rows.add(user)

    def save(self, user: User) -> User:
        return self._rows.save(user)

    def delete(self, name: UserName) -> None:
        self._rows.delete(name)

    def page(self, request: PageRequest) -> Page[User]:
        return self._rows.page(request, lambda user: user.name != ROOT)


class MemoryGrants:
    def __init__(self, transaction: Transaction) -> None:
        self._rows: Rows[Grant] = Rows(
            transaction,
            "grant",
            lambda grant: (grant.user, grant.resource_type.value, grant.resource_id),
            also_unique=lambda grant: grant.id,
        )

    def find(self, user: UserName, resource_type: ResourceType, resource_id: str) -> Grant | None:
        return self._rows.find((user, resource_type.value, resource_id))

    def add(self, grant: Grant) -> Grant:
        return self._rows.add(grant)

    def delete(self, user: UserName, resource_type: ResourceType, resource_id: str) -> None:
        self._rows.delete((user, resource_type.value, resource_id))

    def delete_of_user(self, user: UserName) -> None:
        self._rows.delete_where(lambda grant: grant.user == user)

    def delete_of_resource(self, resource_type: ResourceType, resource_id: str) -> None:
        self._rows.delete_where(lambda grant: grant.resource_type is resource_type and grant.resource_id == resource_id)

    def of_user(self, user: UserName) -> tuple[Grant, ...]:
        return tuple(grant for grant in self._rows.all() if grant.user == user)

    def page(self, user: UserName | None, request: PageRequest) -> Page[Grant]:
        return self._rows.page(request, lambda grant: user is None or grant.user == user)


class MemoryFlavours:
    def __init__(self, transaction: Transaction) -> None:
        self._rows: Rows[Flavour] = Rows(
            transaction, "flavour", lambda flavour: flavour.name, also_unique=lambda flavour: flavour.id
        )

    def find(self, name: FlavourName) -> Flavour | None:
        return self._rows.find(name)

    def add(self, flavour: Flavour) -> Flavour:
        return self._rows.add(flavour)

    def save(self, flavour: Flavour) -> Flavour:
        return self._rows.save(flavour)

    def delete(self, name: FlavourName) -> None:
        self._rows.delete(name)

    def page(self, where: FlavourFilter, request: PageRequest) -> Page[Flavour]:
        return self._rows.page(
            request,
            lambda flavour: where.name_contains in flavour.name and flavour.cluster in (None, where.cluster),
        )


class MemoryClusters:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Cluster] = Rows(
            transaction, "cluster", lambda cluster: cluster.name, also_unique=lambda cluster: cluster.id
        )

    def find(self, name: ClusterName) -> Cluster | None:
        return self._rows.find(name)

    def add(self, cluster: Cluster) -> Cluster:
        return self._rows.add(cluster)

    def save(self, cluster: Cluster) -> Cluster:
        return self._rows.save(cluster)

    def delete(self, name: ClusterName) -> None:
        self._rows.delete(name)
        self._transaction.change("node").pop(name, None)

    def all(self) -> tuple[Cluster, ...]:
        return self._rows.all()

    def page(self, where: ClusterFilter, request: PageRequest) -> Page[Cluster]:
        return self._rows.page(
            request,
            lambda cluster: (
                (not where.names or cluster.name in where.names)
                and (not where.status or cluster.status.value == where.status)
            ),
        )

    def nodes(self, cluster: ClusterName | None = None) -> tuple[Node, ...]:
        held: Mapping[ClusterName, tuple[Node, ...]] = self._transaction.table("node")
        found = [node for name, nodes in held.items() if cluster in (None, name) for node in nodes]
        return tuple(sorted(found, key=lambda node: (node.cluster, node.name)))

    def replace_nodes(self, cluster: ClusterName, nodes: Sequence[Node]) -> None:
        self._transaction.change("node")[cluster] = tuple(replace(node, cluster=cluster) for node in nodes)


class MemoryQueues:
    def __init__(self, transaction: Transaction) -> None:
        self._rows: Rows[Queue] = Rows(
            transaction, "queue", lambda queue: queue.name, also_unique=lambda queue: queue.id
        )

    def find(self, name: QueueName) -> Queue | None:
        return self._rows.find(name)

    def add(self, queue: Queue) -> Queue:
        return self._rows.add(queue)

    def save(self, queue: Queue) -> Queue:
        return self._rows.save(queue)

    def delete(self, name: QueueName) -> None:
        self._rows.delete(name)

    def all(self) -> tuple[Queue, ...]:
        return self._rows.all()

    def page(self, where: QueueFilter, request: PageRequest) -> Page[Queue]:
        return self._rows.page(
            request,
            lambda queue: where.name in (None, queue.name) and (where.among is None or queue.name in where.among),
        )


def _matches(job: Job, where: JobFilter) -> bool:
    return (
        where.owner in (None, job.owner)
        and (not where.statuses or job.status in where.statuses)
        and where.queue in (None, job.queue)
        and where.cluster in (None, job.cluster)
        and (where.updated_since is None or job.updated_at >= where.updated_since)
        and (
            where.activated_since is None
            or (job.activated_at is not None and job.activated_at >= where.activated_since)
        )
        and where.labels.items() <= job.labels.items()
    )


class MemoryRemains:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, job_id: JobId, cluster: ClusterName) -> None:
        table = self._transaction.change("remains")
        if job_id in table:
            raise Duplicate(f"remains [{job_id}] already exist", details={"kind": "remains", "name": job_id})
        table[job_id] = cluster

    def find(self, job_id: JobId) -> ClusterName | None:
        return self._transaction.table("remains").get(job_id)

    def all(self) -> tuple[tuple[JobId, ClusterName], ...]:
        return tuple(sorted(self._transaction.table("remains").items()))

    def delete(self, job_id: JobId) -> None:
        self._transaction.change("remains").pop(job_id, None)


class MemoryJobs:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Job] = Rows(transaction, "job", lambda job: job.id)

    def find(self, id: JobId) -> Job | None:
        return self._rows.find(id)

    def find_many(self, ids: Iterable[JobId]) -> tuple[Job, ...]:
        found = (self._rows.find(id) for id in dict.fromkeys(ids))
        return tuple(job for job in found if job is not None)

    def add(self, job: Job) -> Job:
        return self._rows.add(job)

    def save(self, job: Job) -> Job:
        return self._rows.save(job)

    def delete(self, id: JobId) -> None:
        self._rows.delete(id)
        self._transaction.change("task").pop(id, None)

    def page(self, where: JobFilter, request: PageRequest) -> Page[Job]:
        return self._rows.page(request, lambda job: _matches(job, where))

    def ended_with_ttl(self) -> tuple[Job, ...]:
        return tuple(job for job in self._rows.all() if job.is_terminal and job.spec.policy.ttl_s is not None)

    def ended_last(self, limit: int) -> tuple[Job, ...]:
        ended = [job for job in self._rows.all() if job.finished_at is not None]
        return tuple(sorted(ended, key=lambda job: (job.updated_at, job.seq), reverse=True)[:limit])

    def in_status(self, statuses: frozenset[JobStatus]) -> tuple[Job, ...]:
        return tuple(job for job in self._rows.all() if job.status in statuses)

    def count_by_status(self) -> Mapping[tuple[QueueName, JobStatus], int]:
        return Counter((job.queue, job.status) for job in self._rows.all())

    def finished_between(self, queue: QueueName, start: datetime, end: datetime) -> tuple[Job, ...]:
        return tuple(
            job
            for job in self._rows.all()
            if job.queue == queue
            and job.activated_at is not None
            and job.activated_at <= end
            and (job.finished_at is None or job.finished_at >= start)
        )

    def tasks(self, id: JobId) -> tuple[Task, ...]:
        held: Mapping[str, Task] = self._transaction.table("task").get(id, {})
        return tuple(sorted(held.values(), key=lambda task: (task.role, task.index, task.id)))

    def put_tasks(self, tasks: Sequence[Task]) -> None:
        held = self._transaction.change("task")
        for task in tasks:
            if self._rows.find(task.job_id) is None:
                raise Conflict(f"task [{task.id}] is of no job: there is no job [{task.job_id}]")
            held[task.job_id] = {**held.get(task.job_id, {}), task.id: task}


class MemoryEvents:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(self, event: Event) -> Event:
        return self._transaction.append(event)

    def after(self, seq: int, limit: int) -> tuple[Event, ...]:
        return tuple(self._transaction.events(seq, limit))

    def last_seq(self) -> int:
        return self._transaction.event_count

    def of_subject(self, subject: str, limit: int) -> tuple[Event, ...]:
        """The latest ``limit`` of them, oldest first."""
        found = [event for event in self._transaction.events() if event.subject == subject]
        return tuple(found[max(0, len(found) - limit) :])


class MemoryReceipts:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def find(self, owner: UserName, key: str) -> Receipt | None:
        return self._transaction.table("receipt").get((owner, key))

    def add(self, receipt: Receipt) -> None:
        held = self._transaction.change("receipt")
        if (receipt.owner, receipt.key) in held:
            raise duplicate("receipt", receipt.key)
        held[receipt.owner, receipt.key] = replace(receipt, answer=through_json(receipt.answer))

    def delete_before(self, at: datetime) -> int:
        held = self._transaction.change("receipt")
        old = [key for key, receipt in held.items() if receipt.at < at]
        for key in old:
            del held[key]
        return len(old)


class MemoryLeases:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def acquire(self, name: str, holder: str, now: datetime, ttl_s: float) -> bool:
        held = self._transaction.change("lease")
        current, expires_at = held.get(name, (holder, now))
        if current != holder and expires_at > now:
            return False
        held[name] = (holder, now + timedelta(seconds=ttl_s))
        return True

    def release(self, name: str, holder: str) -> None:
        held = self._transaction.change("lease")
        if name in held and held[name][0] == holder:
            del held[name]


class MemoryUnitOfWork:
    """The repositories of one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self.users = MemoryUsers(transaction)
        self.grants = MemoryGrants(transaction)
        self.flavours = MemoryFlavours(transaction)
        self.clusters = MemoryClusters(transaction)
        self.queues = MemoryQueues(transaction)
        self.filesystems = MemoryFilesystems(transaction)
        self.links = MemoryLinks(transaction)
        self.cache_configs = MemoryCacheConfigs(transaction)
        self.mounts = MemoryMounts(transaction)
        self.cache_reports = MemoryCacheReports(transaction)
        self.snapshots = MemorySnapshots(transaction)
        self.jobs = MemoryJobs(transaction)
        self.events = MemoryEvents(transaction)
        self.receipts = MemoryReceipts(transaction)
        self.leases = MemoryLeases(transaction)
        self.remains = MemoryRemains(transaction)
        self.runs = MemoryRuns(transaction)
        self.cache = MemoryCacheEntries(transaction)
        self.artifacts = MemoryArtifacts(transaction)
        self.run_remains = MemoryRunRemains(transaction)
        self.pipelines = MemoryPipelines(transaction)
        self.schedules = MemorySchedules(transaction)
        self.numbers = MemoryNumbers(transaction)


class MemoryStore:
    """``ports.store.Store`` that forgets everything when it goes."""

    def __init__(self, *, busy_timeout_s: float = 5.0) -> None:
        self._state = State()
        self._busy_timeout_s = busy_timeout_s
        self._one_writer = threading.Lock()
        self._listeners: tuple[CommitListener, ...] = ()
        self._closed = False

    @contextmanager
    def write(self) -> Iterator[MemoryUnitOfWork]:
        self._must_be_open()
        if not self._one_writer.acquire(timeout=self._busy_timeout_s):
            raise Unavailable("the store is busy: another write transaction has not ended")
        try:
            transaction = Transaction(self._state, writable=True)
            try:
                yield MemoryUnitOfWork(transaction)
            except BaseException:
                transaction.undo()
                raise
            self._state = transaction.result()
        finally:
            self._one_writer.release()
        if transaction.appended:
            self._tell_listeners(transaction.appended)

    @contextmanager
    def read(self) -> Iterator[MemoryUnitOfWork]:
        self._must_be_open()
        yield MemoryUnitOfWork(Transaction(self._state, writable=False))

    def on_commit(self, listener: CommitListener) -> None:
        self._listeners = (*self._listeners, listener)

    def _tell_listeners(self, kinds: frozenset[EventKind]) -> None:
        for listener in self._listeners:
            try:
                listener(kinds)
            except Exception:  # noqa: BLE001
                # The commit is done and the other listeners have a right to hear of it.
                _log.exception("a listener of the store failed")

    def check(self) -> None:
        self._must_be_open()

    def _must_be_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def close(self) -> None:
        self._closed = True
