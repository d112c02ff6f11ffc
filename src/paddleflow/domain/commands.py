"""Everything that may be asked of the platform, or reported to it. The intake takes exactly these."""

from __future__ import annotations

from paddleflow.domain.capacity_commands import (
    CreateCluster,
    CreateFilesystem,
    CreateFlavour,
    CreateGrant,
    CreateQueue,
    CreateUser,
    DeleteCluster,
    DeleteFilesystem,
    DeleteFlavour,
    DeleteGrant,
    DeleteQueue,
    DeleteUser,
    ReportNodes,
    SeedInstallation,
    SetPassword,
    UpdateCluster,
    UpdateFilesystem,
    UpdateFlavour,
    UpdateQueue,
)
from paddleflow.domain.job_commands import (
    AdmitJob,
    DeleteJob,
    EvictJob,
    ExpireJob,
    FailJob,
    ForgetRemains,
    ReportTask,
    ReserveRoom,
    ResizeJob,
    StopJob,
    SubmitJob,
    UpdateJob,
)
from paddleflow.domain.run_commands import (
    AdvanceRun,
    CreatePipeline,
    CreateRun,
    CreateSchedule,
    DeleteArtifact,
    DeleteCacheEntry,
    DeletePipeline,
    DeletePipelineVersion,
    DeleteRun,
    DeleteSchedule,
    FireSchedule,
    ForgetRunRemains,
    RetryRun,
    SkippedTick,
    StopRun,
    StopSchedule,
    UpdatePipeline,
)
from paddleflow.domain.storage_commands import (
    CacheSettings,
    CloseMount,
    CreateCacheConfig,
    CreateLink,
    CreateSnapshot,
    DeleteCacheConfig,
    DeleteLink,
    DeleteSnapshot,
    ForgetSnapshot,
    OpenMount,
    RenewMount,
    ReportCache,
    ReportSnapshot,
    StorageCommand,
    UpdateCacheConfig,
)

Command = (
    SeedInstallation
    | CreateUser
    | SetPassword
    | DeleteUser
    | CreateGrant
    | DeleteGrant
    | CreateFlavour
    | UpdateFlavour
    | DeleteFlavour
    | CreateQueue
    | UpdateQueue
    | DeleteQueue
    | CreateCluster
    | UpdateCluster
    | DeleteCluster
    | ReportNodes
    | CreateFilesystem
    | UpdateFilesystem
    | DeleteFilesystem
    | StorageCommand
    | SubmitJob
    | UpdateJob
    | StopJob
    | DeleteJob
    | AdmitJob
    | ReserveRoom
    | EvictJob
    | ResizeJob
    | ExpireJob
    | FailJob
    | ForgetRemains
    | ReportTask
    | CreateRun
    | StopRun
    | RetryRun
    | DeleteRun
    | AdvanceRun
    | ForgetRunRemains
    | DeleteCacheEntry
    | DeleteArtifact
    | CreatePipeline
    | UpdatePipeline
    | DeletePipeline
    | DeletePipelineVersion
    | CreateSchedule
    | StopSchedule
    | DeleteSchedule
    | FireSchedule
)

__all__ = [
    "AdmitJob",
    "AdvanceRun",
    "CacheSettings",
    "CloseMount",
    "Command",
    "CreateCacheConfig",
    "CreateCluster",
    "CreateFilesystem",
    "CreateFlavour",
    "CreateGrant",
    "CreateLink",
    "CreatePipeline",
    "CreateQueue",
    "CreateRun",
    "CreateSchedule",
    "CreateSnapshot",
    "CreateUser",
    "DeleteArtifact",
    "DeleteCacheConfig",
    "DeleteCacheEntry",
    "DeleteCluster",
    "DeleteFilesystem",
    "DeleteFlavour",
    "DeleteGrant",
    "DeleteJob",
    "DeleteLink",
    "DeletePipeline",
    "DeletePipelineVersion",
    "DeleteQueue",
    "DeleteRun",
    "DeleteSchedule",
    "DeleteSnapshot",
    "DeleteUser",
    "EvictJob",
    "ExpireJob",
    "FailJob",
    "FireSchedule",
    "ForgetRemains",
    "ForgetRunRemains",
    "ForgetSnapshot",
    "OpenMount",
    "RenewMount",
    "ReportCache",
    "ReportNodes",
    "ReportSnapshot",
    "ReportTask",
    "ReserveRoom",
    "ResizeJob",
    "RetryRun",
    "SeedInstallation",
    "SetPassword",
    "SkippedTick",
    "StopJob",
    "StopRun",
    "StopSchedule",
    "SubmitJob",
    "UpdateCacheConfig",
    "UpdateCluster",
    "UpdateFilesystem",
    "UpdateFlavour",
    "UpdateJob",
    "UpdatePipeline",
    "UpdateQueue",
]
