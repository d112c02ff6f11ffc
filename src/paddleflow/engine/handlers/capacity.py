"""Commands about flavours, queues, clusters and nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.access import require_owner
from paddleflow.domain.clusters import Cluster, ClusterStatus, ClusterType
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, PaddleFlowError, invalid_field, not_found
from paddleflow.domain.events import EventKind
from paddleflow.domain.flavours import CUSTOM, Flavour
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, FlavourName, QueueName
from paddleflow.domain.job_machine import merged
from paddleflow.domain.jobs import ACTIVE
from paddleflow.domain.names import (
    check_cluster_name,
    check_flavour_name,
    check_labels,
    check_namespace,
    check_queue_name,
    check_text,
)
from paddleflow.domain.queries import JobFilter, PageRequest
from paddleflow.domain.queues import Queue, QueueStatus, QuotaType
from paddleflow.domain.quotas import check_may_delete, check_quota_tree, children_of, guarantee_of_own_nodes, parent_of
from paddleflow.domain.resources import Resources
from paddleflow.domain.users import ResourceType
from paddleflow.engine.context import Answer, Context

_LOCATION_LIMIT = 1024


def create_flavour(ctx: Context, command: commands.CreateFlavour) -> Answer:
    if not command.name:
        raise Invalid("the flavour's name is empty, give one", code="FlavourNameEmpty", details={"field": "name"})
    name = FlavourName(check_flavour_name(command.name))
    if name == CUSTOM:
        raise Invalid(f"{CUSTOM} is reserved for amounts given inline", code="FlavourInvalidField")
    if ctx.uow.flavours.find(name) is not None:
        raise Duplicate(f"flavour[{name}] already exists", code="DuplicatedName")
    cluster = _cluster(ctx, command.cluster).name if command.cluster else None
    flavour = Flavour(
        id=ctx.new_id("flavour", 8),
        name=name,
        cpu=command.cpu,
        memory=command.memory,
        scalars=dict(command.scalars),
        cluster=cluster,
        owner=ctx.actor.name,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    _check_flavour(flavour)
    ctx.uow.flavours.add(flavour)
    ctx.emit(EventKind.FLAVOUR_CREATED, name)
    return {"name": name}


def update_flavour(ctx: Context, command: commands.UpdateFlavour) -> Answer:
    flavour = _flavour(ctx, command.name)
    require_owner(ctx.actor, flavour.owner, "flavour", flavour.name)
    changed = replace(
        flavour,
        cpu=flavour.cpu if command.cpu is None else command.cpu,
        memory=flavour.memory if command.memory is None else command.memory,
        scalars=merged(flavour.scalars, command.scalars),
        updated_at=ctx.now,
    )
    _check_flavour(changed)
    ctx.uow.flavours.save(changed)
    ctx.emit(EventKind.FLAVOUR_UPDATED, flavour.name)
    return {"name": flavour.name}


def delete_flavour(ctx: Context, command: commands.DeleteFlavour) -> Answer:
    flavour = _flavour(ctx, command.name)
    require_owner(ctx.actor, flavour.owner, "flavour", flavour.name)
    ctx.uow.flavours.delete(flavour.name)
    ctx.emit(EventKind.FLAVOUR_DELETED, flavour.name)
    return {}


def _check_flavour(flavour: Flavour) -> None:
    try:
        resources = flavour.resources
    except Invalid as error:
        raise Invalid(error.message, code="FlavourInvalidField", details=error.details) from None
    if resources.cpu_milli <= 0:
        raise invalid_field("cpu", "it must be a positive quantity such as 2 or 500m", code="FlavourInvalidField")
    if resources.memory_bytes <= 0:
        raise invalid_field("mem", "it must be a positive quantity such as 8Gi", code="FlavourInvalidField")


def _flavour(ctx: Context, name: FlavourName) -> Flavour:
    flavour = ctx.uow.flavours.find(name)
    if flavour is None:
        raise not_found("flavour", name, code="FlavourNotFound")
    return flavour


def create_queue(ctx: Context, command: commands.CreateQueue) -> Answer:
    if not command.name:
        raise Invalid("the queue's name is empty, give one", code="QueueNameNotFound", details={"field": "name"})
    name = QueueName(check_queue_name(command.name))
    if name == "default" or ctx.uow.queues.find(name) is not None:
        raise Duplicate("The queue name already exists", code="QueueNameDuplicated", details={"name": name})
    if not command.namespace:
        raise Invalid(
            "the queue's namespace is empty, give one", code="NamespaceNotFound", details={"field": "namespace"}
        )
    namespace = check_namespace(command.namespace)
    cluster = _cluster(ctx, command.cluster or DEFAULT_CLUSTER)
    if cluster.status is not ClusterStatus.ONLINE:
        raise Invalid(f"cluster[{cluster.name}] is {cluster.status}, it must be online", code="InvalidClusterStatus")
    if cluster.namespaces and namespace not in cluster.namespaces:
        raise Invalid(
            f"namespace[{namespace}] is not in the namespace list of cluster[{cluster.name}]", code="NamespaceNotFound"
        )
    queue = Queue(
        id=ctx.new_id("queue", 8),
        name=name,
        namespace=namespace,
        cluster=cluster.name,
        quota_type=_quota_type(command.quota_type),
        max_resources=command.max_resources,
        min_resources=command.min_resources,
        location=check_labels("location", command.location, value_limit=_LOCATION_LIMIT, code="QueueInvalidField"),
        policies=_policies((), command.policies),
        weight=command.weight,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    _place_in_tree(ctx, queue, None)
    ctx.emit(EventKind.QUEUE_CREATED, name)
    return {"name": name}


def update_queue(ctx: Context, command: commands.UpdateQueue) -> Answer:
    queue = _queue(ctx, command.name)
    changed = replace(
        queue,
        max_resources=_overlaid(queue.max_resources, command.max_resources, command.max_dropped),
        min_resources=_overlaid(queue.min_resources, command.min_resources, command.min_dropped),
        location=check_labels(
            "location", merged(queue.location, command.location), value_limit=_LOCATION_LIMIT, code="QueueInvalidField"
        ),
        policies=_policies(queue.policies, command.policies),
        weight=queue.weight if command.weight is None else command.weight,
        status=queue.status if command.status is None else _asked_status(ctx, queue, command.status),
        updated_at=ctx.now,
    )
    _place_in_tree(ctx, changed, queue)
    ctx.emit(EventKind.QUEUE_UPDATED, queue.name)
    return {"name": queue.name}


def delete_queue(ctx: Context, command: commands.DeleteQueue) -> Answer:
    queue = _queue(ctx, command.name)
    _refuse_if_busy(ctx, queue)
    check_may_delete(queue, ctx.uow.queues.all())
    parent = parent_of(queue, ctx.uow.queues.all())
    _drop_queue(ctx, queue)
    if parent is not None:
        _open_if_leaf(ctx, parent)
    return {}


def _place_in_tree(ctx: Context, queue: Queue, before: Queue | None) -> None:
    """Store a new or changed queue where the tree of quotas has room for it; only leaves of the tree take jobs."""
    stored = ctx.uow.queues.all()
    queue = check_quota_tree(queue, stored, ctx.uow.clusters.nodes(queue.cluster))
    parent = parent_of(queue, stored)
    old_parent = None if before is None else parent_of(before, stored)
    if parent is not None and not children_of(parent, stored):
        _refuse_if_busy(ctx, parent, f"; it cannot become the parent of queue[{queue.name}] before they have ended")
        ctx.uow.queues.save(replace(parent, status=QueueStatus.CLOSED, updated_at=ctx.now))
        ctx.emit(EventKind.QUEUE_UPDATED, parent.name)
    if before is not None:
        ctx.uow.queues.save(queue)
    else:
        leaf = not children_of(queue, stored)
        ctx.uow.queues.add(queue if leaf else replace(queue, status=QueueStatus.CLOSED))
    if old_parent is not None:
        _open_if_leaf(ctx, old_parent)


def _open_if_leaf(ctx: Context, parent: Queue) -> None:
    """A quota that has lost its last child takes jobs again."""
    if not children_of(parent, ctx.uow.queues.all()):
        ctx.uow.queues.save(replace(_queue(ctx, parent.name), status=QueueStatus.OPEN, updated_at=ctx.now))
        ctx.emit(EventKind.QUEUE_UPDATED, parent.name)


def _asked_status(ctx: Context, queue: Queue, text: str) -> QueueStatus:
    if text not in (QueueStatus.OPEN, QueueStatus.CLOSED):
        raise invalid_field("status", f"[{text[:80]}] is not open or closed", code="QueueInvalidField")
    if text == QueueStatus.OPEN and children_of(queue, ctx.uow.queues.all()):
        raise Invalid(
            f"queue[{queue.name}] has quotas under it and stays closed; jobs go to those", code="QueueInvalidField"
        )
    return QueueStatus(text)


def _drop_queue(ctx: Context, queue: Queue) -> None:
    ctx.uow.grants.delete_of_resource(ResourceType.QUEUE, queue.name)
    ctx.uow.queues.delete(queue.name)
    ctx.emit(EventKind.QUEUE_DELETED, queue.name)


def _refuse_if_busy(ctx: Context, queue: Queue, consequence: str = "") -> None:
    busy = ctx.uow.jobs.page(JobFilter(queue=queue.name, statuses=ACTIVE), PageRequest(limit=10)).rows
    if busy:
        listed = ", ".join(job.id for job in busy)
        raise InUse(f"queue[{queue.name}] is in use by jobs: {listed}{consequence}", code="QueueIsInUse")


def _quota_type(text: str) -> QuotaType:
    try:
        return QuotaType(text or QuotaType.ELASTIC)
    except ValueError:
        raise Invalid(
            f"quotaType[{text[:80]}] is not one of elasticQuota, volcanoCapabilityQuota",
            code="QueueQuotaTypeIsNotSupported",
        ) from None


def _overlaid(old: Resources, new: Resources | None, dropped: frozenset[str]) -> Resources:
    kept = {name: units for name, units in old if name not in dropped}
    return Resources({**kept, **(new.amounts if new is not None else {})})


def _policies(old: Iterable[str], changes: Iterable[str]) -> tuple[str, ...]:
    """``name`` adds a policy, ``name-`` removes it."""
    kept = list(old)
    for change in changes:
        check_text("schedulingPolicy", change, limit=64, code="QueueInvalidField")
        name = change.removesuffix("-")
        if name in kept:
            kept.remove(name)
        if name == change and name:
            kept.append(name)
    return tuple(kept)


def _queue(ctx: Context, name: QueueName) -> Queue:
    queue = ctx.uow.queues.find(name)
    if queue is None:
        raise NotFound("QueueName does not exist", code="QueueNameNotFound", details={"name": name})
    return queue


def create_cluster(ctx: Context, command: commands.CreateCluster) -> Answer:
    name = ClusterName(check_cluster_name(command.name))
    if ctx.uow.clusters.find(name) is not None:
        raise Duplicate(f"cluster[{name}] already exists", code="DuplicatedName")
    cluster = Cluster(
        id=ctx.new_id("cluster", 8),
        name=name,
        type=_cluster_type(command.type),
        endpoint=command.endpoint,
        description=command.description,
        source=command.source or "OnPremise",
        cluster_version=command.cluster_version,
        status=_cluster_status(ctx, name, command.status),
        sealed_credential=ctx.seal(command.credential) if command.credential else "",
        setting=command.setting,
        namespaces=command.namespaces,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    _check_cluster(cluster)
    ctx.uow.clusters.add(cluster)
    ctx.emit(EventKind.CLUSTER_CREATED, name)
    return {"name": name}


def update_cluster(ctx: Context, command: commands.UpdateCluster) -> Answer:
    old = _cluster(ctx, command.name)
    given = {
        field: value
        for field in ("endpoint", "description", "source", "cluster_version", "setting", "namespaces")
        if (value := getattr(command, field)) is not None
    }
    changed = replace(old, **given, updated_at=ctx.now)
    if command.type is not None:
        changed = replace(changed, type=_cluster_type(command.type))
    if command.status is not None:
        changed = replace(changed, status=_cluster_status(ctx, old.name, command.status))
    if command.credential:
        changed = replace(changed, sealed_credential=ctx.seal(command.credential))
    _check_cluster(changed)
    if changed.namespaces:
        _refuse_to_strand_queues(ctx, changed)
    ctx.uow.clusters.save(changed)
    ctx.emit(EventKind.CLUSTER_UPDATED, old.name)
    return {"name": old.name}


def delete_cluster(ctx: Context, command: commands.DeleteCluster) -> Answer:
    cluster = _cluster(ctx, command.name)
    queues = [queue for queue in ctx.uow.queues.all() if queue.cluster == cluster.name]
    for queue in queues:
        _refuse_if_busy(ctx, queue)
    for queue in queues:
        _drop_queue(ctx, queue)
    ctx.uow.clusters.delete(cluster.name)
    ctx.emit(EventKind.CLUSTER_DELETED, cluster.name)
    return {}


def report_nodes(ctx: Context, command: commands.ReportNodes) -> Answer:
    """Store the nodes a runtime sees; silence when nothing changed."""
    if ctx.uow.clusters.find(command.cluster) is None:
        return {"changed": False}
    nodes = tuple(sorted(command.nodes, key=lambda node: node.name))
    if ctx.uow.clusters.nodes(command.cluster) == nodes:
        return {"changed": False}
    ctx.uow.clusters.replace_nodes(command.cluster, nodes)
    ctx.emit(EventKind.NODES_REPORTED, command.cluster, nodes=len(nodes))
    for queue in ctx.uow.queues.all():
        if queue.cluster == command.cluster and queue.is_physical:
            guaranteed = guarantee_of_own_nodes(queue, nodes)
            if guaranteed != queue.min_resources:
                ctx.uow.queues.save(replace(queue, min_resources=guaranteed, updated_at=ctx.now))
                ctx.emit(EventKind.QUEUE_UPDATED, queue.name)
    return {"changed": True}


def _refuse_to_strand_queues(ctx: Context, cluster: Cluster) -> None:
    for queue in ctx.uow.queues.all():
        if queue.cluster == cluster.name and queue.namespace not in cluster.namespaces:
            raise Invalid(
                f"namespace[{queue.namespace}] is used by queue[{queue.name}] and cannot be removed",
                code="InvalidClusterProperties",
            )


def _cluster(ctx: Context, name: str) -> Cluster:
    cluster = ctx.uow.clusters.find(ClusterName(name))
    if cluster is None:
        raise NotFound(f"cluster[{name[:80]}] does not exist", code="ClusterNotFound")
    return cluster


def _check_cluster(cluster: Cluster) -> None:
    code = "InvalidClusterProperties"
    if not cluster.endpoint:
        raise invalid_field("endpoint", "it is empty", code=code)
    if cluster.type is ClusterType.KUBERNETES and not cluster.cluster_version:
        raise invalid_field("version", "it is required for a Kubernetes cluster", code=code)
    for field, limit in (("endpoint", 1024), ("description", 2048), ("source", 64), ("setting", 16384)):
        check_text(field, getattr(cluster, field), limit=limit, code=code)
    check_text("version", cluster.cluster_version, limit=64, code=code)
    try:
        for namespace in cluster.namespaces:
            check_namespace(namespace)
    except PaddleFlowError as error:
        raise invalid_field("namespaceList", error.message, code=code) from None


def _cluster_type(text: str) -> ClusterType:
    try:
        return ClusterType(text)
    except ValueError:
        raise invalid_field(
            "clusterType", f"[{text[:80]}] is not one of Kubernetes, K3S, Local", code="InvalidClusterProperties"
        ) from None


def _cluster_status(ctx: Context, name: ClusterName, asked: str) -> ClusterStatus:
    """Online is a cluster whose jobs this server starts, and none that it only knows by name."""
    is_served = name in ctx.capabilities.clusters
    if asked == ClusterStatus.ONLINE and not is_served:
        raise invalid_field(
            "status",
            f"cluster[{name}] cannot be online: this server starts jobs on "
            f"{', '.join(sorted(ctx.capabilities.clusters))} only; leave status out, or say offline",
            code="InvalidClusterStatus",
        )
    try:
        return ClusterStatus(asked or (ClusterStatus.ONLINE if is_served else ClusterStatus.OFFLINE))
    except ValueError:
        raise invalid_field("status", f"[{asked[:80]}] is not online or offline", code="InvalidClusterStatus") from None
