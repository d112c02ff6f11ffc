"""The desk where filesystems and links are handed in: whether a storage can be reached is found out here, before any
transaction and within a bounded time; the handler then stores what is known to work.

A secret never leaves in an error: what a storage says is searched for them first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from itertools import islice

from paddleflow.domain.access import authorize
from paddleflow.domain.commands import CreateFilesystem, CreateLink, UpdateFilesystem
from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError
from paddleflow.domain.filesystems import Filesystem, check_link_path, check_not_nested
from paddleflow.domain.ids import UserName, filesystem_id
from paddleflow.domain.storages import (
    FILESYSTEM_CODES,
    LOCAL,
    PLACEHOLDER,
    SECRETS,
    Storage,
    check_secrets_stay_home,
    parse_link_storage,
    parse_storage,
    with_kept_secrets,
)
from paddleflow.domain.users import Actor
from paddleflow.engine.context import Answer
from paddleflow.engine.intake import Intake
from paddleflow.ports.files import Files
from paddleflow.ports.storages import Storages
from paddleflow.ports.store import Store

_PATIENCE_S = 20.0
"""For a storage to answer; its own time-outs are shorter, this one is for those that have none."""
_AT_ONCE = 4


class StorageDesk:
    def __init__(
        self, *, store: Store, intake: Intake, files: Files, storages: Storages, unseal: Callable[[str], str]
    ) -> None:
        self._store = store
        self._intake = intake
        self._files = files
        self._storages = storages
        self._unseal = unseal
        self._checkers = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="storage-check")

    def create_filesystem(
        self, actor: Actor, command: CreateFilesystem, *, request_id: str = "", idempotency_key: str = ""
    ) -> Answer:
        authorize(actor, command)
        self._check(parse_storage(command.url, command.properties))
        return self._intake.submit(command, actor, request_id=request_id, idempotency_key=idempotency_key)

    def update_filesystem(self, actor: Actor, command: UpdateFilesystem, *, request_id: str = "") -> Answer:
        authorize(actor, command)
        filesystem = self._filesystem(actor, command.owner, command.name)
        properties = with_kept_secrets(command.properties, filesystem.properties, self._unseal, FILESYSTEM_CODES)
        storage = parse_storage(command.url, properties)
        # Before anything is sent there.
        check_secrets_stay_home(filesystem.storage, storage, command.properties, FILESYSTEM_CODES)
        self._check(storage)
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
        self._check(storage)
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

    def _check(self, storage: Storage) -> None:
        """A directory of the host may be made later, by whoever mounts it."""
        if storage.type == LOCAL:
            return
        try:
            self._checkers.submit(self._storages.check, storage).result(_PATIENCE_S)
        except NotInTime as error:
            raise _unreachable(storage, f"no answer within {_PATIENCE_S:.0f} s") from error
        except PaddleFlowError as error:
            # The error itself is not chained: it may hold what must not be logged.
            raise _unreachable(storage, error.message) from None

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
    for name in SECRETS & properties.keys():
        if properties[name]:
            text = text.replace(properties[name], PLACEHOLDER)
    return text
