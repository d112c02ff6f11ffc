"""What a new installation starts with: root, three flavours, the default cluster and the default queue.

Root's existence tells a new installation from an old one, so a flavour or queue that was deleted on purpose stays
deleted and a password that was changed stays changed.
"""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.clusters import Cluster, ClusterStatus, ClusterType
from paddleflow.domain.events import EventKind
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import DEFAULT_CLUSTER, DEFAULT_QUEUE, ROOT, FlavourName
from paddleflow.domain.queues import Queue, QuotaType
from paddleflow.domain.resources import GPU, Resources
from paddleflow.domain.users import User
from paddleflow.engine.context import Answer, Context

_FLAVOURS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("flavour1", "1", "1Gi", {}),
    ("flavour2", "4", "8Gi", {GPU: "1"}),
    ("flavour3", "4", "8Gi", {GPU: "2"}),
)


def seed_installation(ctx: Context, command: commands.SeedInstallation) -> Answer:
    _take_offline(ctx)
    if ctx.uow.users.find(ROOT) is not None:
        return {"isNew": False}
    now = ctx.now
    ctx.uow.users.add(User(name=ROOT, password_hash=ctx.password_hash, created_at=now, updated_at=now))
    ctx.emit(EventKind.USER_CREATED, ROOT)
    for name, cpu, memory, scalars in _FLAVOURS:
        ctx.uow.flavours.add(
            Flavour(
                id=ctx.new_id("flavour", 8),
                name=FlavourName(name),
                cpu=cpu,
                memory=memory,
                scalars=scalars,
                created_at=now,
                updated_at=now,
            )
        )
        ctx.emit(EventKind.FLAVOUR_CREATED, name)
    ctx.uow.clusters.add(
        Cluster(
            id=ctx.new_id("cluster", 8),
            name=DEFAULT_CLUSTER,
            type=ClusterType.LOCAL,
            endpoint="127.0.0.1",
            description="jobs run as processes of this machine",
            created_at=now,
            updated_at=now,
        )
    )
    ctx.emit(EventKind.CLUSTER_CREATED, DEFAULT_CLUSTER)
    ctx.uow.queues.add(
        Queue(
            id=ctx.new_id("queue", 8),
            name=DEFAULT_QUEUE,
            namespace="default",
            cluster=DEFAULT_CLUSTER,
            quota_type=QuotaType.CAPABILITY,
            max_resources=Resources.of(cpu="20", memory="20Gi"),
            created_at=now,
            updated_at=now,
        )
    )
    ctx.emit(EventKind.QUEUE_CREATED, DEFAULT_QUEUE)
    return {"isNew": True}


def _take_offline(ctx: Context) -> None:
    """Earlier releases took every cluster for online, also one that no server could reach."""
    for cluster in ctx.uow.clusters.all():
        if cluster.status is ClusterStatus.ONLINE and cluster.name not in ctx.capabilities.clusters:
            ctx.uow.clusters.save(replace(cluster, status=ClusterStatus.OFFLINE, updated_at=ctx.now))
            ctx.emit(EventKind.CLUSTER_UPDATED, cluster.name)
