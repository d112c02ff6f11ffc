"""LocalRuntime: the Runtime port on this host's own processes. Server side.

It holds nothing that a new one could not read from the runtime root: kill the platform at any moment, start another on
the same root, and it finds every task as it is. It starts no process but the nursery, and never waits for a task.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paddleflow.adapters.local import layout
from paddleflow.adapters.local.isolation import host_isolation
from paddleflow.adapters.local.launches import SYSTEM_PATH, check_ids, check_launch, is_id, make_spec, short_temporary
from paddleflow.adapters.local.log_reading import read_log
from paddleflow.adapters.local.memberships import publish_membership
from paddleflow.adapters.local.nodes import host_name, host_node
from paddleflow.adapters.local.notices import Notices
from paddleflow.adapters.local.nursery_client import NurseryClient
from paddleflow.adapters.local.reservations import PortReservations
from paddleflow.adapters.local.states import TaskFolder
from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import DiskFull, InUse, Invalid, Unavailable, invalid_field, not_found
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, JobId, TaskId
from paddleflow.domain.jobs import Address, Membership, TaskLaunch, TaskReport, TaskStatus, Usage
from paddleflow.ports.runtime import LogChunk

_RECHECK_S = 5.0
_ASK_AGAIN_S = 3.0
_LOOPBACK = "127.0.0.1"
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRuntimeOptions:
    root: Path
    """Where everything of this runtime lies; made with mode 0700. One root is one cluster."""
    cluster: ClusterName = DEFAULT_CLUSTER
    nodes: tuple[Node, ...] = ()
    """Simulated nodes. None: this host is the one node, with what it really has."""
    log_cap_bytes: int = 64 * 1024 * 1024
    """What a task writes beyond this is dropped."""
    extra_path: tuple[str, ...] = ()
    """Directories searched for programs before those of the system."""
    port_range: range = range(20000, 30000)
    """Ports for tasks that must find each other. Below those the kernel gives to outgoing connections."""
    nursery_idle_s: float = 300.0
    """The process that starts tasks ends when it was not needed for so long; the next task starts another."""


class LocalRuntime:
    def __init__(self, options: LocalRuntimeOptions) -> None:
        self._options = options
        self._root = os.path.abspath(options.root)
        self._reservations = PortReservations(self._root, options.port_range)
        with _translated():
            self._root_fd = _open_root(self._root)
            self._notices = Notices(self._root)
            self._nursery = NurseryClient(self._root_fd, self._root, options.nursery_idle_s)
            self._isolation = host_isolation()
            self._empty_trash()
        self._path = ":".join((*options.extra_path, SYSTEM_PATH))
        self._node_names = frozenset(node.name for node in options.nodes) or frozenset({host_name()})
        self._waiting = threading.Lock()
        self._told: dict[TaskId, TaskStatus] = {}
        self._asked: dict[TaskId, float] = {}
        self._recheck_at = time.monotonic() + _RECHECK_S

    @property
    def isolation(self) -> str:
        """How tasks are limited: ``cgroup v1``, ``cgroup v2`` or ``rlimits``."""
        return self._isolation.name

    @property
    def isolation_reason(self) -> str:
        """Why it is so, and what is missing."""
        return self._isolation.reason

    def close(self) -> None:
        """Stop listening. Tasks, their supervisors and the nursery go on."""
        self._notices.close()
        self._nursery.close()
        os.close(self._root_fd)

    def addresses(self, job_id: JobId, task_ids: Sequence[TaskId], ports: int) -> Mapping[TaskId, Address]:
        """Every node is this host, so every task is reached at the loopback address."""
        check_ids(job_id, *task_ids)
        if ports < 0:
            raise invalid_field("ports", f"[{ports}] must not be negative")
        with _translated():
            reserved = self._reservations.reserve([self._folder(job_id, each) for each in task_ids], ports)
        return {task_id: Address(host=_LOOPBACK, ports=numbers) for task_id, numbers in reserved.items()}

    def publish(self, membership: Membership) -> None:
        check_ids(membership.job_id, *(placement.task_id for placement, _ in membership.tasks))
        with _translated():
            publish_membership(self._root, membership)

    def launch(self, launch: TaskLaunch) -> None:
        check_ids(launch.job_id, launch.task_id)
        folder = self._folder(launch.job_id, launch.task_id)
        with _translated():
            if folder.has(layout.STOP) or folder.has_ended():
                return
            if not folder.has(layout.SPEC):
                check_launch(launch, self._node_names)
                self._claim(launch, folder)
            self._mark_live(folder)
            if not folder.has(layout.STARTED):
                self._ask(folder)

    def _claim(self, launch: TaskLaunch, folder: TaskFolder) -> None:
        own = (layout.WORK, layout.TEMPORARY, *((layout.NEW_ROOT,) if launch.mounts else ()))
        for directory in (os.path.dirname(folder.path), folder.path, *(f"{folder.path}/{name}" for name in own)):
            with suppress(FileExistsError):
                os.mkdir(directory, 0o700)
        with suppress(FileExistsError):
            temporary = f"../{layout.JOBS}/{folder.job_id}/{folder.task_id}/{layout.TEMPORARY}"
            os.symlink(temporary, short_temporary(self._root, folder.task_id))
        spec = make_spec(
            launch,
            folder,
            path=self._path,
            log_cap_bytes=self._options.log_cap_bytes,
            cgroup_parents=self._isolation.cgroup_parents,
        )
        layout.create_lock(f"{folder.path}/{layout.LOCK}")
        layout.write_document_once(f"{folder.path}/{layout.SPEC}", spec.to_document())

    def _mark_live(self, folder: TaskFolder) -> None:
        try:
            os.symlink(folder.job_id, self._live(folder.task_id))
        except FileExistsError:
            owner = os.readlink(self._live(folder.task_id))
            if owner != folder.job_id:
                raise Invalid(f"task [{folder.task_id}] belongs to job [{owner}]") from None

    def _ask(self, folder: TaskFolder) -> None:
        self._asked[folder.task_id] = time.monotonic()
        self._nursery.request_supervisor(folder.job_id, folder.task_id)

    def stop(self, job_id: JobId, task_ids: Sequence[TaskId], grace_s: float) -> None:
        check_ids(job_id, *task_ids)
        for task_id in task_ids:
            folder = self._folder(job_id, task_id)
            with _translated():
                if folder.has_ended():
                    continue
                os.makedirs(folder.path, 0o700, exist_ok=True)
                layout.create_lock(f"{folder.path}/{layout.LOCK}")
                layout.write_document(f"{folder.path}/{layout.STOP}", {"grace_s": max(0.0, grace_s)})
                self._mark_live(folder)
                # Whoever has the lock reads the order: a supervisor when it is poked, or before it starts the task.
                folder.settle()
                if folder.has_ended():
                    layout.notify(self._root, f"{job_id}/{task_id}")
                else:
                    _poke(folder)

    def acknowledge(self, task_id: TaskId) -> None:
        """The platform has stored the end of this task: ``survey`` need not tell it again. Idempotent."""
        folder = self._find(task_id)
        if folder is None or not folder.has_ended():
            return
        with _translated():
            # The ports first: a task that is no longer live is never acknowledged again.
            self._reservations.release(folder)
            with suppress(FileNotFoundError):
                os.unlink(self._live(task_id))
        self._told.pop(task_id, None)
        self._asked.pop(task_id, None)

    def remove(self, job_id: JobId) -> None:
        check_ids(job_id)
        directory = f"{self._root}/{layout.JOBS}/{job_id}"
        with _translated():
            try:
                # What else lies there belongs to the whole job.
                tasks = [TaskId(name) for name in os.listdir(directory) if name.startswith(f"{job_id}-")]
            except FileNotFoundError:
                return
            folders = [self._folder(job_id, task_id) for task_id in tasks]
            for folder in folders:
                if not folder.has_ended() and (folder.has(layout.SPEC) or folder.is_supervised):
                    raise InUse(f"job [{job_id}] cannot be removed while its task [{folder.task_id}] has not ended")
            for folder in folders:
                self._reservations.release(folder)
                for name in (self._live(folder.task_id), short_temporary(self._root, folder.task_id)):
                    with suppress(FileNotFoundError):
                        os.unlink(name)
                self._told.pop(folder.task_id, None)
            # Away first, deleted then: a crash in between leaves trash and not half a job.
            os.rename(directory, f"{self._root}/{layout.TRASH}/{job_id}.{os.urandom(8).hex()}")
            self._empty_trash()

    def survey(self) -> list[TaskReport]:
        with _translated():
            found = [self._look(folder) for folder in self._live_folders()]
        reports = [report for report in found if report is not None]
        self._told |= {report.task_id: report.status for report in reports}
        return reports

    def wait_reports(self, timeout_s: float) -> list[TaskReport]:
        deadline = time.monotonic() + timeout_s
        with self._waiting, _translated():
            while True:
                now = time.monotonic()
                heard, woken = self._notices.wait(min(deadline, self._recheck_at) - now)
                reports = self._changed(self._heard_of(heard))
                if time.monotonic() >= self._recheck_at:
                    reports += self._changed(self._live_folders())
                    self._recheck_at = time.monotonic() + _RECHECK_S
                if reports or woken or time.monotonic() >= deadline:
                    return reports

    def _changed(self, folders: Iterator[TaskFolder]) -> list[TaskReport]:
        """Those whose state is another than the one told last."""
        changed = []
        for folder in folders:
            report = self._look(folder)
            if report is not None and self._told.get(folder.task_id) != report.status:
                self._told[folder.task_id] = report.status
                changed.append(report)
        return changed

    def _look(self, folder: TaskFolder) -> TaskReport | None:
        """The task's present state, after putting right what a crash may have left."""
        if not folder.exists():
            return None
        if not folder.has_ended() and not folder.is_supervised and not folder.settle():
            self._ask_again(folder)
        return folder.report()

    def _ask_again(self, folder: TaskFolder) -> None:
        """Nothing of the task was ever executed: the request, or a supervisor, was lost on the way."""
        claimed_at = folder.claimed_at
        if claimed_at is None or abs(time.time() - claimed_at) < _ASK_AGAIN_S:
            return
        if time.monotonic() - self._asked.get(folder.task_id, float("-inf")) >= _ASK_AGAIN_S:
            self._ask(folder)

    def wake(self) -> None:
        self._notices.wake()

    def nodes(self) -> list[Node]:
        with _translated():
            return list(self._options.nodes) or [host_node(self._options.cluster)]

    def usage(self, task_id: TaskId) -> Usage | None:
        folder = self._find(task_id)
        if folder is None:
            return None
        with _translated():
            live = folder.live_usage()
            report = folder.report()
        return report.usage if report.status in _ENDED else live

    def read_log(self, job_id: JobId, task_id: TaskId, start: int, limit: int) -> LogChunk:
        check_ids(job_id, task_id)
        folder = self._folder(job_id, task_id)
        with _translated():
            if not folder.is_known():
                raise not_found("log", task_id)
            return read_log(f"{folder.path}/{layout.LOG}", start, limit)

    def _live(self, task_id: TaskId) -> str:
        return f"{self._root}/{layout.LIVE}/{task_id}"

    def _folder(self, job_id: JobId, task_id: TaskId) -> TaskFolder:
        return TaskFolder(root=self._root, job_id=job_id, task_id=task_id)

    def _live_folders(self) -> Iterator[TaskFolder]:
        for name in os.listdir(f"{self._root}/{layout.LIVE}"):
            # Gone: acknowledged or removed meanwhile.
            with suppress(FileNotFoundError):
                yield self._folder(JobId(os.readlink(self._live(TaskId(name)))), TaskId(name))

    def _heard_of(self, addresses: list[str]) -> Iterator[TaskFolder]:
        for address in addresses:
            job_id, _, task_id = address.partition("/")
            # An acknowledged task has nothing more to tell.
            if is_id(job_id) and is_id(task_id) and os.path.lexists(self._live(TaskId(task_id))):
                yield self._folder(JobId(job_id), TaskId(task_id))

    def _find(self, task_id: TaskId) -> TaskFolder | None:
        """The folder of a task whose job is not given. The job's id is where the task's begins."""
        if not is_id(task_id):
            return None
        for end in range(1, len(task_id)):
            if task_id[end] == "-":
                folder = self._folder(JobId(task_id[:end]), task_id)
                if folder.is_known():
                    return folder
        return None

    def _empty_trash(self) -> None:
        trash = f"{self._root}/{layout.TRASH}"
        for name in os.listdir(trash):
            shutil.rmtree(f"{trash}/{name}", onerror=_unlock_and_retry)


def _open_root(root: str) -> int:
    os.makedirs(root, 0o700, exist_ok=True)
    os.chmod(root, 0o700)
    for name in (layout.LIVE, layout.JOBS, layout.TRASH, layout.RESERVED, layout.SHORT):
        os.makedirs(f"{root}/{name}", 0o700, exist_ok=True)
    return os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _poke(folder: TaskFolder) -> None:
    """Make the supervisor read its orders now."""
    directory = os.open(folder.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            # Not yet bound: it reads its orders after binding. Gone or full: it has ended, or was poked already.
            with suppress(FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                sender.sendto(b"stop", f"/proc/self/fd/{directory}/{layout.CONTROL_SOCKET}")
    finally:
        os.close(directory)


def _unlock_and_retry(function: Callable[[str], object], path: str, trouble: object) -> None:
    """A task may have left directories without permissions; they are ours, so they can be opened up and deleted."""
    if isinstance(trouble, tuple) and isinstance(trouble[1], FileNotFoundError):
        return  # Another server is emptying the same trash.
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"the disk of the local runtime is full: {error}") from error
        raise Unavailable(f"the local runtime cannot work with its directory: {error}") from error
