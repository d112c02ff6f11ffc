"""Showing directories to one task at paths of its own, in a private mount namespace. Host side: light.

Runs in the task's process between fork and exec, so nothing here is ever seen by the host or by the supervisor.
A target that does not exist is made to appear without touching the host: the deepest directory that does exist is
covered by a memory filesystem in which all its entries are shown again. What a task then creates directly in such a
covered directory is its own and vanishes with it; everything below the entries is the host's, as always.
"""

from __future__ import annotations

import os
import stat

from paddleflow.adapters.local import kernel

_HOW_TO_FIX = (
    "run the server as root, or allow user namespaces to ordinary users "
    "(sysctl user.max_user_namespaces above 0; kernel.unprivileged_userns_clone=1 and "
    "kernel.apparmor_restrict_unprivileged_userns=0 where these exist)"
)
_KEPT_FLAGS = (
    (os.ST_NOSUID, kernel.MS_NOSUID),
    (os.ST_NODEV, kernel.MS_NODEV),
    (os.ST_NOEXEC, kernel.MS_NOEXEC),
    (os.ST_NOATIME, kernel.MS_NOATIME),
    (os.ST_NODIRATIME, kernel.MS_NODIRATIME),
    (os.ST_RELATIME, kernel.MS_RELATIME),
)


class MountFailed(Exception):
    """The mounts of a task cannot be made; the sentence says which and why."""


def show_mounts(mounts: list[tuple[str, str, bool]], new_root: str) -> None:
    """Enter a private namespace and show each (source, target, read only). ``new_root`` is an empty directory."""
    enter_private_namespace()
    view = _View(new_root)
    if any(_deepest_existing(target) == "/" for _, target, _ in mounts):
        view.replace_root()
    # All sources are taken hold of before any target is shown, so that none can be hidden by another's target.
    opened = [(_open_source(source, target), source, target, read_only) for source, target, read_only in mounts]
    # Outer targets first, so that a mount inside another mount is not covered by it.
    for source_fd, source, target, read_only in sorted(opened, key=lambda mount: mount[2].count("/")):
        try:
            view.show(source_fd, target, read_only)
        except OSError as error:
            raise MountFailed(f"cannot mount [{source}] at [{target}]: {error}") from error
        finally:
            os.close(source_fd)


def _open_source(source: str, target: str) -> int:
    try:
        return os.open(os.path.realpath(source), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise MountFailed(f"cannot mount [{source}] at [{target}]: {error}") from error


def _deepest_existing(path: str) -> str:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def enter_private_namespace() -> None:
    try:
        if os.geteuid() == 0:
            try:
                kernel.unshare(kernel.CLONE_NEWNS)
            except PermissionError:
                # Root without CAP_SYS_ADMIN, as in most containers, is here what an ordinary user is.
                _enter_user_namespace()
        else:
            _enter_user_namespace()
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    except OSError as error:
        raise MountFailed(f"no private mount namespace can be made for the mounts ({error}): {_HOW_TO_FIX}") from error


def _enter_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


class _View:
    """The task's view of the directory tree while it is being arranged."""

    def __init__(self, new_root: str) -> None:
        self._new_root = new_root
        self._own_devices: set[int] = set()
        """Memory filesystems of ours: directories may be made in them freely."""
        self._shown: list[str] = []

    def show(self, source_fd: int, target: str, read_only: bool) -> None:
        target = self._make_target(target)
        kernel.mount(f"/proc/self/fd/{source_fd}", target, "", kernel.MS_BIND | kernel.MS_REC)
        self._shown.append(target)
        if read_only:
            _make_read_only(target)

    def _make_target(self, target: str) -> str:
        """Make sure the target exists as a directory; its path without symbolic links."""
        ancestor = _deepest_existing(target)
        missing = os.path.relpath(target, ancestor)
        ancestor = os.path.realpath(ancestor)
        if missing == ".":
            if not os.path.isdir(ancestor):
                raise NotADirectoryError(20, "the target exists and is not a directory", target)
            return ancestor
        if not self._may_make_directories(ancestor):
            self._cover(ancestor)
        made = f"{ancestor.rstrip('/')}/{missing}"
        os.makedirs(made, 0o755)
        return made

    def _may_make_directories(self, ancestor: str) -> bool:
        if os.stat(ancestor).st_dev in self._own_devices:
            return True
        # Inside another mount of this task the directory is made in that filesystem: covering it would make the task
        # write its results into memory.
        inside = any(ancestor == shown or ancestor.startswith(f"{shown}/") for shown in self._shown)
        return inside and os.access(ancestor, os.W_OK)

    def _cover(self, directory: str) -> None:
        covered = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._mount_memory(directory, directory)
            _show_entries(f"/proc/self/fd/{covered}", directory)
        finally:
            os.close(covered)

    def replace_root(self) -> None:
        """A directory cannot be covered while it is the root: make a new root that shows the same and move there."""
        self._mount_memory(self._new_root, "/")
        _show_entries("/", self._new_root)
        os.chdir(self._new_root)
        kernel.pivot_root(".", ".")
        kernel.detach_mount(".")
        os.chdir("/")

    def _mount_memory(self, at: str, like: str) -> None:
        mode = stat.S_IMODE(os.stat(like).st_mode)
        kernel.mount("tmpfs", at, "tmpfs", 0, f"mode={mode:o}")
        self._own_devices.add(os.stat(at).st_dev)


def _show_entries(source: str, target: str) -> None:
    for name in os.listdir(source):
        shown, place = f"{source.rstrip('/')}/{name}", f"{target}/{name}"
        mode = os.lstat(shown).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(shown), place)
            continue
        if stat.S_ISDIR(mode):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        kernel.mount(shown, place, "", kernel.MS_BIND | kernel.MS_REC)


def _make_read_only(target: str) -> None:
    """The mount and every mount below it. The kernel wants flags locked by an outer namespace repeated."""
    for mount_point in _mount_points_from(target):
        present = os.statvfs(mount_point).f_flag
        flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
        for seen, wanted in _KEPT_FLAGS:
            flags |= wanted if present & seen else 0
        kernel.mount("none", mount_point, "", flags)


def _mount_points_from(top: str) -> list[str]:
    """The mount seen at ``top`` and those upon it. Found by their numbers: by path one would also find mounts that it
    has just covered."""
    fd = os.open(top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            number = next(line.split()[1] for line in file if line.startswith("mnt_id:"))
    finally:
        os.close(fd)
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = [line.split(b" ", 5) for line in file]
    found, points = {number.encode()}, [top]
    while below := [fields for fields in mounts if fields[1] in found and fields[0] not in found]:
        found |= {fields[0] for fields in below}
        points += [_unescape(fields[4]) for fields in below]
    return points


def _unescape(field: bytes) -> str:
    """mountinfo writes blanks and backslashes as three octal digits."""
    parts = field.split(b"\\")
    rest = (bytes([int(part[:3], 8)]) + part[3:] for part in parts[1:])
    return os.fsdecode(parts[0] + b"".join(rest))
