"""The desk where mounts are let in: short-lived tokens out, the mount's plan (with real credentials) only encrypted.

A token is ``<mount id>.<expiry>.<secret>``. The secret follows from the other two and the installation's key, so it is
stored nowhere; the key that opens a plan follows from the secret, so neither an answer nor a log that shows one gives a
credential away. A token opens one filesystem in one mode, for as long as its user may use that filesystem.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from paddleflow.domain.access import may_use_filesystem
from paddleflow.domain.commands import CloseMount, OpenMount, RenewMount, ReportCache
from paddleflow.domain.errors import Denied, NotFound, PaddleFlowError, Unauthenticated
from paddleflow.domain.filesystems import CacheConfig, Filesystem, Link
from paddleflow.domain.ids import FilesystemId, MountId
from paddleflow.domain.mounts import SEEN_WITHIN, TOKEN_LIFE, Mount
from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.storages import Storage, opened
from paddleflow.domain.users import Actor
from paddleflow.engine.context import Answer
from paddleflow.engine.intake import Intake
from paddleflow.ports.clock import Clock
from paddleflow.ports.identity import Identity
from paddleflow.ports.mounts import Leave
from paddleflow.ports.store import ReadView, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class MountAccess:
    """What a mount gets for its token."""

    sealed: str
    """Its plan, encrypted with the secret of the token it asked with."""
    token: str = field(repr=False)
    """The next one."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedMount:
    mount_id: MountId
    fs_id: FilesystemId
    token: str = field(repr=False)
    expires_at: datetime


class MountDesk:
    def __init__(self, *, store: Store, intake: Intake, identity: Identity, clock: Clock) -> None:
        self._store = store
        self._intake = intake
        self._identity = identity
        self._clock = clock

    def open(self, actor: Actor, command: OpenMount, *, request_id: str = "", idempotency_key: str = "") -> OpenedMount:
        answer = self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)
        mount_id = MountId(str(answer["mountID"]))
        token, expires_at = self._token(mount_id)
        fs_id = FilesystemId(str(answer["fsID"]))
        return OpenedMount(mount_id=mount_id, fs_id=fs_id, token=token, expires_at=expires_at)

    def grant(self, actor: Actor, command: OpenMount) -> Leave:
        """For a mount that this server makes itself: the plan need not be encrypted on its way. There is one at a place
        of this machine: what an earlier server, or an earlier try, was given for it counts no more."""
        with self._store.read() as view:
            mounts = view.mounts.of_filesystem(command.fs_id, self._clock.now() - SEEN_WITHIN)
        for earlier in mounts:
            if earlier.mountpoint == command.mountpoint:
                with suppress(NotFound):  # its own farewell was faster
                    self._intake.submit(CloseMount(id=earlier.id), Actor(name=earlier.user))
        mount = self.open(actor, command)
        plan = json.dumps(self._plan(self.mount_of(mount.token)), separators=(",", ":"))
        return Leave(mount_id=mount.mount_id, token=mount.token, plan=plan, expires_at=mount.expires_at)

    def access(self, token: str, *, request_id: str = "") -> MountAccess:
        """The plan as it is now, and a new token."""
        mount = self.mount_of(token)
        self._intake.submit(RenewMount(id=mount.id), Actor(name=mount.user), request_id=request_id)
        plan = json.dumps(self._plan(mount), separators=(",", ":"))
        sealed = self._identity.seal_for(token.rpartition(".")[2], plan)
        renewed, expires_at = self._token(mount.id)
        return MountAccess(sealed=sealed, token=renewed, expires_at=expires_at)

    def report(self, token: str, command: ReportCache, *, request_id: str = "") -> Answer:
        mount = self.mount_of(token)
        if command.id != mount.id:
            raise Denied(
                f"the token is that of mount[{mount.id}], and the report is about another", code="AccessDenied"
            )
        return self._intake.submit(command, Actor(name=mount.user), request_id=request_id)

    def close(self, token: str, *, request_id: str = "") -> None:
        """The mount itself goes."""
        mount = self.mount_of(token)
        self._intake.submit(CloseMount(id=mount.id), Actor(name=mount.user), request_id=request_id)

    def mount_of(self, token: str) -> Mount:
        """The mount that holds this token; refused when it is forged or expired, the mount is closed or its user may
        not use the filesystem any more."""
        mount_id = self._verified(token)
        with self._store.read() as view:
            mount = view.mounts.find(mount_id)
            filesystem = None if mount is None else view.filesystems.find(mount.fs_id)
            if mount is None or filesystem is None or view.users.find(mount.user) is None:
                raise _invalid_token("the mount is closed; mount again")
            actor = Actor(name=mount.user)
            if not may_use_filesystem(actor, filesystem, () if actor.is_root else view.grants.of_user(actor.name)):
                raise Denied(f"user[{mount.user}] may not use fs[{filesystem.name}] any more", code="AccessDenied")
        return mount

    def _verified(self, token: str) -> MountId:
        token_id, _, secret = token.rpartition(".")
        mount_id, _, expiry = token_id.rpartition(".")
        known = token.isascii() and hmac.compare_digest(self._identity.mount_secret(token_id), secret)
        if not known or not expiry.isdecimal():
            raise _invalid_token("it is not one of this installation")
        if self._clock.now().timestamp() >= int(expiry):
            raise _invalid_token("it has expired; mount again")
        return MountId(mount_id)

    def _token(self, mount_id: MountId) -> tuple[str, datetime]:
        expiry = int((self._clock.now() + TOKEN_LIFE).timestamp())
        token_id = f"{mount_id}.{expiry}"
        return f"{token_id}.{self._identity.mount_secret(token_id)}", datetime.fromtimestamp(expiry, UTC)

    def _plan(self, mount: Mount) -> dict[str, object]:
        with self._store.read() as view:
            filesystem, links, config, snapshot = _rows(view, mount)
        return {
            "mountID": mount.id,
            "fsID": filesystem.id,
            "fsName": filesystem.name,
            "username": filesystem.owner,
            "readOnly": mount.read_only,
            "storage": self._opened(filesystem.storage),
            "links": [{"fsPath": link.fs_path, "storage": self._opened(link.storage)} for link in links],
            "cache": None if config is None else cache_plan(config),
            "snapshot": None if snapshot is None else _snapshot_plan(snapshot),
        }

    def _opened(self, storage: Storage) -> dict[str, object]:
        storage = opened(storage, self._identity.unseal)
        return {
            "type": storage.type,
            "serverAddress": storage.server_address,
            "subPath": storage.sub_path,
            "properties": dict(storage.properties),
        }


def _rows(view: ReadView, mount: Mount) -> tuple[Filesystem, tuple[Link, ...], CacheConfig | None, Snapshot | None]:
    filesystem = view.filesystems.find(mount.fs_id)
    if filesystem is None:
        raise _invalid_token("its filesystem is gone")
    snapshot = None if mount.snapshot is None else view.snapshots.find(mount.snapshot)
    if mount.snapshot is not None and snapshot is None:
        raise _invalid_token("its snapshot is gone")
    return filesystem, view.links.of_filesystem(mount.fs_id), view.cache_configs.find(mount.fs_id), snapshot


def cache_plan(config: CacheConfig) -> dict[str, object]:
    return {
        "cacheDir": config.cache_dir,
        "quota": config.quota,
        "metaDriver": config.meta_driver,
        "blockSize": config.block_size,
        "debug": config.debug,
        "cleanCache": config.clean_cache,
        "extraConfig": dict(config.extra_config),
    }


def _snapshot_plan(snapshot: Snapshot) -> Mapping[str, object]:
    return {
        "id": snapshot.id,
        "kind": snapshot.kind,
        "subPath": snapshot.sub_path,
        "manifestPath": snapshot.manifest_path,
        "contentPath": snapshot.content_path,
    }


def _invalid_token(why: str) -> PaddleFlowError:
    return Unauthenticated(f"Invalid mount token: {why}", code="AuthInvalidToken")
