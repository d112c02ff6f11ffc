"""Where the filesystems of a job are on its node: a directory of the host, or a mount that is shared by all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paddleflow.domain.commands import OpenMount
from paddleflow.domain.ids import FilesystemId
from paddleflow.domain.jobs import FsRef, Job, Member
from paddleflow.domain.storages import LOCAL
from paddleflow.domain.users import Actor
from paddleflow.engine.mounts import MountDesk
from paddleflow.ports.mounts import Leave, NodeMounts
from paddleflow.ports.store import Store


class JobMounts:
    def __init__(self, *, store: Store, desk: MountDesk, mounts: NodeMounts) -> None:
        self._store = store
        self._desk = desk
        self._mounts = mounts

    def placed(self, job: Job) -> Job:
        """The job with the host's directory for each of its filesystems. Unavailable while one is being mounted."""
        wanted = self.mounted_by(job)
        paths = {fs_id: self._mounts.path(fs_id, lambda at, fs_id=fs_id: self._ask(job, fs_id, at)) for fs_id in wanted}  # type: ignore[misc]
        if not paths:
            return job
        members = tuple(_with_paths(member, paths) for member in job.spec.members)
        return replace(job, spec=replace(job.spec, members=members))

    def mounted_by(self, job: Job) -> frozenset[FilesystemId]:
        """Those of its filesystems that need a mount: all but plain directories of the host. One with links needs a
        mount too, because a directory cannot show them."""
        refs = {FilesystemId(ref.id): ref for member in job.spec.members for ref in member.mounts if ref.id}
        if not refs:
            return frozenset()
        with self._store.read() as view:
            return frozenset(
                fs_id for fs_id, ref in refs.items() if ref.type != LOCAL or view.links.of_filesystem(fs_id)
            )

    def keep(self, jobs: tuple[Job, ...]) -> None:
        """These jobs hold their filesystems; nobody else does."""
        self._mounts.keep(frozenset(fs_id for job in jobs for fs_id in self.mounted_by(job)))

    def _ask(self, job: Job, fs_id: FilesystemId, mountpoint: str) -> Leave:
        return self._desk.grant(Actor(name=job.owner), OpenMount(fs_id=fs_id, mountpoint=mountpoint))


def _with_paths(member: Member, paths: Mapping[FilesystemId, str]) -> Member:
    return replace(
        member,
        fs=None if member.fs is None else _with_path(member.fs, paths),
        extra_fs=tuple(_with_path(ref, paths) for ref in member.extra_fs),
    )


def _with_path(ref: FsRef, paths: Mapping[FilesystemId, str]) -> FsRef:
    path = paths.get(FilesystemId(ref.id))
    return ref if path is None else replace(ref, host_path=path)
