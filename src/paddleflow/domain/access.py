"""Who may ask what: the whole permission table, in one place.

Three kinds of rule cover every command: root only, owner (or root), anyone who is logged in. Reports and decisions come
from the platform itself and from nobody else. Reading has the same shape and uses the same words.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from paddleflow.domain import commands
from paddleflow.domain.errors import Denied, no_access
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import UserName
from paddleflow.domain.jobs import Job
from paddleflow.domain.storage_commands import StorageCommand
from paddleflow.domain.users import Actor, Grant, ResourceType

ONLY_ROOT = "This operation is only allowed for root user"

_OfThePlatform = (
    commands.SeedInstallation
    | commands.AdmitJob
    | commands.ReserveRoom
    | commands.EvictJob
    | commands.ResizeJob
    | commands.ExpireJob
    | commands.FailJob
    | commands.ForgetRemains
    | commands.ReportTask
    | commands.ReportNodes
    | commands.AdvanceRun
    | commands.ForgetRunRemains
    | commands.FireSchedule
)
"""Reports and decisions."""


def authorize(actor: Actor, command: commands.Command) -> None:
    """Refuse what this actor may never ask, before anything is loaded. Ownership is checked with the row in hand."""
    if isinstance(command, _OfThePlatform):
        _require_platform(actor)
        return
    if isinstance(command, StorageCommand):
        _authorize_storage(actor, command)
        return
    match command:
        case commands.CreateUser() | commands.CreateGrant() | commands.DeleteGrant():
            require_root(actor, code="OnlyRootAllowed")
        case commands.DeleteUser():
            require_root(actor, code="AccessDenied")
        case commands.CreateQueue() | commands.UpdateQueue() | commands.DeleteQueue():
            require_root(actor, code="OnlyRootAllowed")
        case commands.CreateCluster() | commands.UpdateCluster() | commands.DeleteCluster():
            require_root(actor, code="OnlyRootAllowed")
        case commands.SetPassword(name=name):
            if actor.name != name:
                require_root(actor, code="AccessDenied")
        case (
            commands.CreateFilesystem(owner=owner)
            | commands.UpdateFilesystem(owner=owner)
            | commands.DeleteFilesystem(owner=owner)
            | commands.CreateRun(owner=owner)
            | commands.DeleteArtifact(owner=owner)
            | commands.CreatePipeline(owner=owner)
            | commands.UpdatePipeline(owner=owner)
            | commands.CreateSchedule(owner=owner)
        ):
            _require_for(actor, owner)
        case commands.CreateFlavour() | commands.UpdateFlavour() | commands.DeleteFlavour():
            pass  # anyone may create; update and delete check the owner of the row
        case commands.SubmitJob() | commands.UpdateJob() | commands.StopJob() | commands.DeleteJob():
            pass  # submit checks the queue's grant, the others the owner of the row
        case (
            commands.StopRun()
            | commands.RetryRun()
            | commands.DeleteRun()
            | commands.DeleteCacheEntry()
            | commands.DeletePipeline()
            | commands.DeletePipelineVersion()
            | commands.StopSchedule()
            | commands.DeleteSchedule()
        ):
            pass  # all of them check the owner of the row
        case _:
            assert_never(command)


def _authorize_storage(actor: Actor, command: StorageCommand) -> None:
    match command:
        case (
            commands.CreateLink(owner=owner)
            | commands.DeleteLink(owner=owner)
            | commands.CreateCacheConfig(owner=owner)
            | commands.UpdateCacheConfig(owner=owner)
            | commands.DeleteCacheConfig(owner=owner)
            | commands.CreateSnapshot(owner=owner)
            | commands.DeleteSnapshot(owner=owner)
        ):
            _require_for(actor, owner)
        case commands.ReportSnapshot() | commands.ForgetSnapshot():
            _require_platform(actor)
        case commands.OpenMount() | commands.RenewMount() | commands.CloseMount() | commands.ReportCache():
            pass  # the filesystem's owner and grants decide who may mount it, and a mount is its user's
        case _:
            assert_never(command)


def _require_for(actor: Actor, owner: str) -> None:
    """Nobody but root acts for somebody else."""
    if owner and owner != actor.name:
        require_root(actor, code="AccessDenied")


def _require_platform(actor: Actor) -> None:
    if not actor.is_platform:
        raise Denied("only the platform itself may report or decide", code="ActionNotAllowed")


def require_root(actor: Actor, *, code: str = "OnlyRootAllowed") -> None:
    if not actor.is_root:
        message = ONLY_ROOT if code == "OnlyRootAllowed" else "Access denied"
        raise Denied(message, code=code)


def require_owner(
    actor: Actor, owner: UserName | None, kind: str, ident: str, *, code: str = "ActionNotAllowed"
) -> None:
    if not actor.is_root and actor.name != owner:
        raise no_access(actor.name, kind, ident, code=code)


def require_job(actor: Actor, job: Job) -> None:
    require_owner(actor, job.owner, "job", job.id)


def may_use_filesystem(actor: Actor, filesystem: Filesystem, grants: Collection[Grant]) -> bool:
    """Its owner, root, and whoever was granted it."""
    return (
        actor.is_root
        or actor.name == filesystem.owner
        or any(
            grant.resource_type is ResourceType.FILESYSTEM and grant.resource_id == filesystem.id for grant in grants
        )
    )


def may_use_queue(actor: Actor, queue: str, grants: Collection[Grant]) -> bool:
    return actor.is_root or any(
        grant.resource_type is ResourceType.QUEUE and grant.resource_id == queue for grant in grants
    )
