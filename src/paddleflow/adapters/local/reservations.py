"""Ports reserved for tasks, so that each can be told where the others will be before any of them runs. Server side.

The link ``ports`` in a task's folder says which ports it has, and is the truth; ``ports/<port>`` in the root names the
task and keeps two tasks from having the same port. The second is made before the first and taken away after it, so
that a crash leaves at most a name without a task that has the port; whoever comes next sees that and takes it. Both are
symbolic links because a link is made whole or not at all, and neither needs a lock to be read.

It refuses to hold a port open: the task binds it. A program that has the port when it is chosen is stepped around; one
that takes it later makes the task fail as any other busy port would. Another root on this host is such a program.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from paddleflow.adapters.local import layout
from paddleflow.adapters.local.states import TaskFolder
from paddleflow.domain.errors import Unavailable, invalid_field
from paddleflow.domain.ids import TaskId

_UNPRIVILEGED = range(1024, 65536)


class PortReservations:
    def __init__(self, root: str, port_range: range) -> None:
        if not port_range or port_range.step != 1 or port_range[0] not in _UNPRIVILEGED or port_range[-1] > 65535:
            raise invalid_field("port_range", f"[{port_range}] is not a range of ports between 1024 and 65535")
        self._root = root
        self._range = port_range
        # Roots begin at different places, so that two of them on one host rarely want the same port.
        self._next = int.from_bytes(hashlib.sha256(os.fsencode(root)).digest()[:8], "big") % len(port_range)

    def reserve(self, folders: Sequence[TaskFolder], count: int) -> dict[TaskId, tuple[int, ...]]:
        """``count`` ports for each task: those it has already, and new ones as needed. All get theirs, or none."""
        if count < 1:
            return {folder.task_id: () for folder in folders}
        with self._locked():
            held = {folder: _ports_of(folder.path) for folder in folders}
            missing = {folder: count - len(ports) for folder, ports in held.items() if len(ports) < count}
            fresh = iter(self._choose(sum(missing.values())))
            for folder, more in missing.items():
                added = tuple(next(fresh) for _ in range(more))
                self._give(folder, held[folder], added)
                held[folder] += added
        return {folder.task_id: ports[:count] for folder, ports in held.items()}

    def release(self, folder: TaskFolder) -> None:
        """The task needs its ports no more. One that has none is fine."""
        if not folder.has(layout.PORTS):
            return
        with self._locked():
            ports = _ports_of(folder.path)
            with suppress(FileNotFoundError):  # Another server has released them while this one waited.
                os.unlink(f"{folder.path}/{layout.PORTS}")
            for port in ports:
                with suppress(FileNotFoundError):  # A crash in the middle of a release has taken this one away.
                    os.unlink(self._name_of(port))

    def _choose(self, count: int) -> list[int]:
        """Goes around the range, so that a port just given back is not given to the next task at once: somebody who
        has not heard yet may still call there."""
        chosen: list[int] = []
        begin, size = self._next, len(self._range)
        for step in range(size):
            if len(chosen) == count:
                break
            index = (begin + step) % size
            if not self._is_reserved(self._range[index]) and _is_free(self._range[index]):
                chosen.append(self._range[index])
                self._next = (index + 1) % size
        if len(chosen) < count:
            raise Unavailable(
                f"{count} ports are needed and {len(chosen)} of {self._range[0]}-{self._range[-1]} are left;"
                " jobs that end give theirs back, or give the local runtime a wider range"
            )
        return chosen

    def _is_reserved(self, port: int) -> bool:
        return port in _ports_of(self._name_of(port))

    def _give(self, folder: TaskFolder, held: tuple[int, ...], added: tuple[int, ...]) -> None:
        os.makedirs(folder.path, 0o700, exist_ok=True)
        for port in added:
            with suppress(FileNotFoundError):  # Only a crash leaves one behind.
                os.unlink(self._name_of(port))
            os.symlink(layout.task_path("..", folder.job_id, folder.task_id), self._name_of(port))
        scratch = f"{folder.path}/{layout.PORTS}.{os.urandom(8).hex()}"
        os.symlink(",".join(str(port) for port in (*held, *added)), scratch)
        os.rename(scratch, f"{folder.path}/{layout.PORTS}")

    def _name_of(self, port: int) -> str:
        return f"{self._root}/{layout.RESERVED}/{port}"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One reservation at a time, among all servers on this root."""
        lock = layout.acquire_lock_waiting(f"{self._root}/{layout.RESERVED_LOCK}")
        try:
            yield
        finally:
            os.close(lock)


def _ports_of(task_directory: str) -> tuple[int, ...]:
    try:
        ports = os.readlink(f"{task_directory}/{layout.PORTS}")
    except FileNotFoundError:
        return ()
    return tuple(int(port) for port in ports.split(","))


def _is_free(port: int) -> bool:
    """Whether a task could listen there now, on every address of the host."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True
