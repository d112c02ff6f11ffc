"""Everything that has happened, in one ordered log.

An event says what happened to which subject and to whom it belongs, so that a follower can decide whether it may
see it and whether to look again. It does not carry state to rebuild from: rows are the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.ids import UserName


class EventKind(StrEnum):
    JOB_SUBMITTED = "JobSubmitted"
    JOB_RESERVED = "JobReserved"
    JOB_ADMITTED = "JobAdmitted"
    JOB_STARTED = "JobStarted"
    JOB_RESIZED = "JobResized"
    JOB_EVICTING = "JobEvicting"
    JOB_REQUEUED = "JobRequeued"
    JOB_STOPPING = "JobStopping"
    JOB_FINISHED = "JobFinished"
    JOB_UPDATED = "JobUpdated"
    JOB_DELETED = "JobDeleted"
    QUEUE_CREATED = "QueueCreated"
    QUEUE_UPDATED = "QueueUpdated"
    QUEUE_DELETED = "QueueDeleted"
    FLAVOUR_CREATED = "FlavourCreated"
    FLAVOUR_UPDATED = "FlavourUpdated"
    FLAVOUR_DELETED = "FlavourDeleted"
    CLUSTER_CREATED = "ClusterCreated"
    CLUSTER_UPDATED = "ClusterUpdated"
    CLUSTER_DELETED = "ClusterDeleted"
    NODES_REPORTED = "NodesReported"
    USER_CREATED = "UserCreated"
    USER_UPDATED = "UserUpdated"
    USER_DELETED = "UserDeleted"
    GRANT_CREATED = "GrantCreated"
    GRANT_DELETED = "GrantDeleted"
    FILESYSTEM_CREATED = "FilesystemCreated"
    FILESYSTEM_UPDATED = "FilesystemUpdated"
    FILESYSTEM_DELETED = "FilesystemDeleted"
    LINK_CREATED = "LinkCreated"
    LINK_DELETED = "LinkDeleted"
    CACHE_CONFIG_SET = "CacheConfigSet"
    CACHE_CONFIG_DELETED = "CacheConfigDeleted"
    MOUNT_OPENED = "MountOpened"
    MOUNT_CLOSED = "MountClosed"
    SNAPSHOT_REQUESTED = "SnapshotRequested"
    SNAPSHOT_ENDED = "SnapshotEnded"
    """It is ready, or failed; ``data["state"]`` says which."""
    SNAPSHOT_DELETING = "SnapshotDeleting"
    SNAPSHOT_DELETED = "SnapshotDeleted"
    RUN_CREATED = "RunCreated"
    RUN_ADVANCED = "RunAdvanced"
    """Some of its nodes moved; ``data["nodes"]`` names them."""
    RUN_STOPPING = "RunStopping"
    RUN_FINISHED = "RunFinished"
    RUN_DELETED = "RunDeleted"
    CACHE_DELETED = "CacheDeleted"
    ARTIFACT_DELETED = "ArtifactDeleted"
    PIPELINE_CREATED = "PipelineCreated"
    PIPELINE_UPDATED = "PipelineUpdated"
    PIPELINE_DELETED = "PipelineDeleted"
    SCHEDULE_CREATED = "ScheduleCreated"
    SCHEDULE_FIRED = "ScheduleFired"
    """Some of its ticks were dealt with."""
    SCHEDULE_ENDED = "ScheduleEnded"
    SCHEDULE_DELETED = "ScheduleDeleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: EventKind
    subject: str
    """The id or name of what it happened to."""
    owner: UserName | None = None
    """Who may see it besides root; None: root only."""
    data: Mapping[str, object] = field(default_factory=dict)
    at: datetime
    cause: str = ""
    """The request id of the command that made it."""
    seq: int = 0
    """Position in the log, given by the store: no gaps are visible, no event appears behind a later one."""
