"""The desk where filesystems and links are handed in: whether a storage can be reached is found out here, before any
transaction and within a bounded time; the handler then stores what is known to work.

A secret never leaves in an error: what a storage says is searched for them first.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from itertools import islice

from paddleflow.domain.access import authorize
from paddleflow.domain.commands import CreateFilesystem, CreateLink, DeleteFilesystem, UpdateFilesystem
from paddleflow.domain.errors import InUse, Invalid, NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.filesystems import Filesystem, check_link_path, check_not_nested
from paddleflow.domain.ids import UserName, filesystem_id
from paddleflow.domain.storages import (
    FILESYSTEM_CODES,
    LOCAL,
    PLACEHOLDER,
    Storage,
    check_secrets_stay_home,
    is_secret,
    parse_link_storage,
    parse_storage,
    with_kept_secrets,
)
from paddleflow.domain.users import Actor
from paddleflow.engine.context import Answer
from paddleflow.engine.intake import Intake
from paddleflow.ports.files import Files
from paddleflow.ports.mounts import NodeMounts
from paddleflow.ports.storages import Storages
from paddleflow.ports.store import Store

_PATIENCE_S = 20.0
"""For a storage to answer; its own time-outs are shorter, this one is for those that have none."""
_AT_ONCE = 16
_OF_ONE_USER = 2


class StorageDesk:
    def __init__(
        self,
        *,
        store: Store,
        intake: Intake,
        files: Files,
        storages: Storages,
        unseal: Callable[[str], str],
        mounts: Sequence[NodeMounts] = (),
    ) -> None:
        """``mounts``: those that this server makes for jobs."""
        self._mounts = mounts
        self._store = store
        self._intake = intake
        self._files = files
        self._storages = storages
        self._unseal = unseal
        self._checkers = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="storage-check")
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()
        """By user."""

    def create_filesystem(
        self, actor: Actor, command: CreateFilesystem, *, request_id: str = "", idempotency_key: str = ""
    ) -> Answer:
        authorize(actor, command)
        self._check(actor, parse_storage(command.url, command.properties))
        return self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)

    def update_filesystem(self, actor: Actor, command: UpdateFilesystem, *, request_id: str = "") -> Answer:
        authorize(actor, command)
        filesystem = self._filesystem(actor, command.owner, command.name)
        properties = with_kept_secrets(command.properties, filesystem.properties, self._unseal, FILESYSTEM_CODES)
        storage = parse_storage(command.url, properties)
        # Before anything is sent there.
        check_secrets_stay_home(filesystem.storage, storage, command.properties, FILESYSTEM_CODES)
        self._check(actor, storage)
        return self._intake.submit(command, actor, request_id=request_id)

    def delete_filesystem(self, actor: Actor, command: DeleteFilesystem, *, request_id: str = "") -> Answer:
        """A mount that this server keeps for the next job is no reason to refuse; it is let go first."""
        authorize(actor, command)
        try:
            return self._intake.submit(command, actor, request_id=request_id)
        except InUse:
            fs_id = filesystem_id(UserName(command.owner or actor.name), command.name)
            if not any(mounts.release(fs_id) for mounts in self._mounts):
                raise
        return self._intake.submit(command, actor, request_id=request_id)

    def create_link(
        self, actor: Actor, command: CreateLink, *, request_id: str = "", idempotency_key: str = ""
    ) -> Answer:
        authorize(actor, command)
        filesystem = self._filesystem(actor, command.owner, command.fs_name)
        path = check_link_path(command.fs_path)
        storage = parse_link_storage(command.url, command.properties)
        with self._store.read() as view:
            taken = [link.fs_path for link in view.links.of_filesystem(filesystem.id) if link.fs_path != path]
        # An equal path is left to the handler: the same request sent twice must find its receipt.
        check_not_nested(path, taken)
        self._check_place(filesystem, path.strip("/"))
        self._check(actor, storage)
        return self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)

    def close(self) -> None:
        self._checkers.shutdown(wait=False, cancel_futures=True)

    def _filesystem(self, actor: Actor, owner: str, name: str) -> Filesystem:
        user = UserName(owner or actor.name)
        with self._store.read() as view:
            filesystem = view.filesystems.find(filesystem_id(user, name))
        if filesystem is None:
            raise NotFound(f"username[{user}] not create fsName[{name[:80]}]", code="RecordNotFound")
        return filesystem

    def _check(self, actor: Actor, storage: Storage) -> None:
        """A directory of the host may be made later, by whoever mounts it."""
        if storage.type == LOCAL:
            return
        checking = self._submitted(actor, storage)
        try:
            checking.result(_PATIENCE_S)
        except NotInTime as error:
            raise _unreachable(storage, f"no answer within {_PATIENCE_S:.0f} s") from error
        except PaddleFlowError as error:
            # The error itself is not chained: it may hold what must not be logged.
            raise _unreachable(storage, error.message) from None

    def _submitted(self, actor: Actor, storage: Storage) -> Future[None]:
        """Addresses where nobody answers take long; those of one user must not keep everybody else waiting."""
        with self._lock:
            if self._under_way[actor.name] >= _OF_ONE_USER:
                raise Unavailable(
                    f"{_OF_ONE_USER} storages of user[{actor.name}] are being tried already; wait until they answered"
                )
            self._under_way[actor.name] += 1
        checking = self._checkers.submit(self._storages.check, storage)
        checking.add_done_callback(lambda _: self._over(actor))
        return checking

    def _over(self, actor: Actor) -> None:
        with self._lock:
            self._under_way[actor.name] -= 1
            if not self._under_way[actor.name]:
                del self._under_way[actor.name]

    def _check_place(self, filesystem: Filesystem, path: str) -> None:
        """The parent is a directory, and nothing is where the link will be, or a directory with nothing in it."""
        parent = path.rpartition("/")[0]
        code = "LinkFileSystemPathNotExist"
        try:
            is_directory = not parent or self._files.entry(filesystem, parent).is_directory
        except (NotFound, Invalid) as error:
            raise Invalid(
                f"the parent of fsPath[/{path}] does not exist in fs[{filesystem.name}]", code=code
            ) from error
        if not is_directory:
            raise Invalid(f"the parent of fsPath[/{path}] is not a directory", code=code)
        try:
            at_and_below = [entry.is_directory for entry in islice(self._files.walk(filesystem, path), 2)]
        except NotFound:
            return
        if at_and_below != [True]:
            raise Invalid(f"fsPath[/{path}] must be absent or an empty directory", code="LinkPathMustBeEmpty")


def _unreachable(storage: Storage, why: str) -> Invalid:
    return Invalid(
        f"the storage of type {storage.type} at [{storage.server_address}] cannot be used: "
        f"{without_secrets(why, storage.properties)}",
        code="ConnectivityFailed",
    )


def without_secrets(text: str, properties: Mapping[str, str]) -> str:
    for name in filter(is_secret, properties):
        if properties[name]:
            text = text.replace(properties[name], PLACEHOLDER)
    return text
