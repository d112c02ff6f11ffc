"""Mounting and unmounting: by ourselves where we may, by the system's setuid ``fusermount3`` where we may not.

It owns the checks before a mount and the sentences when it fails: what is missing and which way was tried. It refuses
``/``, a place that is not an empty directory, and a place where something is mounted that works. What is left of a
mount whose daemon is gone ("Transport endpoint is not connected") is taken away first.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
from dataclasses import dataclass

from paddleflow.domain.errors import Denied, InUse, Invalid, PaddleFlowError, Unavailable, invalid_field

DEVICE = "/dev/fuse"
TYPE = "fuse.paddleflow"
MAX_READ = 1 << 20
READ_AHEAD_KB = 1024

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MNT_FORCE = 1
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and as what to mount."""

    mountpoint: str
    source: str
    """What ``df`` and ``mount`` show; no secret belongs in it."""
    read_only: bool = False
    allow_other: bool = False


@dataclass(frozen=True, slots=True)
class Mounted:
    fuse_fd: int
    way: str
    """``mount`` or ``fusermount3``: who takes it down again."""


def mount(place: Place) -> Mounted:
    clear_place(place.mountpoint)
    if os.geteuid() == 0:
        try:
            return _mount_ourselves(place)
        except OSError as error:
            raise _explain(place, error, "mount(2), as root") from error
    try:
        return _mount_ourselves(place)
    except OSError as error:
        # Inside a user namespace of our own this works without help; everywhere else it is EPERM or EACCES.
        if error.errno not in (errno.EPERM, errno.EACCES):
            raise _explain(place, error, "mount(2)") from error
    return _mount_by_helper(place)


def unmount(mountpoint: str, way: str, *, lazy: bool) -> None:
    """OSError EBUSY where it is in use and that matters (not ``lazy``). Nothing mounted there: EINVAL."""
    if way == "mount":
        flags = UMOUNT_NOFOLLOW | (MNT_DETACH if lazy else 0)
        if _libc.umount2(os.fsencode(mountpoint), flags) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), mountpoint)
        return
    code, said = _run_helper(["-u", *(["-z"] if lazy else []), "--", mountpoint], None)
    if code:
        raise OSError(errno.EBUSY if "busy" in said else errno.EINVAL, said, mountpoint)


def clear_place(mountpoint: str) -> None:
    """See that something can be mounted here; what is broken is taken away, what is in the way is named."""
    if os.path.realpath(mountpoint) == "/":
        raise invalid_field("mountpoint", "the root directory cannot be mounted over")
    try:
        names = os.listdir(mountpoint)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise _refusal(mountpoint, error) from error
        detach_broken(mountpoint)
        names = os.listdir(mountpoint)
    if is_mounted(mountpoint):
        raise InUse(f"{mountpoint} is a mount point already: unmount it first, or choose another directory")
    if names:
        raise invalid_field("mountpoint", f"{mountpoint} is not empty: mounting would hide what it holds")


def detach_broken(mountpoint: str) -> None:
    way = "mount" if os.geteuid() == 0 else "fusermount3"
    if way == "mount":
        # Whoever still waits for an answer gets an error. When this is refused, the next call says why.
        _libc.umount2(os.fsencode(mountpoint), UMOUNT_NOFOLLOW | MNT_FORCE)
        if not is_mounted(mountpoint):
            return
    try:
        unmount(mountpoint, way, lazy=True)
    except OSError as error:
        raise InUse(f"{mountpoint} holds a broken mount that cannot be taken away: {error.strerror}") from error


def is_mounted(mountpoint: str) -> bool:
    place = os.path.realpath(mountpoint)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return any(_unescape(line.split(" ")[4]) == place for line in table)


def set_read_ahead(mountpoint_device: int, kilobytes: int = READ_AHEAD_KB) -> bool:
    """How far the kernel reads ahead on this mount: it starts at 128 KiB whatever was negotiated, and only root may say
    more. Given ``st_dev`` of the mount, because whoever serves a mount must not look at it."""
    name = f"{os.major(mountpoint_device)}:{os.minor(mountpoint_device)}"
    try:
        with open(f"/sys/class/bdi/{name}/read_ahead_kb", "w", encoding="ascii") as knob:
            knob.write(str(kilobytes))
    except OSError:
        return False  # a matter of speed alone: not root, or a /sys that is read-only or not there
    return True


def device_of(mountpoint: str) -> int | None:
    """``st_dev`` of a mount, from the kernel's table: asking the mount itself would ask us."""
    place = os.path.realpath(os.path.dirname(mountpoint)) + "/" + os.path.basename(mountpoint)
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields = line.split(" ")
            if _unescape(fields[4]) == place.replace("//", "/"):
                major, minor = fields[2].split(":")
                found = os.makedev(int(major), int(minor))
    return found


def _mount_ourselves(place: Place) -> Mounted:
    fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    options = [
        f"fd={fd}",
        "rootmode=40000",
        f"user_id={os.getuid()}",
        f"group_id={os.getgid()}",
        "default_permissions",
        f"max_read={MAX_READ}",
    ]
    if place.allow_other:
        options.append("allow_other")
    flags = MS_NOSUID | MS_NODEV | (MS_RDONLY if place.read_only else 0)
    names = (os.fsencode(place.source), os.fsencode(place.mountpoint), TYPE.encode())
    if _libc.mount(*names, ctypes.c_ulong(flags), ",".join(options).encode()) < 0:
        code = ctypes.get_errno()
        os.close(fd)
        raise OSError(code, os.strerror(code), place.mountpoint)
    return Mounted(fd, "mount")


def _mount_by_helper(place: Place) -> Mounted:
    options = ["nosuid", "nodev", "default_permissions", f"max_read={MAX_READ}", f"subtype={TYPE.partition('.')[2]}"]
    options.append("fsname=" + re.sub(r"([\\,])", r"\\\1", place.source))
    options += ["ro"] * place.read_only + ["allow_other"] * place.allow_other
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        code, said = _run_helper(["-o", ",".join(options), "--", place.mountpoint], theirs)
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    if code or not fds:
        raise _explain_helper(place, said)
    os.set_inheritable(fds[0], False)
    return Mounted(fds[0], "fusermount3")


def _run_helper(arguments: list[str], answer: socket.socket | None) -> tuple[int, str]:
    """Its exit code and what it complained of. It sends the descriptor of a new mount through ``answer``."""
    import subprocess

    number = () if answer is None else (answer.fileno(),)
    environment = {**os.environ, "LC_ALL": "C", "_FUSE_COMMFD": "".join(map(str, number))}
    try:
        done = subprocess.run(
            ["fusermount3", *arguments], env=environment, pass_fds=number, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise Denied(
            "mounting needs root, or the program fusermount3, which is not installed (package fuse3 of your system)"
        ) from error
    return done.returncode, done.stderr.strip()


def _refusal(mountpoint: str, error: OSError) -> PaddleFlowError:
    if error.errno == errno.ENOENT:
        return invalid_field("mountpoint", f"{mountpoint} does not exist: make that directory first")
    if error.errno == errno.ENOTDIR:
        return invalid_field("mountpoint", f"{mountpoint} is not a directory")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Denied(f"{mountpoint} may not be read by this user, so nothing can be mounted there")
    return Invalid(f"{mountpoint} cannot be used as a mount point: {error.strerror}")


def _explain(place: Place, error: OSError, way: str) -> PaddleFlowError:
    if error.filename == DEVICE and error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return Unavailable(
            f"{DEVICE} is missing: load the kernel module (modprobe fuse), or give the container this device"
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return Denied(
            f"no permission to mount on {place.mountpoint} (tried {way}): a container needs the device {DEVICE} "
            "and the capability CAP_SYS_ADMIN"
        )
    if error.errno == errno.ENODEV:
        return Unavailable("this kernel has no FUSE (CONFIG_FUSE_FS)")
    return Unavailable(f"mounting on {place.mountpoint} failed (tried {way}): {error.strerror}")


def _explain_helper(place: Place, said: str) -> PaddleFlowError:
    tried = "tried mount(2) and fusermount3"
    if "user_allow_other" in said:
        return Denied("allow_other needs the line user_allow_other in /etc/fuse.conf, which only root can write")
    if DEVICE in said and ("denied" in said or "permitted" in said):
        return Denied(f"{DEVICE} may not be opened by this user ({tried}): it should have mode 0666")
    if DEVICE in said:
        return Unavailable(f"{DEVICE} is missing ({tried}): load the kernel module (modprobe fuse)")
    return Denied(f"no permission to mount on {place.mountpoint} ({tried}): {said or 'it gave no reason'}")


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)
