"""Turning a launch into the document a supervisor runs, and refusing what can never run here. Server side."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Collection, Mapping
from functools import cache

from paddleflow.adapters.local import layout
from paddleflow.adapters.local.spec import TaskSpec
from paddleflow.adapters.local.states import TaskFolder
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import NodeName
from paddleflow.domain.jobs import BindMount, TaskLaunch
from paddleflow.domain.names import check_mount_path
from paddleflow.domain.resources import MEMORY, format_units

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,119}")


def check_ids(job_id: str, *task_ids: str) -> None:
    """Ids become file names: whatever else they are, they are no paths. A task's id begins with its job's."""
    for field, ident in (("job id", job_id), *(("task id", task_id) for task_id in task_ids)):
        if not _ID.fullmatch(ident):
            raise invalid_field(field, f"[{ident[:80]}] is not made of letters, digits, '-', '_' and '.'")
    for task_id in task_ids:
        if not task_id.startswith(f"{job_id}-"):
            raise invalid_field("task id", f"[{task_id}] is not a task of job [{job_id}]: it must begin with its id")


def is_id(ident: str) -> bool:
    return _ID.fullmatch(ident) is not None


def check_launch(launch: TaskLaunch, nodes: Collection[NodeName]) -> None:
    if launch.node not in nodes:
        raise invalid_field("node", f"[{launch.node}] is not a node of this cluster; it has {', '.join(sorted(nodes))}")
    if not launch.argv or not launch.argv[0]:
        raise invalid_field("command", "it is empty")
    for field, text in (*(("command", word) for word in launch.argv), *(("env", v) for v in launch.env.values())):
        if "\x00" in text:
            raise invalid_field(field, "it contains a NUL character")
    for name in launch.env:
        if not name or "=" in name or "\x00" in name:
            raise invalid_field("env", f"[{name[:80]}] is not a legal environment variable name")
    for mount in launch.mounts:
        _check_mount(mount)
    _check_work_dir(launch)


def _check_mount(mount: BindMount) -> None:
    check_mount_path("mountPath", mount.target, code="InvalidArguments")
    if not os.path.isdir(mount.source):
        raise Invalid(f"the directory [{mount.source}] to be mounted at [{mount.target}] does not exist on this host")


def _check_work_dir(launch: TaskLaunch) -> None:
    work_dir = launch.work_dir
    if not work_dir:
        return
    if not os.path.isabs(work_dir):
        raise invalid_field("work_dir", f"[{work_dir}] is not an absolute path")
    in_a_mount = any(
        work_dir == m.target or work_dir.startswith(m.target.rstrip("/") + "/") for m in launch.mounts
    )  # There it can only be looked up by the task itself.
    if not in_a_mount and not os.path.isdir(work_dir):
        raise invalid_field("work_dir", f"the directory [{work_dir}] does not exist on this host")


def make_spec(
    launch: TaskLaunch,
    folder: TaskFolder,
    *,
    path: str,
    log_cap_bytes: int,
    cgroup_parents: Mapping[str, str] | None,
) -> TaskSpec:
    limit = launch.limits.memory_bytes
    root_mark = hashlib.sha256(os.fsencode(folder.root)).hexdigest()[:8]
    return TaskSpec(
        argv=list(launch.argv),
        env=task_environment(launch, folder, path),
        work_dir=launch.work_dir or f"{folder.path}/{layout.WORK}",
        mounts=[
            (m.source, check_mount_path("mountPath", m.target, code="InvalidArguments"), m.read_only)
            for m in launch.mounts
        ],
        memory_bytes=limit,
        memory_text=format_units(MEMORY, limit) if limit else "",
        cpu_milli=launch.limits.cpu_milli,
        host_cpus=os.cpu_count() or 1,
        log_cap_bytes=log_cap_bytes,
        cgroup_parents=None if cgroup_parents is None else dict(cgroup_parents),
        cgroup_name=f"paddleflow-{root_mark}-{launch.task_id}",
    )


def short_temporary(root: str, task_id: str) -> str:
    """A short name for the task's temporary directory: sockets below it must fit into 107 bytes."""
    return f"{root}/{layout.SHORT}/{hashlib.sha256(task_id.encode()).hexdigest()[:10]}"


def task_environment(launch: TaskLaunch, folder: TaskFolder, path: str) -> dict[str, str]:
    """What the task sees: never the server's own environment. The job may change all of it but its GPUs and where its
    membership is published."""
    return {
        "PATH": path,
        "HOME": f"{folder.path}/{layout.WORK}",
        "TMPDIR": short_temporary(folder.root, folder.task_id),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "USER": _user_name(),
        **launch.env,
        "PF_MEMBERSHIP_FILE": layout.membership_path(folder.root, folder.job_id),
        # Empty, not absent: an absent one would show every GPU to a task that asked for none.
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in launch.gpus),
    }


@cache
def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())  # A container may run as a number nobody named.
