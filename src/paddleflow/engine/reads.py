"""Lists and details for people. Every method takes the actor and answers only what that actor may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paddleflow.domain.access import may_use_queue, require_job, require_root
from paddleflow.domain.clusters import Cluster, ClusterStatus, Node
from paddleflow.domain.errors import Denied, NotFound, Unauthenticated, no_access, not_found
from paddleflow.domain.events import Event
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import ClusterName, FlavourName, JobId, NodeName, QueueName, UserName, filesystem_id
from paddleflow.domain.jobs import HOLDING, Job, JobStatus, Task
from paddleflow.domain.queries import (
    ClusterFilter,
    Eta,
    FlavourFilter,
    JobFilter,
    Page,
    PageRequest,
    PastJobs,
    QueueFilter,
    ReplayQuestion,
    WhatIf,
    WhatIfAnswer,
)
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import NOTHING, Resources
from paddleflow.domain.users import Actor, Grant, ResourceType, User
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.foresight import Foresight, Why
from paddleflow.engine.replay_process import Replayed
from paddleflow.engine.replays import Replays
from paddleflow.ports.clock import Clock
from paddleflow.ports.identity import Identity, TokenClaims
from paddleflow.ports.store import Store
from paddleflow.scheduling.decide import DEFAULT_RULES, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUse:
    queue: Queue
    used: Resources
    idle: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    node: Node
    used: Resources
    idle: Resources
    tasks: tuple[tuple[Task, Resources], ...]
    """What runs there, and what each of them holds."""


class Reads:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        identity: Identity,
        capabilities: Capabilities,
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._identity = identity
        self._foresight = Foresight(store, clock, identity, capabilities, rules)
        self._replays = Replays(store)
        # Verifying a password must cost the same whether or not the user exists.
        self._nobody_hash = identity.hash_password(identity.new_token_hex())

    def login(self, name: str, password: str) -> str:
        """A fresh token for a user who knows the password."""
        with self._store.read() as view:
            user = view.users.find(UserName(name))
        matches = self._identity.verify_password(self._nobody_hash if user is None else user.password_hash, password)
        if user is None:
            raise NotFound(f"user[{name[:80]}] does not exist", code="UserNotExist")
        if not matches:
            raise Unauthenticated("Username or password not correct", code="AuthFailed")
        return self._identity.sign(TokenClaims(user=user.name, epoch=user.token_epoch), self._clock.now())

    def actor_of(self, token: str) -> Actor:
        """Who sent this token; refused when it is forged, expired, or older than the user's last password change."""
        claims = self._identity.verify(token, self._clock.now())
        with self._store.read() as view:
            user = view.users.find(claims.user)
        if user is None or user.token_epoch != claims.epoch:
            raise Unauthenticated("Invalid token. Please re-login", code="AuthInvalidToken")
        return Actor(name=user.name)

    def users(self, actor: Actor, request: PageRequest) -> Page[User]:
        require_root(actor, code="AccessDenied")
        with self._store.read() as view:
            return view.users.page(request)

    def user(self, actor: Actor, name: UserName) -> User:
        require_root(actor, code="AccessDenied")
        with self._store.read() as view:
            user = view.users.find(name)
        if user is None:
            raise NotFound(f"user[{name[:80]}] does not exist", code="UserNotExist")
        return user

    def grants(self, actor: Actor, user: UserName | None, request: PageRequest) -> Page[Grant]:
        require_root(actor)
        with self._store.read() as view:
            return view.grants.page(user, request)

    def flavours(self, actor: Actor, where: FlavourFilter, request: PageRequest) -> Page[Flavour]:
        """Flavours are everybody's to see."""
        with self._store.read() as view:
            return view.flavours.page(where, request)

    def flavour(self, actor: Actor, name: FlavourName) -> Flavour:
        with self._store.read() as view:
            flavour = view.flavours.find(name)
        if flavour is None:
            raise not_found("flavour", name[:80], code="FlavourNotFound")
        return flavour

    def queues(self, actor: Actor, name: QueueName | None, request: PageRequest) -> Page[Queue]:
        with self._store.read() as view:
            among = None
            if not actor.is_root:
                grants = view.grants.of_user(actor.name)
                among = frozenset(QueueName(g.resource_id) for g in grants if g.resource_type is ResourceType.QUEUE)
            return view.queues.page(QueueFilter(name=name, among=among), request)

    def queue(self, actor: Actor, name: QueueName) -> QueueUse:
        with self._store.read() as view:
            queue = view.queues.find(name)
            if queue is None:
                raise NotFound("QueueName does not exist", code="QueueNameNotFound")
            if not may_use_queue(actor, name, () if actor.is_root else view.grants.of_user(actor.name)):
                raise no_access(actor.name, "queue", name)
            used = NOTHING
            for job in view.jobs.in_status(HOLDING):
                if job.queue == name:
                    used = used + job.held
        return QueueUse(queue=queue, used=used, idle=queue.max_resources - _named(used, queue.max_resources))

    def clusters(self, actor: Actor, where: ClusterFilter, request: PageRequest) -> Page[Cluster]:
        require_root(actor)
        with self._store.read() as view:
            return view.clusters.page(where, request)

    def cluster(self, actor: Actor, name: ClusterName) -> Cluster:
        require_root(actor)
        with self._store.read() as view:
            return _existing_cluster(view.clusters.find(name), name)

    def node_use(
        self, actor: Actor, clusters: frozenset[ClusterName], queue: QueueName | None = None
    ) -> Mapping[ClusterName, tuple[NodeUse, ...]]:
        """Every node of the named (or all) online clusters, with what is used and what is free."""
        require_root(actor)
        with self._store.read() as view:
            known = {cluster.name: cluster for cluster in view.clusters.all()}
            for name in clusters:
                _existing_cluster(known.get(name), name)
            chosen = set(clusters)
            if queue is not None:
                found = view.queues.find(queue)
                if found is None:
                    raise NotFound("QueueName does not exist", code="QueueNameNotFound")
                chosen.add(found.cluster)
            shown = [
                cluster.name
                for cluster in known.values()
                if cluster.status is ClusterStatus.ONLINE and (not chosen or cluster.name in chosen)
            ]
            held = _held_by_node(
                (job, task)
                for job in view.jobs.in_status(HOLDING)
                for task in view.jobs.tasks(job.id)
                if task.id in job.task_ids
            )
            return {
                name: tuple(_node_use(node, held.get((name, node.name), ())) for node in view.clusters.nodes(name))
                for name in shown
            }

    def filesystems(self, actor: Actor, owner: str, name: str, request: PageRequest) -> Page[Filesystem]:
        """Root sees everybody's unless it names one; others see their own whatever they name."""
        whose = UserName(owner) if owner and actor.is_root else None
        with self._store.read() as view:
            return view.filesystems.page(whose if actor.is_root else actor.name, name, request)

    def filesystem(self, actor: Actor, owner: str, name: str) -> Filesystem:
        whose = UserName(owner or actor.name)
        if whose != actor.name and not actor.is_root:
            raise Denied("Access denied", code="AccessDenied")
        with self._store.read() as view:
            found = view.filesystems.find(filesystem_id(whose, name))
        if found is None:
            raise NotFound(f"username[{whose}] not create fsName[{name[:80]}]", code="RecordNotFound")
        return found

    def jobs(self, actor: Actor, where: JobFilter, request: PageRequest) -> Page[Job]:
        scoped = where if actor.is_root else replace(where, owner=actor.name)
        with self._store.read() as view:
            return view.jobs.page(scoped, request)

    def job(self, actor: Actor, job_id: JobId) -> tuple[Job, tuple[Task, ...]]:
        with self._store.read() as view:
            job = _owned_job(actor, view.jobs.find(job_id), job_id)
            return job, view.jobs.tasks(job_id)

    def membership(self, actor: Actor, job_id: JobId) -> Mapping[str, object]:
        """Who belongs to the job now. Where each is reached only its runtime and its tasks know."""
        with self._store.read() as view:
            job = _owned_job(actor, view.jobs.find(job_id), job_id)
        members = sorted(job.placements, key=lambda placement: (placement.role, placement.index))
        elastic = job.spec.elastic
        return {
            "generation": job.generation,
            "least": len(members) if elastic is None else elastic.least,
            "most": len(members) if elastic is None else elastic.most,
            "tasks": [
                {"id": at.task_id, "role": at.role, "index": at.index, "rank": rank} for rank, at in enumerate(members)
            ],
        }

    def job_counts(self) -> Mapping[tuple[QueueName, JobStatus], int]:
        with self._store.read() as view:
            return view.jobs.count_by_status()

    def why(self, actor: Actor, job_id: JobId) -> Why:
        return self._foresight.why(actor, job_id)

    def eta(self, actor: Actor, job_id: JobId) -> Eta:
        return self._foresight.eta(actor, job_id)

    def what_if(self, actor: Actor, question: WhatIf) -> WhatIfAnswer:
        return self._foresight.what_if(actor, question)

    def trace(self, actor: Actor, where: PastJobs) -> str:
        return self._replays.trace(actor, where)

    def replay(self, actor: Actor, question: ReplayQuestion) -> tuple[Replayed, ...]:
        return self._replays.replay(actor, question)

    def close(self) -> None:
        """End what takes long."""
        self._replays.close()

    def events(self, actor: Actor, after: int, limit: int) -> tuple[tuple[Event, ...], int]:
        """Events this actor may see, and the position reached (which may lie behind events it may not see)."""
        with self._store.read() as view:
            events = view.events.after(after, limit)
        reached = events[-1].seq if events else after
        visible = tuple(event for event in events if actor.is_root or event.owner == actor.name)
        return visible, reached

    def check(self) -> None:
        """Raises Unavailable when the database is."""
        self._store.check()


def _named(used: Resources, quota: Resources) -> Resources:
    """Idle is told for what the quota names; a resource it does not name is not limited by it."""
    return Resources({name: units for name, units in used if name in quota.amounts})


def _existing_cluster(cluster: Cluster | None, name: str) -> Cluster:
    if cluster is None:
        raise NotFound(f"cluster[{name[:80]}] does not exist", code="ClusterNotFound")
    return cluster


def _owned_job(actor: Actor, job: Job | None, job_id: str) -> Job:
    if job is None:
        raise not_found("job", job_id[:80], code="JobNotFound")
    require_job(actor, job)
    return job


def _held_by_node(
    tasks: Iterable[tuple[Job, Task]],
) -> Mapping[tuple[ClusterName, NodeName], Sequence[tuple[Task, Resources]]]:
    held: dict[tuple[ClusterName, NodeName], list[tuple[Task, Resources]]] = defaultdict(list)
    for job, task in tasks:
        asked = job.spec.member_at(task.role, task.index).flavour.resources
        held[job.cluster, task.node].append((task, asked))
    return held


def _node_use(node: Node, tasks: Sequence[tuple[Task, Resources]]) -> NodeUse:
    used = sum((resources for _, resources in tasks), NOTHING)
    return NodeUse(node=node, used=used, idle=node.capacity - used, tasks=tuple(tasks))
