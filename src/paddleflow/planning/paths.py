"""Where the artifacts of a run lie: on the main filesystem, and inside the container of a step; what a dag is called.

The layout is part of what users rely on: ``[<sub_path>/].pipeline/<run>/<pipeline>/<step>-<seq>-<md5>/<artifact>``. The
digest is of the runtime name, which says where in the (unrolled) pipeline the step stands, so two steps never share a
directory. Nothing here looks at a filesystem.
"""

from __future__ import annotations

import hashlib
import posixpath

from paddleflow.domain.ids import FilesystemId, RunId
from paddleflow.domain.runs import RUNS_DIRECTORY
from paddleflow.planning.plan import POST_PROCESS, Mount, Plan

ENTRY_POINTS = "entry_points"
_DEFAULT_MOUNTS = "/home/paddleflow/storage/mnt"
_SEPARATOR = ","


def dag_id(run_id: RunId, key: str) -> str:
    """What users call one instance of a dag."""
    return f"dag-{run_id}-{hashlib.sha256(f'{run_id}/{key}'.encode()).hexdigest()[:16]}"


def run_directory(plan: Plan, run_id: RunId) -> str:
    """Everything a run has written as artifacts, relative to the root of its main filesystem."""
    return f"{_home(plan.main_fs)}{run_id}"


def runtime_root(plan: Plan, *, post_process: bool = False) -> str:
    """The runtime name of what holds the nodes at the top, or the post-process."""
    return f"{plan.name}.{POST_PROCESS if post_process else ENTRY_POINTS}"


def runtime_name(parent: str, name: str, seq: int) -> str:
    """``demo.entry_points.sub-2.train``: the first item of a loop is spelt like a node without one."""
    return f"{parent}.{name}-{seq}" if seq > 0 else f"{parent}.{name}"


def artifact_path(plan: Plan, run_id: RunId, step: str, seq: int, runtime: str, artifact: str) -> str:
    # Not for secrecy: existing directories are named by this digest, and it cannot be another.
    digest = hashlib.md5(runtime.encode(), usedforsecurity=False).hexdigest()
    return f"{run_directory(plan, run_id)}/{plan.name}/{step}-{seq}-{digest}/{artifact}"


def joined(paths: tuple[str, ...]) -> str:
    """The artifacts of all items of a loop, as one text."""
    return _SEPARATOR.join(paths)


def separate(text: str, main_fs: Mount | None) -> tuple[str, ...]:
    """``joined`` undone. A comma inside the mount's ``sub_path`` is no border: a path begins after it."""
    if not text:
        return ()
    home = _home(main_fs)
    first, *others = text.split(_SEPARATOR + home)
    return (first, *(home + other for other in others))


def in_container(text: str, main_fs: Mount | None, fs_id: FilesystemId | None) -> str:
    """The paths of an artifact as the step's process sees them, joined as before."""
    if main_fs is None:
        return text
    root = main_fs.mount_path or f"{_DEFAULT_MOUNTS}/{fs_id}"
    sub_path = f"{_clean(main_fs.sub_path)}/" if _clean(main_fs.sub_path) else ""
    return joined(tuple(posixpath.join(root, path.removeprefix(sub_path)) for path in separate(text, main_fs)))


def _home(main_fs: Mount | None) -> str:
    sub_path = _clean(main_fs.sub_path) if main_fs is not None else ""
    return f"{sub_path}/{RUNS_DIRECTORY}/" if sub_path else f"{RUNS_DIRECTORY}/"


def _clean(sub_path: str) -> str:
    """``./data/`` and ``data`` are one place; empty: the root."""
    normal = posixpath.normpath(sub_path).strip("/") if sub_path else ""
    return "" if normal == "." else normal
