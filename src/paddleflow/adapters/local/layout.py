"""Where everything of a runtime root lies on disk, and the few primitives that make it safe against crashes.

::

    <root>/                     0700
      nursery.lock              held while a nursery is being started
      nursery.sock              datagrams "<job>/<task>": please look after this task
      notify.fifo               lines "<job>/<task>": this task has changed (read by the platform)
      live/<task> -> <job>      every task whose end the platform has not acknowledged yet
      ports/<port> -> <task>    every reserved port; ports.lock is held while one is given or given back
      jobs/<job>/membership.json
                                who belongs to the job now; membership.lock is held while it is replaced
      jobs/<job>/<task>/
        ports -> <port>,…       the ports reserved for this task
        spec.json               what to run; its existence is the claim: written once, before anything else
        lock                    locked by the task's supervisor for as long as it lives
        started.json            written before the task may execute anything; without it nothing ever ran
        stop.json               the task shall end; also the tombstone of a task that never was launched
        end.json                how it ended; final
        log, log.<offset>         what it printed, in segments
        control.sock, work/, tmp/

Host side: imported by the nursery, so it stays light. It refuses to know what the documents mean.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIVE = "live"
JOBS = "jobs"
TRASH = "trash"
RESERVED = "ports"
RESERVED_LOCK = "ports.lock"
MEMBERSHIP_LOCK = "membership.lock"
NURSERY_LOCK = "nursery.lock"
NURSERY_SOCKET = "nursery.sock"
NOTIFY_FIFO = "notify.fifo"

MEMBERSHIP = "membership.json"

PORTS = "ports"
SPEC = "spec.json"
LOCK = "lock"
STARTED = "started.json"
STOP = "stop.json"
END = "end.json"
END_RESERVE = "end.reserve"
LOG = "log"
CONTROL_SOCKET = "control.sock"
WORK = "work"
TEMPORARY = "tmp"
SHORT = "t"
"""In the root: a short name for every task's temporary directory."""
NEW_ROOT = "root"

ROOT_FROM_TASK = "../../.."
"""A supervisor's current directory is its task's directory: short names, whatever the root is called."""

_RESERVE_BYTES = 4096
_FLOCK = "hhqqi4x"


def task_path(root: str, job_id: str, task_id: str) -> str:
    return f"{root}/{JOBS}/{job_id}/{task_id}"


def membership_path(root: str, job_id: str) -> str:
    return f"{root}/{JOBS}/{job_id}/{MEMBERSHIP}"


def read_document(path: str) -> dict[str, Any] | None:
    """The JSON object in a file that was written atomically, or None when there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(fd, "rb") as file:
        document: dict[str, Any] = json.loads(file.read())
    return document


def write_document(path: str, document: dict[str, Any]) -> None:
    """Replace a file whole: a reader sees the old or the new one."""
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    _write_new(scratch, document)
    os.rename(scratch, path)


def write_document_once(path: str, document: dict[str, Any]) -> bool:
    """Create a file whole, unless it exists. True for exactly one of all callers, across processes."""
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    _write_new(scratch, document)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(scratch)
    return True


def _write_new(path: str, document: dict[str, Any]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, json.dumps(document).encode())
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]


def reserve_end(directory: str) -> None:
    """Set space aside for the end of the task, so that a full disk cannot lose its exit status."""
    fd = os.open(f"{directory}/{END_RESERVE}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(fd, 0, _RESERVE_BYTES)
    finally:
        os.close(fd)


def write_end(directory: str, document: dict[str, Any]) -> None:
    """Store how the task ended. The caller holds the task's lock, so nobody else writes."""
    reserve = f"{directory}/{END_RESERVE}"
    content = json.dumps(document).encode()
    fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _write_all(fd, content)
        os.ftruncate(fd, len(content))
    finally:
        os.close(fd)
    os.rename(reserve, f"{directory}/{END}")


def notify(root: str, address: str) -> None:
    """Tell the platform to look at a task. It need not be there: it reads the same files when it comes back."""
    try:
        fd = os.open(f"{root}/{NOTIFY_FIFO}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return
        raise
    try:
        os.write(fd, f"{address}\n".encode())
    except (BlockingIOError, BrokenPipeError):
        return  # The platform is stuck or just ended; it looks for itself when it comes back.
    finally:
        os.close(fd)


def create_lock(path: str) -> None:
    """Make the file to lock. Apart from locking it, so that a latecomer creates nothing in a job being deleted."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def acquire_lock(path: str) -> int | None:
    """Lock a file for as long as the returned descriptor is open; None when somebody else has it.

    Open-file-description locks: like flock they follow the descriptor and not the process, and unlike flock one can
    ask who holds them without taking them, so looking never disturbs a supervisor that is about to start.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return fd


def acquire_lock_waiting(path: str) -> int:
    """Lock a file, waiting for whoever has it."""
    create_lock(path)
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return fd


def is_locked(path: str) -> bool:
    """Whether somebody holds the lock. Does not take it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(fd)
