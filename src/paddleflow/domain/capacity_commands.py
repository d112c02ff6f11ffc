"""What may be asked about an installation: users, grants, flavours, queues, clusters, filesystems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddleflow.domain.clusters import ClusterType, Node
from paddleflow.domain.ids import (
    ClusterName,
    FlavourName,
    QueueName,
    UserName,
)
from paddleflow.domain.queues import QuotaType
from paddleflow.domain.resources import NOTHING, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedInstallation:
    """What a new installation starts with. Given at every start; changes nothing that is already there."""

    root_password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    name: str
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPassword:
    name: UserName
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    name: UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGrant:
    user: UserName
    resource_type: str
    resource_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGrant:
    user: UserName
    resource_type: str
    resource_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFlavour:
    name: str
    cpu: str
    memory: str
    scalars: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFlavour:
    """None leaves a field as it is; a scalar resource set to "" is removed."""

    name: FlavourName
    cpu: str | None = None
    memory: str | None = None
    scalars: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFlavour:
    name: FlavourName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateQueue:
    name: str
    namespace: str
    cluster: str = ""
    quota_type: str = QuotaType.ELASTIC
    max_resources: Resources = NOTHING
    min_resources: Resources = NOTHING
    location: Mapping[str, str] = field(default_factory=dict)
    policies: tuple[str, ...] = ()
    weight: int = 1
    """Of what is left when every guarantee is met, this part goes here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateQueue:
    """Only the given resource items change; ``dropped`` names the scalar resources to remove ("" on the wire)."""

    name: QueueName
    max_resources: Resources | None = None
    max_dropped: frozenset[str] = frozenset()
    min_resources: Resources | None = None
    min_dropped: frozenset[str] = frozenset()
    location: Mapping[str, str] = field(default_factory=dict)
    """An empty value deletes a key."""
    policies: tuple[str, ...] = ()
    """Names to add; ``name-`` removes."""
    weight: int | None = None
    status: str | None = None
    """``open`` or ``closed``: a closed queue accepts nothing and starts nothing; what runs goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQueue:
    name: QueueName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCluster:
    name: str
    endpoint: str
    type: str
    cluster_version: str = ""
    credential: str = ""
    """Base64 of a kubeconfig; sealed before it is stored."""
    description: str = ""
    source: str = ""
    setting: str = ""
    status: str = ""
    """Empty: online if this server starts jobs there, offline otherwise."""
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCluster:
    """None leaves a field as it is."""

    name: ClusterName
    endpoint: str | None = None
    type: ClusterType | str | None = None
    cluster_version: str | None = None
    credential: str | None = None
    description: str | None = None
    source: str | None = None
    setting: str | None = None
    status: str | None = None
    namespaces: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteCluster:
    name: ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNodes:
    """The nodes of a cluster as its runtime sees them now, all of them."""

    cluster: ClusterName
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFilesystem:
    name: str
    url: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """May hold secrets, open; they are sealed before they are stored."""
    owner: str = ""
    """Root may act for another user."""
    independent_mount_process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFilesystem:
    name: str
    url: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A secret given as ``******`` is the one that is stored."""
    owner: str = ""
    independent_mount_process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFilesystem:
    name: str
    owner: str = ""
